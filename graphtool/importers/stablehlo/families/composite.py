"""Composites and CHLO's operations: one op where we have it, else their own decomposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.importers.assumptions import Assuming
from graphtool.importers.stablehlo.driver import own as written
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import PAIRED, Pair
from graphtool.importers.stablehlo.driver.registry import Refused, add, stablehlo
from graphtool.importers.stablehlo.driver.values import Asked, dtype_of
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.importers.stablehlo.text.attributes import Symbol
from graphtool.ir.decode import attributes
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph
from graphtool.ir.op import named
from graphtool.symbolic import symbol

# CHLO's name → our op
ROWS = {
    "erf": "erf", "erfc": "erfc", "erf_inv": "erf_inv", "lgamma": "lgamma", "digamma": "digamma",
    "polygamma": "polygamma", "acos": "acos", "asin": "asin", "atan": "atan", "acosh": "acosh",
    "asinh": "asinh", "atanh": "atanh", "cosh": "cosh", "sinh": "sinh", "tan": "tan",
    "next_after": "next_after", "bessel_i1e": "i1e",
}


# B₂ₖ / (2k)!, with Bernoulli's numbers B
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)
_TERMS = 10


def _zeta(ctx: Context, s: Any, q: Any) -> Any:
    """Σ (q + k)⁻ˢ over k ≥ 0, for s > 1: ten terms, then the formula of Euler and Maclaurin for the
    others (DLMF 2.10.1)."""
    row = dtype_of(s).numpy

    def number(x: float) -> Any:
        return np.full((), x, row)

    def power(k: int) -> Any:
        return ctx.apply(o.pow, ctx.apply(o.add, q, number(k)), ctx.apply(o.neg, s))
    total = power(0)
    for k in range(1, _TERMS):
        total = ctx.apply(o.add, total, power(k))
    end, last = ctx.apply(o.add, q, number(_TERMS)), power(_TERMS)
    rest = ctx.apply(o.div, ctx.apply(o.mul, last, end), ctx.apply(o.sub, s, number(1)))
    total = ctx.apply(o.add, total, ctx.apply(o.add, rest, ctx.apply(o.mul, last, number(0.5))))
    factor = ctx.apply(o.div, ctx.apply(o.mul, last, s), end)
    for i, b in enumerate(_BERNOULLI):
        total = ctx.apply(o.add, total, ctx.apply(o.mul, factor, number(b)))
        for j in (2 * i + 1, 2 * i + 2):
            factor = ctx.apply(o.div, ctx.apply(o.mul, factor, ctx.apply(o.add, s, number(j))), end)
    return total


def _square(ctx: Context, x: Any) -> Any:
    return ctx.apply(o.mul, x, x)


def _is_inf(sign: int) -> Callable[..., Any]:
    def test(ctx: Context, x: Any) -> Any:
        row = dtype_of(x).numpy
        infinite = ctx.apply(o.is_inf, x)
        if not sign:
            return infinite
        positive = ctx.apply(o.gt, x, np.zeros((), row))
        side = positive if sign > 0 else ctx.apply(o.not_, positive)
        return ctx.apply(o.and_, infinite, side)
    return test


def top_k(ctx: Context, x: Any, *, k: int, largest: bool = True) -> list[Any]:
    """The k greatest along the last axis, and their places; of equal ones the first."""
    values, places = o.top_k(ctx.tensor(x), k=int(k), axis=len(x.shape) - 1, largest=largest)
    return [values, cast(ctx, places, ctx.element(1))]


OURS, _OPERAND, _BOUNDS = "graphtool.", "operand", ("size_least", "size_most")
WHOLE: dict[str, Callable[..., Any]] = {
    "zeta": _zeta, "square": _square, "is_inf": _is_inf(0), "is_pos_inf": _is_inf(1),
    "is_neg_inf": _is_inf(-1)}


def _row(name: str) -> None:
    def one(ctx: Context, x: Any) -> Any:
        return ctx.apply(getattr(o, ROWS[name]), x)

    def two(ctx: Context, a: Any, b: Any) -> Any:
        return ctx.apply(getattr(o, ROWS[name]), a, b)
    WHOLE[name] = two if name in ("polygamma", "next_after") else one


for _name in ROWS:
    _row(_name)
for _name, _fn in WHOLE.items():
    add(f"chlo.{_name}", _fn, elementwise=True)
add("chlo.top_k", top_k)


@stablehlo("composite", elementwise=True)
def composite(ctx: Context, *xs: Any, name: str, decomposition: Symbol,
              composite_attributes: Any = None) -> Any:
    """An op of ours if it or CHLO's function has this name, else the decomposition, inlined."""
    if name.startswith(OURS) and not ctx.vector:
        arguments = ctx.driver.function(decomposition).arguments
        tensors = [x for x, a in zip(xs, arguments, strict=True) if not written.size(a)]
        return own_op(ctx, name.removeprefix(OURS), tensors, composite_attributes or {})
    own = name.removeprefix("chlo.") if name.startswith("chlo.") else ""
    pairs = any(isinstance(x, Pair) for x in xs)
    if pairs and name in PAIRED:
        return PAIRED[name](ctx, *xs)
    if own in WHOLE and not pairs:
        return WHOLE[own](ctx, *xs)
    if own == "top_k" and not ctx.vector:
        given = composite_attributes or {}
        return top_k(ctx, *xs, k=given["k"], largest=given.get("largest", True))
    return ctx.driver.call(ctx.driver.function(decomposition), xs, ctx.vector)


