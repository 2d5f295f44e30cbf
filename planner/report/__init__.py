"""Writes plans and other results for people: on the terminal, in report.md, and in report.html with its plots.

Input: a plan document, or a view of another command's result. Output: text. Imports `plan`.
"""
