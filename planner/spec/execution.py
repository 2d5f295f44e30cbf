"""The YAML's `execution` as values: what is stated, what is ruled out with `none`, and which defaults apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.amounts import parse_bytes, parse_bytes_per_sec, parse_seconds
from planner.execution_values import LIMITS
from planner.model import BatchRules, Execution
from planner.yaml_source import Document

NONE = "none"


def execution(document: Document) -> Execution:
    """The settings that are stated; the keys that are left out and have a default are in `unset`.

    `batches: none` rules out every limit of a batch. Each limit has a default of its own, but `bytes` and
    `moves_per_broker` say how large a batch may be as `duration` does: its default applies where neither is stated.
    """
    stated: Mapping[str, Any] = document.get("execution") or {}
    throttle, batches = stated.get("throttle"), stated.get("batches") or {}
    unset = ["throttle"] if throttle is None else []
    limits: Mapping[str, Any] = dict.fromkeys(LIMITS, NONE) if batches == NONE else batches
    unset += [f"batches.{key}" for key in _left_out(limits)]
    return Execution(
        throttle_bytes_per_sec=_unless_none(throttle, parse_bytes_per_sec),
        batches=BatchRules(
            bytes=_unless_none(limits.get("bytes"), parse_bytes),
            moves_per_broker=_unless_none(limits.get("moves_per_broker"), int),
            replicas_per_partition=_unless_none(limits.get("replicas_per_partition"), int),
            seconds=_unless_none(limits.get("duration"), parse_seconds),
            elections=_unless_none(limits.get("elections"), int),
        ),
        kafka_bin_dir=stated.get("kafka_bin_dir", Execution.kafka_bin_dir),
        unset=tuple(unset),
    )


def _left_out(limits: Mapping[str, Any]) -> Iterator[str]:
    """The limits that take their defaults; replicas are counted only in place of bytes that aren't known."""
    of_bytes, of_replicas = (limits.get(key, NONE) != NONE for key in ("bytes", "moves_per_broker"))
    timed = limits.get("duration", NONE if of_bytes or of_replicas else None) != NONE
    applies = {"duration": timed, "moves_per_broker": timed or of_bytes}
    yield from (key for key in LIMITS if key not in limits and applies.get(key, True))


def _unless_none(value: Any, parse: Callable[[Any], int]) -> int | None:
    return None if value is None or value == NONE else parse(value)
