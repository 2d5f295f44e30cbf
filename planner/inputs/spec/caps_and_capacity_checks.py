"""The rules of a spec about brokers' capacities: caps, including those of a profile, `sizing`, `traffic`, `prices`.

`sizing`: classes and prices must exist, a range must not be empty, and enough racks must exist to survive a failure.
`traffic` and `prices`: bytes between racks need racks and rates, and the shares must add up to 100 %.
Bytes, rates and times that are so small that they must lack a unit are refused here, too.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from planner.inputs.spec.build_spec import keys_of_months, share_ppm
from planner.inputs.spec.checks import ADDED, BROKERS, GROWN, RuleList, place_of, unknown
from planner.inputs.spec.placement_checks import OF_REPLICAS
from planner.inputs.spec.spec_document import PROFILES, REFUSED, TARGET_KEYS, SpecDocument
from planner.inputs.yaml_source import Path, PathFinding
from planner.model.amounts import (
    LEAST_BYTES,
    LEAST_BYTES_PER_SEC,
    LEAST_SECONDS,
    lacks_unit,
    parse_bytes,
    parse_bytes_per_sec,
)
from planner.model.cluster import a_few
from planner.model.document_fields import PPM
from planner.model.errors import did_you_mean
from planner.model.formats import counted

CAPACITY_RULES = RuleList()
CAPACITY_TOPIC_RULES = RuleList()
# The most that were measured: 372 s with 5,000 partitions and two workers. It rules out thousands of brokers a rack.
_MOST_CLUSTERS = 2_000
_CLASSES = ("cluster", "broker_classes")


@CAPACITY_RULES.reads("sizing", "cluster.broker_classes")
def _classes_exist(document: SpecDocument) -> Iterator[PathFinding]:
    sizing, class_names = document.get("sizing") or {}, tuple(document.get("cluster", "broker_classes") or {})
    if sizing and not class_names:
        yield ("sizing",), "no class of brokers is stated; allowed: cluster.broker_classes with what may be bought"
        return
    stated_classes: list[tuple[Path, str]] = [
        (("classes", index), name) for index, name in enumerate(sizing.get("classes", ()))
    ]
    for path, name in [*stated_classes, *((("prices", name), name) for name in sizing.get("prices", ()))]:
        if name not in class_names:
            yield unknown(("sizing", *path), name, "cluster.broker_classes", class_names)


@CAPACITY_RULES.reads("sizing.prices", "cluster.broker_classes", "cluster.profile")
def _alike_classes_cost_alike(document: SpecDocument) -> Iterator[PathFinding]:
    """Classes of the same capacity must have the same price, because a broker's class is found by its capacity."""
    prices: dict[str, float] = document.get("sizing", "prices") or {}
    for first, second in combinations(document.broker_classes if prices else (), 2):
        alike = first.broker(0, None).capacity == second.broker(0, None).capacity
        if alike and prices.get(first.name) != prices.get(second.name):
            name, other_name = (second.name, first.name) if second.name in prices else (first.name, second.name)
            other_price = f"and {prices[other_name]}" if other_name in prices else "and no price"
            message = f"{prices[name]}, {other_price} for {other_name} of the same capacity; allowed: one price"
            yield ("sizing", "prices", name), f"{message}, or unlike capacities"


@CAPACITY_RULES.reads("sizing", "cluster.broker_classes", BROKERS)
def _numbers_make_sense(document: SpecDocument) -> Iterator[PathFinding]:
    sizing = document.get("sizing") or {}
    least, _, most = str(sizing.get("brokers_per_rack", "1")).partition("..")
    if most and int(least) > int(most):
        message = f"'{least}..{most}' has no number; allowed: the fewest before the most, such as {most}..{least}"
        yield ("sizing", "brokers_per_rack"), message
    classes = len(sizing.get("classes", document.get(*_CLASSES) or {}))
    clusters = 2 * classes * (1 + int(most or least) - int(least))
    if sizing and clusters > _MOST_CLUSTERS:
        message = (
            f"{sizing['brokers_per_rack']!r} of {counted(classes, 'class')} are {clusters:,} clusters, with today's "
            f"other brokers and without them; allowed: at most {_MOST_CLUSTERS:,}"
        )
        yield ("sizing", "brokers_per_rack"), message
    racks = set(sizing.get("racks", ())) or {each.rack for each in document.brokers_today if each.rack is not None}
    if sizing.get("survive") == "rack" and len(racks) < 2:
        message = f"'rack' can't be survived with {len(racks) or 'no'} rack; allowed: broker, none, or more racks"
        yield ("sizing", "survive"), message


