"""The command line.

Input: arguments. Output: text, files and an exit code. Only this package prints and calls Spark, and it uses files and
the clock. It imports all other packages, and `spark_jobs` if a command needs it.
"""
