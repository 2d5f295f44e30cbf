"""What the plan was chosen from: other candidates, variants, scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from planner.plan.document.field_types import (
    LARGEST,
    BrokerId,
    Count,
    Name,
    NotNegative,
    Number,
    Positive,
    Section,
    Sha256,
    Whole,
    doc,
)
from planner.plan.document.request_types import ChangesSection
from planner.plan.document.term_types import BalanceWindows


class ChoiceSection(Section, frozen=True, kw_only=True):
    """Which plan was chosen, and why."""

    rule: Annotated[
        Literal["asked", "within_budget", "most_even_within_bytes", "fewest_bytes_within_imbalance"],
        doc("The rule of sweep.choose."),
    ]
    value: Annotated[
        Count | None,
        doc("The amount of the rule: bytes, or millionths above the fair share; null for a rule without one."),
    ]
    variant: Annotated[str, doc("The variant: changes, or a name from sweep.variants.")]
    why: Annotated[str, doc("The rule with this plan's numbers, as a phrase.")]


class CandidateFigures(Section, frozen=True, kw_only=True):
    """A candidate's figures, as far as every row about a candidate has them."""

    label: Annotated[
        Name,
        doc(
            "What the row is: do nothing, this plan, all at once over budget, Kafka --generate, or the best or "
            "median of its placements."
        ),
    ]
    candidate: Annotated[Count, doc("The candidate's number in the sweep.")]
    strategy: Annotated[str, doc("Strategy that made it.")]
    violations: Annotated[Count, doc("Hard rules broken; 0 in a valid plan.")]
    bytes_moved: Annotated[Count, doc("Bytes copied between brokers.")]
    replicas_moved: Annotated[Count, doc("Replicas that a broker has to copy.")]
    leaders_changed: Annotated[Count, doc("Partitions whose leader changes.")]
    replica_spread: Annotated[Count, doc("Most minus fewest replicas on a broker.")]
    leader_spread: Annotated[Count, doc("Most minus fewest preferred leaders on a broker.")]
    topic_replica_spread: Annotated[
        Count, doc("Most minus fewest replicas of one topic on a broker, for the worst topic.")
    ]
    imbalance_percent: Annotated[
        NotNegative,
        doc("How far the broker furthest above its fair share is above it, in percent, where that is most."),
    ]
    imbalance_measure: Annotated[
        Literal["replicas", "leaders", "size_bytes", "network_in", "network_out"], doc("That measure.")
    ]
    left_to_change: Annotated[
        Count, doc("Partitions that are not as the changes and the rack rule ask; 0 where all are.")
    ]
    balance_kept: Annotated[bool, doc("True where the balance asked for is kept as well as can be.")]
    moves_unforced: Annotated[
        bool, doc("True where it moves replicas that `rebalance` keeps where they are, as Kafka's --generate does.")
    ]


class ComparedRow(CandidateFigures, frozen=True, kw_only=True):
    """What the plan is compared with: doing nothing, Kafka's own placements, and the plan itself."""


class FrontFigures(CandidateFigures, frozen=True, kw_only=True):
    """Figures of a candidate that a plan can be chosen from."""

    least_bytes_moved: Annotated[
        Count | None, doc("The least bytes that any plan for its windows must move; null where unknown.")
    ]
    gap_percent: Annotated[Number | None, doc("How far it is above that, in percent; null where unknown.")]
    seconds_at_throttle: Annotated[
        Count | None,
        doc("The least seconds that the busiest broker takes to copy its bytes; null without a throttle or sizes."),
    ]
    scenarios_missed: Annotated[
        Count, doc("In how many scenarios a window of bytes or traffic, or a disk, doesn't hold.")
    ]


class VariantRow(FrontFigures, frozen=True, kw_only=True):
    """One alternative to the change, with its best plan."""

    name: Annotated[str, doc("The variant: changes, or a name from sweep.variants.")]
    changes: Annotated[ChangesSection, doc("The change that it asks for.")]
    brokers: Annotated[Positive, doc("Brokers that hold replicas afterwards.")]
    why_not: Annotated[str | None, doc("Why it cannot be chosen; null where it can.")]
    chosen: Annotated[bool, doc("True for this plan.")]


class ParetoRow(FrontFigures, frozen=True, kw_only=True):
    """One candidate that no other beats in both bytes moved and imbalance, or this plan."""

    variant: Annotated[str, doc("The variant: changes, or a name from sweep.variants.")]
    balance: Annotated[BalanceWindows, doc("The windows that it was made for.")]
    scenarios: Annotated[
        Literal["none", "all"], doc("Whether it was planned for today's bytes alone, or for all scenarios too.")
    ]
    chosen: Annotated[bool, doc("True for this plan.")]


class OutsideRow(Section, frozen=True, kw_only=True):
    """One broker outside of one window."""

    window: Annotated[
        Literal["disk", "network_in", "network_out", "disk_used"],
        doc("The window; disk_used where the broker's disk, or limits.disk_used, is too small."),
    ]
    broker: BrokerId
    value: Annotated[Count, doc("Bytes, or bytes a second, that the broker has then.")]
    least: Annotated[Count, doc("The least that is allowed.")]
    most: Annotated[Count, doc("The most that is allowed.")]


class ScenarioRow(Section, frozen=True, kw_only=True):
    """What the plan is like in one scenario."""

    name: Annotated[str, doc("Name of the scenario.")]
    feasible: Annotated[bool, doc("True where the windows of bytes and traffic hold, and the disks suffice, then too.")]
    outside: Annotated[tuple[OutsideRow, ...], doc("The brokers for which they do not hold.")]


class Winner(BalanceWindows, frozen=True, kw_only=True):
    """The candidate that this plan can be made again from, with the windows it was made for."""

    candidate: Annotated[Count, doc("Number of the candidate in the sweep.")]
    strategy: Annotated[str, doc("Name of the strategy.")]
    seed: Annotated[Whole, doc("Seed of what is drawn.")]
    start_index: Annotated[
        int, Meta(ge=-1, le=LARGEST), doc("Kafka's start index, -1: drawn for each topic from the seed.")
    ]
    next_replica_shift: Annotated[
        int, Meta(ge=-1, le=LARGEST), doc("Kafka's next replica shift, -1: drawn for each topic from the seed.")
    ]
    scenarios: Annotated[
        Literal["none", "all"], doc("Whether it was planned for today's bytes alone, or for all scenarios too.")
    ]


class CandidatesSection(Section, frozen=True, kw_only=True):
    """The sweep that the plan was chosen from."""

    evaluated: Annotated[Count, doc("Candidates tried.")]
    by_strategy: Annotated[Mapping[str, Count], doc("Name of a strategy to the number of its candidates.")]
    winner: Annotated[Winner, doc("The candidate that this plan can be made again from.")]
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{16}$"), doc("Digest of the winner's assignment.")]
    rows_sha256: Annotated[
        Sha256 | None,
        doc(
            "SHA-256 over the rows of candidates.parquet: the names, types and values of its columns; null where "
            "there is no such file."
        ),
    ]
    rule: Annotated[str, doc("How the winner was chosen, in one sentence.")]
