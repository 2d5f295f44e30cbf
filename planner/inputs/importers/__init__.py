"""Reads what tools print about a cluster, with one module per format. Each makes a `StatePart` of a text."""
