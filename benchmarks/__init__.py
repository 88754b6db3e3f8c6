"""Measurements of graphtool beside other runtimes: `python -m benchmarks COMMAND`.

What they need (torch, transformers, other runtimes) is no dependency of graphtool itself.
"""
