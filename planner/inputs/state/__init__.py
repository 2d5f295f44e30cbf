"""What several sources say of one cluster: opened, merged, and written as YAML."""
