"""What every other package speaks in.

The facts of a cluster and the change that is asked for (`cluster`, `spec`), and the same as flat arrays (`problem`).
`build_problem` works out what placement, caps, apart and leader racks mean for each topic and broker. Units, errors,
and how names and numbers are written for people. Also the few edges that all need: a file read within limits, signals,
processes. Imports no other package.
"""
