"""From a plan to what people read: the terminal, report.md, report.html and its plots.

Comes in: a plan document, or a view of something else. Goes out: text. Imports `plan`.
"""
