"""Weights as kernels read them: an op for each layout, which folding evaluates at build time."""

from graphtool.kernels.packing import blocks, integers, pairs, panels, parts, transformed

__all__ = ["blocks", "integers", "pairs", "panels", "parts", "transformed"]