@CAPACITY_RULES.reads("sizing", "cluster.state", "cluster.rates", "cluster.load", "cluster.topics")
def _loads_are_known(document: SpecDocument) -> Iterator[PathFinding]:
    has_loads = document.knows_sizes or document.knows_traffic("network_in")
    if document.get("sizing") is not None and not has_loads:
        allowed = "allowed: cluster.state.sizes, cluster.load or cluster.rates"
        yield ("sizing",), f"brokers can't be sized without sizes or rates; {allowed}"


@CAPACITY_RULES.reads(
    "traffic", "prices", *TARGET_KEYS, "cluster.state", "cluster.rates", "cluster.load", "cluster.topics"
)
def _racks_and_rates_are_known(document: SpecDocument) -> Iterator[PathFinding]:
    """`traffic` and `prices` need racks and rates. A rack of `consumers` may have no brokers."""
    for key in ("traffic", "prices"):
        if not document.get(key):
            continue
        if any(broker.rack is None for broker in document.target_brokers):
            yield (key,), f"what crosses racks is unknown without a rack for every broker; allowed: racks, or no {key}"
        if not document.knows_traffic("network_in") and not document.knows_traffic("network_out"):
            yield (key,), f"what crosses racks is unknown without rates; allowed: rates (cluster.load), or no {key}"
    shares = [share_ppm(share) for share in (document.get("traffic", "consumers") or {}).values()]
    if shares and sum(shares) != PPM:
        yield ("traffic", "consumers"), f"the shares of all racks together are {sum(shares) / 10_000:g}%; allowed: 100%"
    if document.get("traffic", "fetch_from") == "nearest replica" and not shares:
        message = "'nearest replica' has no effect without traffic.consumers; allowed: state consumers too"
        yield ("traffic", "fetch_from"), message


@CAPACITY_RULES.reads("sweep.choose", "limits", "growth", "cluster.load", *TARGET_KEYS)
def _months_are_known(document: SpecDocument) -> Iterator[PathFinding]:
    without = [str(broker.id) for broker in document.target_brokers if broker.disk_bytes is None]
    lacking = (
        (not (document.get("growth") or document.get("cluster", "load")), "growth", "growth, or cluster.load"),
        (without, f"capacity.disk of {a_few(without, 'broker')}", "capacity.disk for every broker that stays or joins"),
    )
    for path, (lacks, need, allowed) in product(keys_of_months(document), lacking):
        if lacks:
            yield path, f"{document.get(*path)!r} can't be judged without {need}; allowed: {allowed}, or leave it out"


@CAPACITY_RULES.reads("prices", "sizing")
def _prices_are_not_rounded_to_0(document: SpecDocument) -> Iterator[PathFinding]:
    """A price is stored in millionths or hundredths of the currency, and must not be rounded to 0."""
    priced_keys: list[tuple[Path, int]] = [(("prices", "cross_rack_per_gib"), PPM)]
    priced_keys += [(("sizing", "prices", name), 100) for name in document.get("sizing", "prices") or ()]
    for path, unit in priced_keys:
        price = document.get(*path)
        if price and not round(unit * price):
            yield path, f"{price} is less than can be counted; allowed: 0, or {1 / unit:f} or more"


@CAPACITY_RULES.reads("execution.throttle")
def _throttle_has_its_unit(document: SpecDocument) -> Iterator[PathFinding]:
    """A throttle without a unit is refused if it is small, because Kafka would accept it as bytes per second."""
    throttle = document.get("execution", "throttle")
    if throttle not in (None, "none") and (rate := parse_bytes_per_sec(throttle)) < LEAST_BYTES_PER_SEC:
        message = f"{throttle!r} is {rate} bytes per second; allowed: a rate with its unit, such as 50MB/s, or none"
        yield ("execution", "throttle"), message


