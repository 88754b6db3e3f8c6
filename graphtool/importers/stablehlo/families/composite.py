"""Composites, as one op where we have it, else by their own decomposition; and custom calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool.errors import InputError
from graphtool.importers.stablehlo.driver import own as written
from graphtool.importers.stablehlo.driver.parts import PAIRED
from graphtool.importers.stablehlo.driver.registry import HANDLERS, stablehlo
from graphtool.importers.stablehlo.families.chlo import top_k
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.importers.stablehlo.kit import Array, Complex, Context, Refused, o
from graphtool.importers.stablehlo.text.attributes import FunctionName
from graphtool.ir.decode import attributes
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph
from graphtool.ir.op import named
from graphtool.symbolic import Condition, symbol

OURS, _OPERAND, _BOUNDS = "graphtool.", "operand", ("size_least", "size_most")


@stablehlo("composite", elementwise=True)
def composite(ctx: Context, *xs: Any, name: str, decomposition: FunctionName,
              composite_attributes: Any = None) -> Any:
    """An op of ours if it or CHLO's function has this name, else the decomposition, inlined."""
    if name.startswith(OURS) and not ctx.vector:
        arguments = ctx.driver.function(decomposition).arguments
        tensors = [x for x, a in zip(xs, arguments, strict=True) if not written.size(a)]
        return own_op(ctx, name.removeprefix(OURS), tensors, composite_attributes or {})
    plain = name.removeprefix("chlo.") if name.startswith("chlo.") else ""
    pairs = any(isinstance(x, Complex) for x in xs)
    if pairs and name in PAIRED:
        return PAIRED[name](ctx, *xs)
    function = HANDLERS.get(name)
    if plain and function and function.elementwise and not function.attrs and not pairs:
        return function.fn(ctx, *xs)
    if plain == "top_k" and not ctx.vector:
        given = composite_attributes or {}
        return top_k(ctx, *xs, k=given["k"], largest=given.get("largest", True))
    return ctx.driver.call(ctx.driver.function(decomposition), xs, ctx.vector)


def own_op(ctx: Context, name: str, xs: Sequence[Any], given: dict[str, Any]) -> Any:
    """The op that graphtool wrote as a composite. Its operands that are no tensors stand among the
    attributes, as `operand1 = 2.0`; its regions are functions."""
    op, rest = named(name), iter(xs)
    regions = {k: ctx.driver.graph(ctx.driver.function(v)) for k, v in given.items()
               if k in op.schema and op.schema[k].annotation is Graph}
    node_attrs = {k: v for k, v in given.items() if not k.startswith(_OPERAND) and k not in regions}
    lo, hi = (None if n == "none" else int(n) for n in (node_attrs.pop(k, "none") for k in _BOUNDS))
    fixed = {int(k.removeprefix(_OPERAND)): None if v == "none" else float(v) if isinstance(
        v, str) else v for k, v in given.items() if k.startswith(_OPERAND)}
    if Trait.SIZE in op.traits and isinstance(node_attrs["size"], str):
        ctx.driver.sizes[node_attrs["size"]] = symbol(node_attrs["size"], lo, hi)
    operands = [fixed[i] if i in fixed else next(rest) for i in range(len(xs) + len(fixed))]
    return ctx.kept(ctx.builder.record(
        op, operands, {**attributes(op, node_attrs, ctx.driver.sizes), **regions}))


@stablehlo("custom_call")
def custom_call(ctx: Context, *xs: Any, call_target_name: str,
                indices_of_shape_operands: Any = None, **others: Any) -> Any:
    """Code outside of the program; only what marks a value, or is linear algebra, has a meaning."""
    target = TARGETS.get(str(call_target_name))
    if target is None:
        raise Refused(REASONS.get(str(call_target_name), _OUTSIDE))
    if indices_of_shape_operands is not None:  # sizes of results, which follow the operands
        xs = xs[:len(xs) - len(ints(indices_of_shape_operands))]
    return target(ctx, *xs)


def _assertion(ctx: Context, pred: Array, *values: Array) -> list[Any]:
    """What JAX asserts of open sizes: known to hold, or recorded for the run to check."""
    said = str(ctx.op.attrs.get("error_message") or "").partition("Using the following")[0].strip()
    condition = pred.known.item() if pred.known is not None and pred.ndim == 0 else None
    if isinstance(condition, Condition):
        ctx.driver.promises.keep(condition)
        for a, b in ctx.driver.promises.pairs:
            ctx.builder.require(a, b)
        ctx.driver.promises.pairs.clear()
        return []
    if pred.numbers is None:
        raise Refused(f"a condition on data is not supported: {said}")
    if not pred.numbers.all():
        raise InputError("GT1308", "the program asserts what no size fulfils", hint=said)
    return []


def _approx_top_k(ctx: Context, x: Array, places: Array, *_: Array) -> list[Array]:
    """What is greatest (or least, by the name of the comparator), exactly, and what stands beside
    it."""
    config = ctx.op.attrs.get("mhlo.backend_config") or {}
    (callee,) = ctx.op.attrs["called_computations"]
    axis, k = int(config["reduction_dim"]), int(config["top_k"])
    values, order = o.top_k(x, k=k, axis=axis, largest="_lt_" not in str(callee))
    rank = values.ndim
    front = [*(i for i in range(rank) if i != axis), axis]
    back = [front.index(i) for i in range(rank)]
    beside, at = (v.transpose(front) for v in (places, order))
    picked = o.gather(beside, at.unsqueeze(), axes=(rank - 1,), batch=rank - 1)
    return [values, picked.transpose(back)]


def _same(ctx: Context, *xs: Any) -> list[Any]:
    return list(xs)


TARGETS: dict[str, Callable[..., Any]] = {
    "ApproxTopK": _approx_top_k, "shape_assertion": _assertion, "Sharding": _same,
    "annotate_device_placement": _same, "LayoutConstraint": _same}

_OUTSIDE = "custom calls are not supported: this is code outside of the program"
_PYTHON = "a callback is code of Python, which the program does not contain"
REASONS = {"xla_python_cpu_callback": _PYTHON, "xla_ffi_python_cpu_callback": _PYTHON}
"""Why calls that JAX makes are not supported."""
