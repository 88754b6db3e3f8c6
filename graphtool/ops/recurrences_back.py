"""The gradient of a recurrence: back over the steps with the values they kept.

It exists as scans and as one op for which there is a kernel. The gradient of the weights is one
product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ir.plan import Plan
from graphtool.ops.common import composite, filled, need
from graphtool.ops.costs import PANELS
from graphtool.ops.recurrence_steps import (
    COUNT,
    GATES,
    KEPT,
    State,
    at,
    between,
    directions,
    halves,
    one_direction,
    parts,
    plus,
    scan,
    unpacked,
)
from graphtool.symbolic import ceildiv


def vjp(g: Any, y: Any, p: Any, r: Any, bias: Any = None, h0: Any = None, c0: Any = None, *,
         kind: str, direction: str, packed: int, plan: Plan | None) -> tuple[Any, ...]:
    """The gradients of a recurrence.

    The kept values have cotangents only if a gradient is differentiated again. The kernel does not
    support them, so the steps are then written as scans.
    """
    gy, gh, *gc, gkept = g
    kept = y[0] if KEPT[kind] == 1 else y[-1]  # a plain RNN keeps the state, which is its result
    weights = unpacked(r, p.shape[3], packed)
    known = (weights, y[0], kept, gy, gh, h0, *gc, *((c0,) if gc else ()))
    if gkept is None:
        dp, dh0, *dc0 = o.recurrence_grad(*known, kind=kind, direction=direction)
    else:
        dp, dh0, *dc0 = _steps_back(*known, kind=kind, direction=direction, gkept=gkept)
    dq = dp
    if kind == "gru_linear":
        gates, new = halves(dp, 3)
        grad = new * parts(kept, 4)[1]
        dq = o.concat(gates, grad if gkept is None else grad + parts(gkept, 4)[3], axis=3)
    before, count = _before(y[0], h0, direction), COUNT[direction]
    rows = [(_flat(one_direction(before[d], d)), _flat(one_direction(dq, d))) for d in range(count)]
    if kind == "gru":
        resets = [_flat(one_direction(parts(kept, 3)[1], d)) for d in range(count)]
        dr = [o.concat(o.matmul(x, q[0], transpose_a=True),
                       o.matmul(z * x, q[1], transpose_a=True), axis=1)
              for (x, grad), z in zip(rows, resets, strict=True) for q in [halves(grad, 3)]]
    else:
        dr = [o.matmul(x, grad, transpose_a=True) for x, grad in rows]
    grown = o.stack(*dr, axis=0)
    return (dp, o.pack(grown, nr=packed) if packed else grown,
            None if bias is None else o.reshape(o.reduce_sum(dq, axes=(0, 2)), shape=bias.shape),
            dh0, *dc0)


def _before(y: Any, first: Any, direction: str) -> list[Any]:
    """For each direction the states before each step, as windows of one tensor: y, with the
    first states at its ends."""
    edge = (filled(y, 0.0, (1, *y.shape[1:])) if first is None
            else o.reshape(first, shape=(1, *first.shape)))
    length, backwards = y.shape[0], direction == "reverse"
    match direction:
        case "bidirectional":
            whole = o.concat(edge, y, edge, axis=0)
        case _:
            whole = o.concat(*((y, edge) if backwards else (edge, y)), axis=0)
    starts = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 2)}[direction]
    return [between(whole, 0, s, length + s) for s in starts]


def _flat(x: Any) -> Any:
    """[T, B, H] as a matrix, one row for each step and sample."""
    return o.reshape(x, shape=(x.shape[0] * x.shape[1], x.shape[2]))


def _grad_types(r: TensorType, y: TensorType, kept: TensorType, gy: TensorType | None = None,
                gh: TensorType | None = None, h0: TensorType | None = None,
                gc: TensorType | None = None, c0: TensorType | None = None, *, kind: str,
                direction: str, packed: int, plan: Plan | None = None) -> tuple[TensorType, ...]:
    need(kind in GATES and direction in COUNT, f"unknown kind {kind!r} or direction {direction!r}")
    need(y.rank == 4 and r.rank == 3 + (packed > 0),
         f"y must have rank 4 and r rank 3, got {y} and {r}")
    (length, count, batch, hidden), wide = y.shape, GATES[kind] * y.shape[3]
    state = (count, batch, hidden)
    weights = (count, ceildiv(hidden, packed), wide, packed) if packed else (count, hidden, wide)
    for name, got, shape in (("r", r, weights), ("gy", gy, y.shape), ("gh", gh, state),
                             ("kept", kept, (*y.shape[:3], KEPT[kind] * hidden)),
                             ("gc", gc, state), ("h0", h0, state), ("c0", c0, state)):
        want = TensorType(y.dtype, shape)
        need(got is None or got == want, f"{name} is {got}, expected {want}")
    states = (TensorType(y.dtype, state),) * (2 if kind == "lstm" else 1)
    return TensorType(y.dtype, (length, count, batch, wide)), *states


@composite(types=_grad_types, lowering=Lowering.STATEMENTS, plans=(PANELS,))
def recurrence_grad(r: Any, y: Any, kept: Any, gy: Any = None, gh: Any = None, h0: Any = None,
                    gc: Any = None, c0: Any = None, *, kind: str, direction: str = "forward",
                    packed: int = 0, plan: Plan | None = None) -> Any:
    """The gradients of p and of the first states of a recurrence.

    y and kept are its results, gy, gh and gc the cotangents of y, h and c. With `packed`, r is
    transposed and in panels, [D, ⌈H/packed⌉, G·H, packed].
    """
    if packed:
        r = o.transpose(unpacked(r, y.shape[3], packed), perm=(0, 2, 1))
    return _steps_back(r, y, kept, gy, gh, h0, gc, c0, kind=kind, direction=direction)


def _steps_back(r: Any, y: Any, kept: Any, gy: Any = None, gh: Any = None, h0: Any = None,
                gc: Any = None, c0: Any = None, *, kind: str, direction: str,
                gkept: Any = None) -> tuple[Any, ...]:
    backs = {"lstm": _lstm_back, "gru": _gru_back, "gru_linear": _gru_linear_back}
    back = backs.get(kind, _tanh_back if kind == "tanh" else _relu_back)
    before = _before(y, h0, direction) if kind.startswith("gru") else None
    if kind == "lstm":
        before = _before(parts(kept, 5)[4], c0, direction)
    results = []
    for d, backwards in directions(direction):
        start = [filled(y, 0.0, y.shape[2:]) if s is None else at(s, d)
                 for s in ((gh, gc) if kind == "lstm" else (gh,))]
        rows = [None if x is None else one_direction(x, d)
                for x in (kept, before and before[d], gy, gkept)]
        results.append(scan(_step_back(back, KEPT[kind]), start, rows, [at(r, d)], not backwards))
    ends = [o.stack(*(f[i] for f in results), axis=0) for i in range(len(results[0]) - 1)]
    return o.stack(*(f[-1] for f in results), axis=1), *ends


def _step_back(back: Callable[..., State], count: int) -> Callable[..., State]:
    """The gradient of one step as the body of a scan; it adds the cotangent of the step's
    result."""
    def step(state: Any, rows: Any, fixed: Any) -> State:
        kept, before, gy, gkept = rows
        dh, *rest = state
        more = parts(gkept, count) if gkept is not None else [None] * count
        return back(plus(dh, gy), rest, parts(kept, count), before, more, fixed[0])
    return step


def _slope(y: Any) -> Any:
    """The derivative of sigmoid, from its result."""
    return y * (1.0 - y)


def _product(q: Any, u: Any) -> Any:
    return o.matmul(q, u, transpose_b=True)


def _lstm_back(dh: Any, rest: Any, kept: Any, before: Any, more: Any, u: Any) -> State:
    i, out, f, g, c = kept
    tanh_c = o.tanh(c)
    dc = plus(rest[0] + dh * out * (1.0 - tanh_c * tanh_c), more[4])
    dq = o.concat(plus(dc * g, more[0]) * _slope(i), plus(dh * tanh_c, more[1]) * _slope(out),
                  plus(dc * before, more[2]) * _slope(f), plus(dc * i, more[3]) * (1.0 - g * g),
                  axis=1)
    return _product(dq, u), dc * f, dq


def _gru_back(dh: Any, _: Any, kept: Any, before: Any, more: Any, u: Any) -> State:
    z, reset, n = kept
    u_gates, u_new = halves(u, 3)
    dn = plus(dh * (1.0 - z), more[2]) * (1.0 - n * n)
    dz = plus(dh * (before - n), more[0]) * _slope(z)
    inner = _product(dn, u_new)
    gates = o.concat(dz, plus(inner * before, more[1]) * _slope(reset), axis=1)
    return dh * z + inner * reset + _product(gates, u_gates), o.concat(gates, dn, axis=1)


def _gru_linear_back(dh: Any, _: Any, kept: Any, before: Any, more: Any, u: Any) -> State:
    z, reset, n, from_state = kept
    dn = plus(dh * (1.0 - z), more[2]) * (1.0 - n * n)
    dz = plus(dh * (before - n), more[0]) * _slope(z)
    gates = o.concat(dz, plus(dn * from_state, more[1]) * _slope(reset), axis=1)
    dq = o.concat(gates, plus(dn * reset, more[3]), axis=1)
    return dh * z + _product(dq, u), o.concat(gates, dn, axis=1)


def _tanh_back(dh: Any, _: Any, kept: Any, __: Any, more: Any, u: Any) -> State:
    dq = plus(dh, more[0]) * (1.0 - kept[0] * kept[0])
    return _product(dq, u), dq


def _relu_back(dh: Any, _: Any, kept: Any, __: Any, more: Any, u: Any) -> State:
    dq = o.select(o.gt(kept[0], 0.0), plus(dh, more[0]), 0.0)
    return _product(dq, u), dq
