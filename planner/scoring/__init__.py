"""Judges an assignment: the independent check, windows, loads and scores.

Takes a `Problem` and an assignment, (P, W) indices of brokers. Returns violations, loads by broker, windows and how far
outside of them it is, and scores as raw integers. Knows nothing of how assignments are made. Imports `model`.
"""
