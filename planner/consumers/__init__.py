"""Consumer groups: Kafka's assignors, what happens to a group, and what that moves."""

from planner.consumers.assignors import ASSIGNORS, assign

__all__ = ["ASSIGNORS", "assign"]
