"""Kernel selection: which kernel computes a node, with which parameters.

It has sites, plans, costs, and the choice among plans.
"""
