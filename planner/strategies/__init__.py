"""Makes assignments, and proves bounds.

Takes a `Problem`, a balance and a seed. Returns an assignment (P, W), and for the optimum the fewest bytes that any
plan moves, with a certificate. `sweep.candidates.STRATEGIES` is the list. Imports `scoring`, but never its check.
"""
