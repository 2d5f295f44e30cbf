"""The plan document: its builder, its sections, its file and its bound.

Input: the sweep's results and the chosen candidate. Output: plan.json with its id, the digest that reviewers approve
(`document.codec`). Reading it checks the schema and contradictions. Imports `sweep` and `execution`.
"""
