"""From settings of a sweep to the choice.

Comes in: a `Spec` and a `Problem`. Goes out: candidates as rows of a table, their scores, and which one is chosen by
which rule. The same rows give the same scores here and in Spark. Imports `strategies`.
"""
