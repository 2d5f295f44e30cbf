"""One YAML file, its schema and its rules, as a `Spec`."""
