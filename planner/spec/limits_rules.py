"""Gates of `limits` that nothing in the spec lets anybody judge: refused when it is read, not after the sweep.

A gate without the numbers to judge it by would let every plan pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.errors import Finding
from planner.spec.build import TARGET_KEYS, Sizes, target_brokers
from planner.yaml_source import Document

OF_SIZES = ("bytes_moved", "cross_rack_bytes", "eta", "disk_used")
OF_RACKS = ("cross_rack_bytes", "rack_offline", "rack_refused")

_SIZES = "sizes for every partition (cluster.state.sizes, or size in cluster.topics), or no such limit"


def size_findings(document: Document, sizes: Sizes) -> Iterator[Finding]:
    """Gates on bytes where some partition has no size; `sizes` is what the state files and the YAML say together."""
    if sizes.known and not sizes.unsized:
        return
    unsized = f"{sizes.unsized} partition{'' if sizes.unsized == 1 else 's'} without a size"
    without = unsized if sizes.known else "sizes"
    for name, value in _asked(document, OF_SIZES):
        message = f"{value!r} can't be judged {'with' if sizes.known else 'without'} {without}; allowed: {_SIZES}"
        yield document.finding(("limits", name), message)


def _racks_for_limits(document: Document) -> Iterator[Finding]:
    if any(broker.rack is not None for broker in target_brokers(document)):
        return
    for name, value in _asked(document, OF_RACKS):
        message = f"{value!r} can't be judged, no broker has a rack; allowed: racks, or no such limit"
        yield document.finding(("limits", name), message)


def _eta_has_throttle(document: Document) -> Iterator[Finding]:
    """Without a throttle nobody knows how long copying takes."""
    for _, eta in _asked(document, ("eta",)):
        if document.get("execution", "throttle") == "none":
            message = f"{eta!r} can't be judged with execution.throttle: none; allowed: a throttle, or no such limit"
            yield document.finding(("limits", "eta"), message)


def _asked(document: Document, names: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Those of the gates that are set, with what is written."""
    written = ((name, document.get("limits", name)) for name in names)
    yield from ((name, value) for name, value in written if value is not None)


LIMIT_RULES: tuple[tuple[tuple[str, ...], Callable[[Document], Iterator[Finding]]], ...] = (
    (("limits.eta", "execution.throttle"), _eta_has_throttle),
    ((*TARGET_KEYS, "limits"), _racks_for_limits),
)
