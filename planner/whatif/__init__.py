"""Other questions about a cluster and a plan: failures, growth, consumers, and where placements came from.

Comes in: a `Spec`, a plan, settings. Goes out: documents, and their pages for a report. Imports `plan` and `report`.
"""
