"""Answers other questions about a cluster and a plan: failures, growth, sizes, consumers, restarts, seeds.

Input: a `Spec`, a plan, settings. Output: documents, and their pages for a report. Imports `plan` and `report`.
"""
