"""Kafka's assignors of consumer groups, for programs; they live in `planner.whatif.consumers`."""

from planner.whatif.consumers.assignors import ASSIGNORS, assign

__all__ = ["ASSIGNORS", "assign"]