# Keys with sizes in bytes, with rates in bytes per second, and with durations in seconds.
_SIZES, _RATES, _DURATIONS = (
    ("disk", "max_disk", "size", "bytes_moved", "cross_rack_bytes", "bytes"),
    ("network", "worst_hour", "p99_hour"),
    ("eta", "duration", "valid_for"),
)


@CAPACITY_RULES.reads(BROKERS, ADDED, "cluster.broker_classes", "limits", "budget", "execution.batches", "valid_for")
def _amounts_have_their_units(document: SpecDocument) -> Iterator[PathFinding]:
    """A small number without a unit is refused: no disk has 500 bytes, and `eta: 6` rarely means 6 seconds."""
    sections: list[tuple[Path, Any]] = [
        (path, document.get(*path) or {}) for path in (("limits",), ("budget",), ("execution", "batches"))
    ]
    for path, values in [*_capacities(document), *sections, ((), {"valid_for": document.get("valid_for")})]:
        for keys, least, unit, example in (
            (_SIZES, LEAST_BYTES, "B", "500GB"),
            (_RATES, LEAST_BYTES_PER_SEC, "B/s", "1Gbit/s"),
            (_DURATIONS, LEAST_SECONDS, "s", "6h"),
        ):
            for key in (key for key in keys if key in values and lacks_unit(values[key], least)):
                number = int(values[key])
                message = f"{values[key]!r} is {number} {unit}; allowed: with its unit, such as {example}"
                yield (*path, key), f"{message}, or {number}{unit} if that is meant"


@CAPACITY_RULES.reads("cluster.profile")
def _profile_is_known(document: SpecDocument) -> Iterator[PathFinding]:
    name = document.get("cluster", "profile")
    if name is None or name in PROFILES:
        return
    reason = next((reason for prefix, reason in REFUSED.items() if name.startswith(prefix)), None)
    allowed = f"allowed: {', '.join(PROFILES)}"
    message = f"{name!r} isn't known; {did_you_mean(name, PROFILES)}{allowed}"
    yield ("cluster", "profile"), message if reason is None else f"{reason}: there is nothing to plan"


@CAPACITY_RULES.reads(BROKERS, ADDED, "cluster.broker_classes", "cluster.state", "cluster.load")
def _caps_matter(document: SpecDocument) -> Iterator[PathFinding]:
    """To have an effect, `max_leaders` must be below `max_replicas`, and `max_disk` below `disk`, with known sizes."""
    for path, capacity in _capacities(document):
        replicas, leaders = capacity.get("max_replicas"), capacity.get("max_leaders")
        if replicas is not None and leaders is not None and leaders >= replicas:
            message = f"{leaders} has no effect beside {place_of(document, (*path, 'max_replicas'))} of {replicas}"
            yield (*path, "max_leaders"), f"{message}; allowed: less than that, or no max_leaders"
        if (most := capacity.get("max_disk")) is not None and not document.knows_sizes:
            message = f"{most!r} can't be kept without sizes; allowed: cluster.state.sizes, or no max_disk"
            yield (*path, "max_disk"), message
        elif most is not None and "disk" in capacity and parse_bytes(most) >= parse_bytes(capacity["disk"]):
            message = f"{most!r} has no effect beside {place_of(document, (*path, 'disk'))} of {capacity['disk']!r}"
            yield (*path, "max_disk"), f"{message}; allowed: less than that, or no max_disk"


def _capacities(document: SpecDocument) -> Iterator[tuple[Path, Any]]:
    """The path and the stated capacity of each class, each broker and each log dir."""
    for name, each in (document.get(*_CLASSES) or {}).items():
        yield (*_CLASSES, name), each
    for path, item in document.written_brokers:
        yield (*path, "capacity"), item.get("capacity") or {}
        for place, log_dir in document.items(*path, "log_dirs"):
            yield place, log_dir if isinstance(log_dir, dict) else {}


