"""Graphs into other graphs: quantisation, derivatives, and many examples at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from graphtool.api.arguments import Array, Pathlike, checked
from graphtool.ir.graph import Module
from graphtool.passes.quantise.calibrate import SAMPLES, batches, from_arrays
from graphtool.transforms import modules
from graphtool.transforms.quantising import Quantisation, quantised
from graphtool.transforms.training import Recipe, training


@checked
def quantise(module: Module, how: Quantisation | None = None,
             examples: Mapping[str, Array] | Pathlike | None = None, *,
             samples: int = SAMPLES) -> Module:
    """The module with its layers in fewer bits.

    `examples` are arrays by the names of the inputs, with examples along the first axis, or a file
    or directory of them; at most `samples` are used. Without `how` it is `Quantisation()`, static
    int8, with examples, else dynamic int8. Raises UsageError GT0643, GT0644, InputError GT0640,
    GT0641, GT0642, GT0645.
    """
    how = how or Quantisation(("static",) if examples is not None else ("dynamic",))
    if examples is None:
        return quantised(module, how)
    data = from_arrays(examples, module, samples) if isinstance(examples, Mapping) else (
        batches(Path(examples), module, samples))
    return quantised(module, how, data)


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
def vjp(module: Module, wrt: Sequence[str] = ("inputs",), of: Sequence[str] = (), *,
        bound: int | None = None) -> Module:
    """The products of cotangents with the Jacobians: further inputs `OUTPUT.cotangent` for the
    outputs `of` (all of floats), outputs `cotangent.NAME`.

    `bound` is the most iterations of each `while` that states none.
    """
    return modules.vjp(module, wrt, of, bound)


@checked
def jacobian(module: Module, wrt: Sequence[str] = ("inputs",), of: Sequence[str] = (), *,
             bound: int | None = None) -> Module:
    """Whole Jacobians: outputs `jacobian.OUTPUT.NAME` of shape (*shape of the output, *shape of
    the value) for the outputs `of` (all of floats).

    `bound` is the most iterations of each `while` that states none. Raises InputError GT0646 for
    an open size.
    """
    return modules.jacobian(module, wrt, of, bound)


@checked
def vmap(module: Module, in_axes: Mapping[str, int | None] | None = None,
         size: int | str = "examples") -> Module:
    """The module over many examples: inputs have an axis more (0, or as `in_axes` says; None: the
    same for all), outputs have it first. `size` is a number, or the name of an open dim."""
    return modules.vmap(module, in_axes, size)
