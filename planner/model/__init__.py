"""The values that all other packages use.

`cluster` and `spec` hold the facts of a cluster and the change that is asked for; `problem` holds the same as flat
arrays. `build_problem` works out what placement, caps, apart and leader racks mean for each topic and broker. Also
here: units, errors, how names and numbers are written for people, reading files within limits, signals and processes.
This package imports no other package.
"""
