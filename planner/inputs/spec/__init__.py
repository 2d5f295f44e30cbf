"""Makes a `Spec` of one YAML file, by its schema and its rules."""
