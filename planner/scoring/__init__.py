"""Judges an assignment: the independent check, windows, loads and scores.

Comes in: a `Problem` and an assignment, (P, W) indices of brokers. Goes out: violations, loads by broker, windows and
how far outside of them, scores as raw integers. Knows nothing of how assignments are made. Imports `model`.
"""
