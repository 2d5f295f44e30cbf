"""The only door to Spark: finds a Java, opens sessions and runs the sweep in them. `planner` never imports pyspark."""
