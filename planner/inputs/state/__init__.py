"""Opens and merges several sources of one cluster's state, and writes it as YAML."""
