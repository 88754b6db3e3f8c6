"""A graph on JAX: the ops of a decomposed module as calls of jax.numpy and lax, jitted as one.

Covers the ops that the zoo's models come to, no more. Integers of 64 bits are narrowed to 32, as
JAX does by default; large float constants are arguments, so that XLA does not fold them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.jax_call import narrow, write
from graphtool import importers, passes
from graphtool.ir.graph import Node
from graphtool.ir.replay import replay
from graphtool.passes.decompose import decompose

Handler = Callable[..., Any]
LARGE = 1024  # elements
BEFORE = ("dce", "simplify", "fold", "cse")


def export(path: Path, inputs: list[np.ndarray[Any, Any]], folder: Path) -> None:
    """Write what jax_call.py loads: the function as StableHLO, and the weights that it takes."""
    module = passes.run(importers.import_source(str(path)), BEFORE, verify=False)
    graph = decompose(module.graph, keep=("lstm",))
    weights = {n: n.attrs["data"].source for n in graph.nodes if _large(n)}

    def function(large: list[Any], *xs: Any) -> list[Any]:
        held = dict(zip(weights, large, strict=True))

        def apply(node: Node, *operands: Any) -> tuple[Any, ...]:
            if node in held:
                return (held[node],)
            out = HANDLERS[node.op.name](*operands, **node.attrs)
            return out if isinstance(out, tuple) else (out,)
        return replay(graph, xs, apply)
    exported = jax.export.export(jax.jit(function))(list(weights.values()), *map(narrow, inputs))
    write(folder, exported.serialize(), list(weights.values()))


def _large(node: Node) -> bool:
    if node.op.name != "constant":
        return False
    array = node.attrs["data"].source
    return bool(array.dtype == np.float32 and array.size >= LARGE)


# ---- one function an op -------------------------------------------------------------------------


def _gather(x: Any, indices: Any, *, axes: tuple[int, ...], batch: int) -> Any:
    if batch:
        inner = tuple(a - 1 for a in axes)
        return jax.vmap(lambda a, i: _gather(a, i, axes=inner, batch=batch - 1))(x, indices)
    rows = jnp.moveaxis(x, axes, tuple(range(len(axes))))
    return rows.at[tuple(indices[..., k] for k in range(len(axes)))].get(mode="clip")


def _conv(x: Any, w: Any, *, strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
          groups: int, batch_groups: int, channels_last: bool, **_: Any) -> Any:
    axes = "DHW"[-(x.ndim - 2):]
    data = f"N{axes}C" if channels_last else f"NC{axes}"
    spatial = len(axes)
    return lax.conv_general_dilated(
        x, w, strides or (1,) * spatial, padding or ((0, 0),) * spatial,
        lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
        dimension_numbers=(data, f"OI{axes}", data), feature_group_count=groups,
        batch_group_count=batch_groups)


def _reduce_window(x: Any, *, kind: str, window: Any, strides: Any, padding: Any,
                   base_dilation: Any, window_dilation: Any) -> Any:
    start, combine = {"max": (-jnp.inf, lax.max), "sum": (0.0, lax.add)}[kind]
    return lax.reduce_window(x, start, combine, window, strides or (1,) * x.ndim,
                             padding or ((0, 0),) * x.ndim, base_dilation=base_dilation,
                             window_dilation=window_dilation)


def _matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool, **_: Any) -> Any:
    a = jnp.swapaxes(a, -1, -2) if transpose_a else a
    return jnp.matmul(a, jnp.swapaxes(b, -1, -2) if transpose_b else b)


def _pad(x: Any, *, lo: Any, hi: Any, interior: Any, value: float) -> Any:
    edges = zip(lo, hi, interior or (0,) * x.ndim, strict=True)
    return lax.pad(x, jnp.asarray(value, x.dtype), list(edges))


def _div(a: Any, b: Any) -> Any:
    integer = jnp.issubdtype(jnp.result_type(a, b), jnp.integer)
    return lax.div(*jnp.broadcast_arrays(a, b)) if integer else jnp.divide(a, b)


def _lstm(x: Any, w: Any, r: Any, bias: Any = None, h0: Any = None, c0: Any = None,
          peephole: Any = None, *, direction: str, clip: float) -> tuple[Any, ...]:
    if direction != "forward" or clip or peephole is not None:
        raise ValueError(f"an LSTM that goes {direction}, clips or peeps is not covered")
    hidden = r.shape[2]
    zero = jnp.zeros((x.shape[1], hidden), x.dtype)
    gates = x @ w[0].T
    if bias is not None:
        gates = gates + bias[0, :4 * hidden] + bias[0, 4 * hidden:]

    def step(state: tuple[Any, Any], g: Any) -> tuple[tuple[Any, Any], Any]:
        h, c = state
        i, o, f, n = jnp.split(g + h @ r[0].T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(n)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    start = (zero if h0 is None else h0[0], zero if c0 is None else c0[0])
    (h, c), y = lax.scan(step, start, gates)
    return y[:, None], h[None], c[None]


def _dtype(d: Any) -> Any:
    return {"i64": jnp.int32, "u64": jnp.uint32, "f64": jnp.float32}.get(d.name, d.numpy)


HANDLERS: dict[str, Handler] = {
    **{name: getattr(jnp, name) for name in (
        "add", "pow", "exp", "log", "tanh", "sin", "cos", "sqrt", "abs", "floor", "ceil", "sign")},
    "mul": jnp.multiply, "sub": jnp.subtract,
    "neg": jnp.negative, "min": jnp.minimum, "max": jnp.maximum, "is_nan": jnp.isnan,
    "eq": jnp.equal, "ne": jnp.not_equal, "lt": jnp.less, "le": jnp.less_equal,
    "gt": jnp.greater, "ge": jnp.greater_equal, "and": jnp.logical_and, "or": jnp.logical_or,
    "not": jnp.logical_not, "div": _div, "rsqrt": lax.rsqrt, "sigmoid": jax.nn.sigmoid,
    "erf": jax.scipy.special.erf, "select": jnp.where, "clamp": jnp.clip,
    "cast": lambda x, *, dtype, saturate: jnp.asarray(x).astype(_dtype(dtype)),
    "constant": lambda *, data, param: narrow(data.source),
    "iota": lambda *, shape, axis, dtype: lax.broadcasted_iota(_dtype(dtype), shape, axis),
    "reshape": lambda x, *, shape: jnp.reshape(x, shape),
    "transpose": lambda x, *, perm: jnp.transpose(x, perm),
    "broadcast": lambda x, *, shape: jnp.broadcast_to(x, shape),
    "slice": lambda x, *, start, limit, strides: lax.slice(x, start, limit, strides),
    "concat": lambda *xs, axis: jnp.concatenate(xs, axis),
    "reverse": lambda x, *, axes: jnp.flip(x, axes),
    "reduce_sum": lambda x, *, axes, **_: jnp.sum(x, axes, keepdims=True),
    "reduce_max": lambda x, *, axes, **_: jnp.max(x, axes, keepdims=True),
    "reduce_min": lambda x, *, axes, **_: jnp.min(x, axes, keepdims=True),
    "pad": _pad, "gather": _gather, "conv": _conv, "reduce_window": _reduce_window,
    "matmul": _matmul, "lstm": _lstm,
}
