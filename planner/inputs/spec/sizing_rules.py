"""The rules of a spec about `sizing`: classes and prices exist, a range has numbers, and racks are left to survive."""

from __future__ import annotations

from collections.abc import Iterator

from planner.inputs.spec.build_spec import brokers_today
from planner.inputs.spec.rules import BROKERS, DocumentRule, RuleList
from planner.inputs.spec.sections import knows_sizes, knows_traffic, monthly, sizing
from planner.inputs.yaml_source import Document, Path
from planner.model.errors import Finding, did_you_mean

SIZING_RULES: RuleList[DocumentRule] = RuleList()


@SIZING_RULES.reads("sizing", "cluster.broker_classes")
def _classes_exist(document: Document) -> Iterator[Finding]:
    stated, known = document.get("sizing") or {}, [each.name for each in monthly(document).classes]
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


@SIZING_RULES.reads("sizing", "cluster.broker_classes", BROKERS)
def _numbers_make_sense(document: Document) -> Iterator[Finding]:
    """The fewest brokers aren't more than the most, and a rack can fail only where others are left."""
    known = {each.name for each in monthly(document).classes}
    if not known.issuperset((document.get("sizing") or {}).get("classes", ())) or (asked := sizing(document)) is None:
        return
    least, most = asked.per_rack
    if least > most:
        written = document.get("sizing", "brokers_per_rack")
        message = f"{written!r} has no number; allowed: the fewest before the most, such as {most}..{least}"
        yield document.finding(("sizing", "brokers_per_rack"), message)
    racks = set(asked.racks) or {broker.rack for broker in brokers_today(document) if broker.rack is not None}
    if asked.survive == "rack" and len(racks) < 2:
        message = (
            f"'rack' can't be survived with {len(racks) or 'no'} rack; allowed: broker, none, or two racks and more"
        )
        yield document.finding(("sizing", "survive"), message)


@SIZING_RULES.reads("sizing", "cluster.state", "cluster.rates", "cluster.load", "cluster.topics")
def _loads_are_known(document: Document) -> Iterator[Finding]:
    known = knows_sizes(document) or knows_traffic(document, "network_in")
    if document.get("sizing") is not None and not known:
        message = (
            "brokers can't be sized without sizes or rates; allowed: cluster.state.sizes, cluster.load or cluster.rates"
        )
        yield document.finding(("sizing",), message)
