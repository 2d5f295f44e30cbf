"""Makes assignments, and proves bounds.

Comes in: a `Problem` and a `Candidate`. Goes out: an assignment (P, W), and for the optimum the fewest bytes that any
plan moves, with a certificate. `catalog.STRATEGIES` is the list. Imports `scoring`, and never its check.
"""