@CAPACITY_TOPIC_RULES.reads(*TARGET_KEYS, *OF_REPLICAS, GROWN, "rack_aware", "sizing")
def _caps_leave_room(document: SpecDocument) -> Iterator[PathFinding]:
    """The caps must leave room for all replicas and leaders, and in each rack for the replicas of the rack rule.

    A spec with `sizing` asks how many brokers it takes.
    """
    if document.get("sizing") is not None:
        return
    factors, targets = document.replicas_after, document.target_brokers
    today = {topic.name: len(topic.partitions) for topic in document.assignment.topics if topic.name in factors}
    grown = {new.topic: new.count for new in document.added_partitions if new.topic in factors}
    created = {new.topic: new.count for new in document.created_topics}
    counts = Counter[int]()
    for name, count in (today | grown | created).items():
        counts[factors[name]] += count
    for key, noun, total in (
        ("max_replicas", "replicas", sum(factor * count for factor, count in counts.items())),
        ("max_leaders", "leaders", sum(counts.values())),
    ):
        caps = {broker.id: getattr(broker, key) for broker in targets}
        if None not in caps.values() and sum(caps.values()) < total:
            message = f"the brokers that stay or join have room for {sum(caps.values())} {noun}, and there are {total}"
            yield _capped(document, min(caps), key, message, "higher caps, or more brokers")
    racks = {broker.rack for broker in targets}
    enforced = document.get("rack_aware") in (None, "enforced")
    for rack in sorted(racks - {None}, key=str) if enforced and None not in racks else ():
        rack_caps = {broker.id: broker.max_replicas for broker in targets if broker.rack == rack}
        needed = sum(min(len(rack_caps), factor // len(racks)) * count for factor, count in counts.items())
        room = sum(cap or 0 for cap in rack_caps.values())
        if None not in rack_caps.values() and room < needed:
            message = (
                f"the brokers of rack {rack!r} have room for {room} replicas, and the rack rule puts {needed} there"
            )
            yield _capped(document, min(rack_caps), "max_replicas", message, "higher caps, or more brokers in the rack")


@CAPACITY_TOPIC_RULES.reads(*TARGET_KEYS, *OF_REPLICAS, "topics", "changes.rebalance", "placement")
def _caps_hold_what_stays(document: SpecDocument) -> Iterator[PathFinding]:
    """A broker's cap must allow the replicas that can't leave it: those of fixed topics, or all if nothing may move."""
    topic_filter, mode = document.topic_filter, document.rebalance
    unforced = mode in ("leaders", "none") and not any(document.get(*key) for key in _FORCING)
    fixed, counts = Counter[int](), Counter[int]()
    for topic in document.assignment.topics:
        moves = not topic.deleting and topic_filter.moves(topic.name)
        for row in topic.partitions:
            counts.update(row.replicas if not document.leaving_brokers & set(row.replicas) else ())
            fixed.update(() if moves and topic_filter.is_near(row.replicas) else row.replicas)
    for broker in document.target_brokers:
        cap = broker.max_replicas
        if cap is not None and fixed[broker.id] > cap:
            key = next((key for key in ("exclude", "include") if document.get("topics", key)), "on_brokers")
            key_place = place_of(document, ("topics", key))
            message = (
                f"broker {broker.id} holds {fixed[broker.id]} replicas that may not move by {key_place}, above {cap}"
            )
            yield _capped(document, broker.id, "max_replicas", message, "a higher cap, or topics that let them move")
        elif cap is not None and unforced and counts[broker.id] > cap:
            key_place = place_of(document, ("changes", "rebalance"))
            message = (
                f"broker {broker.id} holds {counts[broker.id]} replicas, above {cap}, and {key_place} lets none leave"
            )
            yield _capped(document, broker.id, "max_replicas", message, "a higher cap, or rebalance: all")


# The keys that make replicas move whatever `rebalance` is.
_FORCING = (("changes", "set_replication_factor"), ("changes", "set_racks"), ("placement",))


def _capped(document: SpecDocument, broker: int, key: str, message: str, allowed: str) -> PathFinding:
    """A finding at the place of a broker's cap: the broker, the one that it replaces, its class, or the profile."""
    broker_ids = {broker, *(old for old, new in document.replacements if new == broker)}
    for path, item in document.written_brokers:
        for place in ((*path, "capacity"), (*_CLASSES, item.get("class", ""))):
            if item["id"] in broker_ids and key in (document.get(*place) or {}):
                return (*place, key), f"{message}; allowed: {allowed}"
    return ("cluster", "profile"), f"{message}; allowed: {allowed}"
