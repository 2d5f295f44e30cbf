"""From files to a `Spec`: the YAML with its schema and rules, and what Kafka's tools and others print of a cluster.

Comes in: paths and texts that nobody has checked. Goes out: a `Spec`, or one error with every fault and its place.
Imports `model`.
"""
