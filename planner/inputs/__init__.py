"""Makes a `Spec` from files: the YAML, checked by its schema and rules, and what tools print about a cluster.

Input: unchecked paths and texts. Output: a `Spec`, or one error with every fault and its place.
This package imports `model`.
"""
