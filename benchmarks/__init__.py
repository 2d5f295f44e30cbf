"""The benchmarks: plans compared with an exact solver, baselines and published figures; speed, memory and the sweep.

They aren't part of the wheel: `python -m benchmarks` runs them from a checkout. `planner` doesn't import them.
"""
