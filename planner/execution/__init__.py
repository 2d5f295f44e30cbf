"""Decides how an assignment is carried out.

Input: a `Problem` and the chosen assignment. Output: each partition's change with its reason, batches and their costs,
log dirs, limits and risks. Imports `scoring`.
"""
