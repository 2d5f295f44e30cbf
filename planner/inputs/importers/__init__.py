"""What tools print of a cluster, one module a format: text in, a `StatePart` out."""
