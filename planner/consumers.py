"""The Python door of the consumers' assignors: `planner.consumers.assign`; they live in `planner.whatif.consumers`."""

from planner.whatif.consumers import assign

__all__ = ["assign"]
