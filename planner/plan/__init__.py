"""The plan document: its builder, its sections, its file and its bound.

Comes in: what was swept and chosen. Goes out: plan.json as a document with its id, the digest that reviewers approve
(`document.codec`), checked against its schema and itself when it is read again. Imports `sweep` and `execution`.
"""
