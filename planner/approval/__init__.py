"""Decides whether an approved plan may still be carried out, and what is left of it.

Input: a plan, its folder, the cluster as it is now. Output: refusals, differences, a plan of what is left. Imports
`plan`, `export` for the expected content of a folder, and `inputs` for the state of the cluster.
"""
