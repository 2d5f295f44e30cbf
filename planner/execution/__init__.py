"""How an assignment is carried out.

Comes in: a `Problem` and the chosen assignment. Goes out: each partition's change with its reason, batches and what
they cost, log dirs, limits and risks. Imports `scoring`.
"""
