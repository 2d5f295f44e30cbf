"""How a plan is carried out, as values: the throttle, and what one batch may hold.

`planner.model` has these among its values.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class BatchRules:
    """What one batch may hold; None means no limit. Bytes are those that the batch moves.

    `seconds` is the longest that the busiest broker of a batch may copy, at `bytes_per_sec`: the throttle, or what it
    would be. `elections` is the most preferred leaders that a batch elects.
    """

    bytes: int | None = None
    moves_per_broker: int | None = None
    replicas_per_partition: int | None = None
    seconds: int | None = None
    bytes_per_sec: int | None = None
    elections: int | None = None

    @property
    def bytes_per_broker(self) -> int | None:
        """The most bytes that a batch copies to, or from, a broker, with what producers write there meanwhile."""
        if self.seconds is None or self.bytes_per_sec is None:
            return None
        return self.seconds * self.bytes_per_sec


@dataclass(frozen=True)
class Derived:
    """A setting that the YAML leaves out: its key, the value it takes, as the YAML would have it, and why."""

    key: str
    value: str
    why: str


@dataclass(frozen=True)
class Execution:
    """How the plan will be carried out; nothing of it is run here.

    `unset` are the keys of `execution` that the YAML leaves out and that have a default (see `batches.defaults`);
    `derived` is what those became, once the changes are known.
    """

    throttle_bytes_per_sec: int | None = None
    batches: BatchRules = field(default_factory=BatchRules)
    kafka_bin_dir: str = "/opt/kafka/bin"
    unset: tuple[str, ...] = ()
    derived: tuple[Derived, ...] = ()


# The limits of a batch that have a default, by their keys in `execution.batches`; and an `execution` of defaults alone.
LIMITS = ("duration", "moves_per_broker", "replicas_per_partition", "elections")
UNSTATED = Execution(unset=("throttle", *(f"batches.{key}" for key in LIMITS)))
