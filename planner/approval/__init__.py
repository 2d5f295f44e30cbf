"""Whether what was approved may still be carried out, and what is left of it.

Comes in: a plan, its folder, the cluster as it is now. Goes out: refusals, differences, a plan of what is left. Imports
`plan`, `export` for what a folder has to hold, and `inputs` for the state of the cluster.
"""
