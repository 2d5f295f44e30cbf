"""Makes assignments, and proves bounds.

Comes in: a `Problem`, a balance, a seed. Goes out: an assignment (P, W), and for the optimum the fewest bytes that any
plan moves, with a certificate. `sweep.candidates.STRATEGIES` is the list. Imports `scoring`, and never its check.
"""
