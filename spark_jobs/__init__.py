"""The only package that uses Spark: finds a Java, opens sessions and runs jobs. `planner` never imports pyspark."""
