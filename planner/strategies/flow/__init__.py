"""The min-cost flow whose optimum is the plan: its network, its solver, and the choice among equal optima."""