def own_op(ctx: Context, name: str, xs: Sequence[Any], given: dict[str, Any]) -> Any:
    """The op of which graphtool wrote a composite. Its operands that are no tensors stand among the
    attributes, as `operand1 = 2.0`; its regions are functions."""
    op, rest = named(name), iter(xs)
    regions = {k: ctx.driver.graph(ctx.driver.function(v)) for k, v in given.items()
               if k in op.schema and op.schema[k].annotation is Graph}
    told = {k: v for k, v in given.items() if not k.startswith(_OPERAND) and k not in regions}
    lo, hi = (None if n == "none" else int(n) for n in (told.pop(k, "none") for k in _BOUNDS))
    fixed = {int(k.removeprefix(_OPERAND)): None if v == "none" else float(v) if isinstance(
        v, str) else v for k, v in given.items() if k.startswith(_OPERAND)}
    if Trait.SIZE in op.traits and isinstance(told["size"], str):
        ctx.driver.sizes[told["size"]] = symbol(told["size"], lo, hi)
    operands = [fixed[i] if i in fixed else ctx.tensor(next(rest))
                for i in range(len(xs) + len(fixed))]
    return ctx.kept(op(*operands, **attributes(op, told, ctx.driver.sizes), **regions))


@stablehlo("custom_call")
def custom_call(ctx: Context, *xs: Any, call_target_name: str,
                indices_of_shape_operands: Any = None, **others: Any) -> Any:
    """Code outside of the program; only what marks a value, or is linear algebra, has a meaning."""
    found = TARGETS.get(str(call_target_name))
    if found is None:
        raise Refused(REASONS.get(str(call_target_name), _OUTSIDE))
    if indices_of_shape_operands is not None:  # sizes of results, which follow the operands
        xs = xs[:len(xs) - len(ints(indices_of_shape_operands))]
    return found(ctx, *xs)


def _assertion(ctx: Context, pred: Any, *values: Any) -> list[Any]:
    """What JAX asserts of open sizes: known to hold, or recorded for the run to check."""
    said = str(ctx.op.attrs.get("error_message") or "").partition("Using the following")[0].strip()
    if isinstance(pred, Asked):
        ctx.driver.promises.keep(pred)
        for a, b in ctx.driver.promises.pairs:
            if isinstance(ctx.builder, Assuming):
                ctx.builder.require(a, b)
        ctx.driver.promises.pairs.clear()
        return []
    if not isinstance(pred, np.ndarray):
        raise Refused(f"a condition on data is not supported: {said}")
    if not pred.all():
        raise InputError("GT1308", "the program asserts what no size fulfils", hint=said)
    return []


def _approx_top_k(ctx: Context, x: Any, places: Any, *_: Any) -> list[Any]:
    """What is greatest (or least, by the name of the comparator), exactly, and what stands beside
    it."""
    config = ctx.op.attrs.get("mhlo.backend_config") or {}
    (callee,) = ctx.op.attrs["called_computations"]
    axis, k = int(config["reduction_dim"]), int(config["top_k"])
    values, order = o.top_k(ctx.tensor(x), k=k, axis=axis, largest="_lt_" not in str(callee))
    rank = values.ndim
    front = [*(i for i in range(rank) if i != axis), axis]
    back = [front.index(i) for i in range(rank)]
    beside, at = (o.transpose(ctx.tensor(v), perm=tuple(front)) for v in (places, order))
    found = o.gather(beside, o.reshape(at, shape=(*at.shape, 1)), axes=(rank - 1,), batch=rank - 1)
    return [values, o.transpose(found, perm=tuple(back))]


def _same(ctx: Context, *xs: Any) -> list[Any]:
    return list(xs)


TARGETS: dict[str, Callable[..., Any]] = {
    "ApproxTopK": _approx_top_k, "shape_assertion": _assertion, "Sharding": _same,
    "annotate_device_placement": _same, "LayoutConstraint": _same}

_OUTSIDE = "custom calls are not supported: this is code outside of the program"
_PYTHON = "a callback is code of Python, which the program does not contain"
REASONS = {"xla_python_cpu_callback": _PYTHON, "xla_ffi_python_cpu_callback": _PYTHON}
"""Why calls that JAX makes are not supported."""
