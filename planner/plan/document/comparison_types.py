"""How the plan is judged (windows, terms, bound, limits, risks), and the other candidates and scenarios."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, structs

from planner.model.document_fields import (
    LARGEST,
    Count,
    NameText,
    NotNegative,
    Number,
    Positive,
    Section,
    Sha256,
    Whole,
    Window,
    WindowName,
    doc,
)
from planner.model.spec import ChoiceRule
from planner.plan.document.request_types import ChangesSection
from planner.scoring.growth_scenarios import OutsideRow
from planner.scoring.missed_targets import RelaxedRow, SharesRow

# Labels of two rows that every comparison has.
THIS_PLAN, DO_NOTHING = "this plan", "do nothing"


def _of_counts(what: str) -> Meta:
    return doc(f"{what}: a spread (1), a percentage around the fair share (5%), or none.")


class BalanceWindows(Section, frozen=True, kw_only=True):
    """The windows of a balance: a spread (1), a percentage around the fair share (5%), or none.

    Within a budget each broker may go only a part of its way from today: `20.9% of the way to 10%`.
    """

    replicas: Annotated[Window, _of_counts("Replicas on a broker")]
    leaders: Annotated[Window, _of_counts("Preferred leaders on a broker")]
    topic_replicas: Annotated[Window, _of_counts("Replicas of a topic on a broker")]
    topic_leaders: Annotated[Window, _of_counts("Preferred leaders of a topic on a broker")]
    disk: Annotated[Window, doc("Bytes on a broker: a percentage around its share (10%), or none.")]
    network_in: Annotated[Window, doc("Bytes per second to a broker: a percentage around its share (10%), or none.")]
    network_out: Annotated[Window, doc("Bytes per second from a broker: a percentage around its share (10%), or none.")]

    def unlike(self, other: "BalanceWindows") -> dict[str, str]:
        """Those of its windows that the other balance has otherwise, by name."""
        theirs = structs.asdict(other)
        return {window: value for window, value in structs.asdict(self).items() if value != theirs[window]}


class BalanceSection(Section, frozen=True, kw_only=True):
    """How even the plan is."""

    wanted: Annotated[BalanceWindows, doc("The windows that the plan was made for.")]
    relaxed: Annotated[tuple[RelaxedRow, ...], doc("The windows of `wanted` that are not met.")]
    asked: Annotated[BalanceWindows, doc("The windows that the YAML asks for.")]
    missed: Annotated[tuple[WindowName, ...], doc("The windows of `asked` that the plan is outside of.")]
    shares: Annotated[
        tuple[SharesRow, ...] | None, doc("The fair shares of the windows in which brokers have unlike ones.")
    ] = None


class TermRow(Section, frozen=True):
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
    value: Annotated[Positive, doc("Bytes, or bytes per second.")]


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
    gap_percent: Annotated[NotNegative, doc("How much of what the plan copies is above the least, in percent.")]
    proof: Annotated[str, doc("Why no plan can do better, in one sentence.")]
    method: Annotated[
        BoundMethod,
        doc("How the bound is proven; target: the plan finishes another one, whose target needs each of these copies."),
    ]
    sha256: Annotated[
        Sha256 | None,
        doc(
            "SHA-256 of bound.json, from which the bound can be worked out again; null where nothing moves, and "
            "without a proof."
        ),
    ]
    excess: Annotated[
        ExcessSection | None,
        doc(
            "How far outside of the windows the plans that the bound covers may be; only where some window does "
            "not hold and everything may move."
        ),
    ] = None


class ChoiceSection(Section, frozen=True, kw_only=True):
    """Which plan was chosen, and why."""

    rule: Annotated[ChoiceRule, doc("The rule of sweep.choose.")]
    value: Annotated[
        Count | None,
        doc("The amount of the rule: bytes, millionths above the fair share, bytes/s or months; null without one."),
    ]
    variant: Annotated[str, doc("The variant: changes, or a name from sweep.variants.")]
    why: Annotated[str, doc("The rule with this plan's numbers, as a phrase.")]


class CandidateFigures(Section, frozen=True, kw_only=True):
    """A candidate's figures, as far as every row about a candidate has them."""

    label: Annotated[
        NameText,
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
    months_until_full: Annotated[
        Count | None,
        doc(
            "The month in which a broker is first above its disk's limit as topics grow, 0 for today; one more than "
            "the months looked ahead if none is. Left out where growth, sizes or disks are unknown."
        ),
    ] = None


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
    targets_missed: Annotated[bool, doc("True where some window asked for does not hold.")]
    worst_hour: Annotated[
        Count | None,
        doc("The highest bytes/s, in or out, of any broker in any hour of the week; left out where they are unknown."),
    ] = None
    hours_above_capacity: Annotated[
        Count | None,
        doc("Hours of brokers with more traffic, in or out, than capacity.network; left out where either is unknown."),
    ] = None


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
