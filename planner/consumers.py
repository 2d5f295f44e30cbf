"""Kafka's assignors of consumer groups, for programs; they live in `planner.whatif.assignors`."""

from planner.whatif.assignors import ASSIGNORS, assign

__all__ = ["ASSIGNORS", "assign"]
