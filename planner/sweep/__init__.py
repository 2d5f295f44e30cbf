"""Makes the candidates of a sweep, scores them and chooses one.

Input: a `Spec` and a `Problem`. Output: candidates as rows of a table, their scores, and the chosen candidate with the
rule that chose it. The same rows give the same scores here and in Spark. Imports `strategies`.
"""
