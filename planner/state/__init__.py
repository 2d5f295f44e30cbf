"""What clusters, tools and files say of the state of a cluster, read, merged and written as YAML."""
