"""The arena size of a module in bytes, found by running passes and lowering without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import passes
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import Rules
from graphtool.lower import lower
from graphtool.symbolic import at_least_sizes
from graphtool.target import Target
from graphtool.transforms.training import programs


def arena_of(target: Target, rules: Rules | None = None) -> Callable[[Module], int]:
    """A function that returns the arena size in bytes of a module built for the target.

    For a training graph it measures the step. Open dims count with their least sizes. Results are
    cached.
    """
    seen: dict[tuple[Any, ...], int] = {}

    def measure(module: Module) -> int:
        key = tuple((n.op, *((v.hint, v.type) for v in n.outputs))
                    for n in module.graph.nodes)
        if key not in seen:
            seen[key] = compiled(module)
        return seen[key]

    def compiled(module: Module) -> int:
        step = programs(module)["step"] if module.meta.get("training") else module
        ready = passes.run(step, verify=False, supply={"target": target, "rules": rules})
        return at_least_sizes(lower(ready, target).arena)
    return measure
