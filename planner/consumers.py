"""Kafka's assignors of consumer groups, for programs; they live in `planner.whatif.assignors`."""

from planner.whatif.assignors import ASSIGNORS, Racks, assign

__all__ = ["ASSIGNORS", "Racks", "assign"]
