"""What is measured: plans beside an exact solver, baselines and published figures; speed, memory and the sweep.

Not part of the wheel: `python -m benchmarks` runs it from a checkout, and nothing in `planner` imports it.
"""
