"""Other questions about a cluster and a plan: failures, growth, sizes, consumers, restarts, origins of placements.

Comes in: a `Spec`, a plan, settings. Goes out: documents, and their pages for a report. Imports `plan` and `report`.
"""
