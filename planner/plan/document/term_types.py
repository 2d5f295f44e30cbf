"""How the plan is judged: its windows, terms, bound, limits and risks."""

from __future__ import annotations

from typing import Annotated, Literal

from planner.plan.document.field_types import (
    BrokerId,
    Count,
    NotNegative,
    Number,
    Positive,
    Section,
    Sha256,
    Window,
    WindowName,
    doc,
)


class BalanceWindows(Section, frozen=True, kw_only=True):
    """The windows of a balance: a spread (1), a percentage around the fair share (5%), or none."""

    replicas: Annotated[
        Window, doc("Replicas on a broker: a spread (1), a percentage around the fair share (5%), or none.")
    ]
    leaders: Annotated[
        Window, doc("Preferred leaders on a broker: a spread (1), a percentage around the fair share (5%), or none.")
    ]
    topic_replicas: Annotated[
        Window, doc("Replicas of a topic on a broker: a spread (1), a percentage around the fair share (5%), or none.")
    ]
    topic_leaders: Annotated[
        Window,
        doc(
            "Preferred leaders of a topic on a broker: a spread (1), a percentage around the fair share (5%), or none."
        ),
    ]
    disk: Annotated[Window, doc("Bytes on a broker: a percentage around its share (10%), or none.")]
    network_in: Annotated[Window, doc("Bytes a second into a broker: a percentage around its share (10%), or none.")]
    network_out: Annotated[Window, doc("Bytes a second out of a broker: a percentage around its share (10%), or none.")]


class RelaxedRow(Section, frozen=True, kw_only=True):
    """One window that cannot be met."""

    window: Annotated[
        Literal[
            "replicas", "leaders", "topic_replicas", "topic_leaders", "disk", "network_in", "network_out", "log_dirs"
        ],
        doc("Which window."),
    ]
    topic: Annotated[str | None, doc("The topic; null where the window is over all topics.")]
    wanted: Annotated[Window, doc("What is asked for: a spread (1), a percentage around the fair share (5%), or none.")]
    reached: Annotated[
        NotNegative,
        doc(
            "The spread reached. For disk, network_in and network_out: how far the farthest broker is from its "
            "share, in percent of it; for log_dirs the same of a broker's log dirs."
        ),
    ]
    why: Annotated[str, doc("Why no plan can do better.")]


class BalanceSection(Section, frozen=True, kw_only=True):
    """How even the plan is."""

    wanted: Annotated[BalanceWindows, doc("The windows that the plan was made for.")]
    relaxed: Annotated[tuple[RelaxedRow, ...], doc("The windows of `wanted` that cannot be met.")]
    asked: Annotated[BalanceWindows, doc("The windows that the YAML asks for.")]
    missed: Annotated[tuple[WindowName, ...], doc("The windows of `asked` that the plan is outside of.")]


class TermRow(Section, frozen=True, kw_only=True):
    """One term that the plan is judged by, in raw units and measured alike in all columns."""

    group: Annotated[Literal["fairness", "safety", "resilience", "movement"], doc("What kind of term it is.")]
    name: Annotated[str, doc("Name of the term.")]
    unit: Annotated[str, doc("Unit of its numbers.")]
    today: Annotated[
        Number | None, doc("For the cluster as it is today, with its own brokers and racks; null where unknown.")
    ]
    if_nothing_moves: Annotated[
        Number | None, doc("For today's placement judged by what is asked for; null where unknown.")
    ]
    plan: Annotated[Number | None, doc("For the plan; null where unknown.")]
    limit: Annotated[Number | None, doc("What it must not exceed; null without a limit.")]
    meaning: Annotated[str, doc("What it means, in one sentence.")]


class FurthestRow(Section, frozen=True, kw_only=True):
    """How far the worst broker is outside of one window of loads."""

    window: Annotated[str, doc("The window, with its scenario if it belongs to one.")]
    value: Annotated[Positive, doc("Bytes, or bytes a second.")]


class ExcessSection(Section, frozen=True, kw_only=True):
    """How far outside of the windows the plans that the bound covers may be: as far as this plan, on whichever brokers.

    Only where some window does not hold and everything may move.
    """

    replicas: Annotated[
        Count,
        doc(
            "Replicas outside of the windows of topics and brokers, weighted: in each window the first counts "
            "once, the next three count three times, further ones ten times; in windows over all topics a hundred"
            " times that."
        ),
    ]
    least_replicas: Annotated[Count, doc("The least of that for any plan, proven.")]
    loads: Annotated[
        Count,
        doc(
            "Bytes outside of the windows of loads, summed over the brokers; a byte a second, or a byte of a "
            "scenario, counts as many bytes as today's total has for each."
        ),
    ]
    least_loads: Annotated[Count, doc("The least of that for any plan with no more replicas outside, proven.")]
    furthest: Annotated[
        tuple[FurthestRow, ...],
        doc(
            "How far the worst broker is outside of each window of loads that does not hold; no plan that the "
            "bound covers may be further outside."
        ),
    ]


BoundMethod = Literal["none", "forced", "flow", "prices", "branches", "target"]


class BoundSection(Section, frozen=True, kw_only=True):
    """How near the plan is to the least possible."""

    least_bytes_moved: Annotated[Count, doc("The least bytes that any plan for this balance must move.")]
    bytes_moved: Annotated[Count, doc("Bytes copied between brokers.")]
    least_replicas_moved: Annotated[
        Count | None, doc("The least replicas that any such plan must move; null where unknown.")
    ]
    gap_percent: Annotated[NotNegative, doc("How far the plan is above the least, in percent.")]
    proof: Annotated[str, doc("Why no plan can do better, in one sentence.")]
    method: Annotated[
        BoundMethod,
        doc("How the bound is proven; target: the plan finishes another one, whose target needs each of these copies."),
    ]
    sha256: Annotated[
        Sha256 | None,
        doc("SHA-256 of bound.json, from which the bound can be worked out again; null where nothing moves."),
    ]
    excess: Annotated[
        ExcessSection | None,
        doc(
            "How far outside of the windows the plans that the bound covers may be; only where some window does "
            "not hold and everything may move."
        ),
    ] = None


class LimitRow(Section, frozen=True, kw_only=True):
    """One limit of the YAML, which the plan keeps."""

    key: Annotated[str, doc("Key in the YAML.")]
    limit: Annotated[
        Count,
        doc(
            "What is allowed: seconds for limits.eta, bytes on the broker for limits.disk_used, millionths of "
            "what the plan copies for limits.gap."
        ),
    ]
    value: Annotated[Count, doc("What the plan needs.")]
    broker: Annotated[BrokerId | None, doc("For limits.disk_used, the broker that comes nearest to it.")] = None

    @property
    def crossed(self) -> bool:
        """True where the plan needs more than is allowed."""
        return self.value > self.limit


class RisksSection(Section, frozen=True, kw_only=True):
    """Which writes are refused while the plan runs."""

    isr_known: Annotated[
        bool,
        doc("True where the state says which replicas are in sync for every partition; else all count as in sync."),
    ]
    under_min_isr: Annotated[
        tuple[Count, ...],
        doc(
            "For each batch, how many of its partitions have fewer replicas in sync than min.insync.replicas, "
            "today or once it is complete."
        ),
    ]
