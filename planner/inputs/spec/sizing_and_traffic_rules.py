"""The rules of a spec about `sizing`: classes and prices exist, a range has numbers, and racks are left to survive.

And about `traffic` and `prices`: what crosses racks needs racks and rates, and shares are of everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.inputs.spec.build_spec import TARGET_KEYS, brokers_today, target_brokers
from planner.inputs.spec.rules import BROKERS, DocumentRule, RuleList
from planner.inputs.spec.sections import knows_sizes, knows_traffic, share_ppm
from planner.inputs.yaml_source import Document, Path
from planner.model.errors import Finding, did_you_mean

SIZING_RULES: RuleList[DocumentRule] = RuleList()


@SIZING_RULES.reads("sizing", "cluster.broker_classes")
def _classes_exist(document: Document) -> Iterator[Finding]:
    stated, known = document.get("sizing") or {}, tuple(document.get("cluster", "broker_classes") or {})
    if stated and not known:
        message = "no class of brokers is stated; allowed: cluster.broker_classes with what may be bought"
        yield document.finding(("sizing",), message)
        return
    named: list[tuple[Path, str]] = [(("classes", at), name) for at, name in enumerate(stated.get("classes", ()))]
    for path, name in [*named, *((("prices", name), name) for name in stated.get("prices", ()))]:
        if name not in known:
            message = (
                f"{name!r} isn't in cluster.broker_classes; {did_you_mean(name, known)}allowed: {', '.join(known)}"
            )
            yield document.finding(("sizing", *path), message)


@SIZING_RULES.reads("sizing", BROKERS)
def _numbers_make_sense(document: Document) -> Iterator[Finding]:
    """The fewest brokers aren't more than the most, and a rack can fail only where others are left."""
    stated = document.get("sizing") or {}
    least, _, most = str(stated.get("brokers_per_rack", "1")).partition("..")
    if most and int(least) > int(most):
        message = f"'{least}..{most}' has no number; allowed: the fewest before the most, such as {most}..{least}"
        yield document.finding(("sizing", "brokers_per_rack"), message)
    racks = set(stated.get("racks", ())) or {each.rack for each in brokers_today(document) if each.rack is not None}
    if stated.get("survive") == "rack" and len(racks) < 2:
        message = f"'rack' can't be survived with {len(racks) or 'no'} rack; allowed: broker, none, or more racks"
        yield document.finding(("sizing", "survive"), message)


@SIZING_RULES.reads("sizing", "cluster.state", "cluster.rates", "cluster.load", "cluster.topics")
def _loads_are_known(document: Document) -> Iterator[Finding]:
    known = knows_sizes(document) or knows_traffic(document, "network_in")
    if document.get("sizing") is not None and not known:
        message = (
            "brokers can't be sized without sizes or rates; allowed: cluster.state.sizes, cluster.load or cluster.rates"
        )
        yield document.finding(("sizing",), message)


@SIZING_RULES.reads(
    "traffic", "prices", *TARGET_KEYS, "cluster.state", "cluster.rates", "cluster.load", "cluster.topics"
)
def _racks_and_rates_are_known(document: Document) -> Iterator[Finding]:
    """What crosses racks can't be told without them; consumers in a rack without brokers are possible."""
    for key in ("traffic", "prices"):
        if not document.get(key):
            continue
        if any(broker.rack is None for broker in target_brokers(document)):
            message = "what crosses racks is unknown without a rack for every broker; allowed: racks, or without this"
            yield document.finding((key,), message)
        if not knows_traffic(document, "network_in") and not knows_traffic(document, "network_out"):
            message = "what crosses racks is unknown without rates; allowed: rates (cluster.load), or without this"
            yield document.finding((key,), message)
    shares = [share_ppm(share) for share in (document.get("traffic", "consumers") or {}).values()]
    if shares and sum(shares) != 1_000_000:
        message = f"the shares of all racks together are {sum(shares) / 10_000:g}%; allowed: 100%"
        yield document.finding(("traffic", "consumers"), message)
