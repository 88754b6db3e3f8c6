"""Graphs of derivatives, of training steps, and of many examples at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.api.arguments import checked
from graphtool.ir.graph import Module
from graphtool.transforms import modules
from graphtool.transforms.training import Recipe, training


@checked
def grad(module: Module, recipe: Recipe) -> Module:
    """The gradients of a loss, or with an optimizer a whole training step, as one graph.

    `Recipe("mse")` adds the outputs `loss` and `grad.NAME` for each parameter;
    `Recipe("cross_entropy", optimizer="adam{lr=0.001}")` one step, whose state is donated.
    Raises InputError GT061x for a loss, name or model that does not fit, UnsupportedError GT0612
    for ops that have no gradient.
    """
    return training(module, recipe)


@checked
def jvp(module: Module, wrt: Sequence[str] = ("inputs",), *, bound: int | None = None) -> Module:
    """The derivative along a direction: further inputs `NAME.tangent`, outputs `tangent.NAME`.

    `bound` is the most iterations of each `while` that states none.
    """
    return modules.jvp(module, wrt, bound)


@checked
def vmap(module: Module, in_axes: Mapping[str, int | None] | None = None,
         size: int | str = "examples") -> Module:
    """The module over many examples: inputs have an axis more (0, or as `in_axes` says; None: the
    same for all), outputs have it first. `size` is a number, or the name of an open dim."""
    return modules.vmap(module, in_axes, size)
