"""What is typed, and what is printed.

Comes in: a command line. Goes out: text, files and an exit code. Files, the clock and Spark are reached from here. The
only package that prints; imports all others, and `spark_jobs` when a command needs it.
"""
