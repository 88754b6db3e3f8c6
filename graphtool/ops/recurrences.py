"""The steps of a recurrent layer, as scans and as one op for which there is a kernel.

The part that depends on the inputs alone, p = x·w + b, is computed before, for all steps at once. p
[T, D, B, G·H], r [D, H, G·H], bias [D, G·H], states [D, B, H] with D directions and G gates.
"""

from __future__ import annotations

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
    directions,
    halves,
    one_direction,
    parts,
    plus,
    scan,
    unpacked,
)
from graphtool.ops.recurrences_back import vjp
from graphtool.symbolic import ceildiv

# ---- one step: (states, values kept) ------------------------------------------------------------

def _clip(x: Any, clip: float) -> Any:
    return o.clamp(x, -clip, clip) if clip else x


def _lstm_step(q: Any, state: State, u: Any, bias: Any, peephole: Any, clip: float) -> State:
    h, c = state
    i, out, f, g = parts(plus(q + o.matmul(h, u), bias), 4)
    peep = parts(peephole, 3) if peephole is not None else None
    if peep:
        i, f = i + peep[0] * c, f + peep[2] * c
    i, f, g = o.sigmoid(_clip(i, clip)), o.sigmoid(_clip(f, clip)), o.tanh(_clip(g, clip))
    c = f * c + i * g
    out = o.sigmoid(_clip(out + peep[1] * c if peep else out, clip))
    return out * o.tanh(c), c, o.concat(i, out, f, g, c, axis=1)


def _gru_step(q: Any, state: State, u: Any, bias: Any, linear: bool, clip: float) -> State:
    (h,) = state
    (u_gates, u_new), (b_gates, b_new) = halves(u, 3), (None, None)
    if bias is not None:
        b_gates, b_new = halves(bias, 3)
    z, reset, xn = parts(q, 3)
    hz, hr = parts(plus(o.matmul(h, u_gates), b_gates), 2)
    z, reset = o.sigmoid(_clip(z + hz, clip)), o.sigmoid(_clip(reset + hr, clip))
    from_state = plus(o.matmul(h if linear else reset * h, u_new), b_new)
    n = o.tanh(_clip(xn + (reset * from_state if linear else from_state), clip))
    kept = (z, reset, n, from_state) if linear else (z, reset, n)
    return (1.0 - z) * n + z * h, o.concat(*kept, axis=1)


def _rnn_step(q: Any, state: State, u: Any, bias: Any, kind: str, clip: float) -> State:
    inner = _clip(plus(q + o.matmul(state[0], u), bias), clip)
    h = o.tanh(inner) if kind == "tanh" else o.relu(inner)
    return h, h


def steps(p: Any, r: Any, bias: Any, states: State, kind: str, direction: str,
          peephole: Any = None, clip: float = 0.0) -> tuple[Any, ...]:
    """y, the final states and the values kept for the gradient: one scan for each direction."""
    hidden, count = r.shape[1], 2 if kind == "lstm" else 1

    def step(state: Any, rows: Any, fixed: Any) -> State:
        u, step_bias, peep = fixed
        if kind == "lstm":
            new = _lstm_step(rows[0], tuple(state), u, step_bias, peep, clip)
        elif kind.startswith("gru"):
            new = _gru_step(rows[0], tuple(state), u, step_bias, kind == "gru_linear", clip)
        else:
            new = _rnn_step(rows[0], tuple(state), u, step_bias, kind, clip)
        return (*new[:count], new[0], new[-1])
    results = []
    for d, backwards in directions(direction):
        start = [filled(p, 0.0, (p.shape[2], hidden)) if s is None else at(s, d) for s in states]
        fixed = [at(r, d), *(None if x is None else at(x, d) for x in (bias, peephole))]
        results.append(scan(step, start, [one_direction(p, d)], fixed, backwards))
    ends = [o.stack(*(f[i] for f in results), axis=0) for i in range(count)]
    y, kept = (o.stack(*(f[count + i] for f in results), axis=1) for i in range(2))
    return y, *ends, kept


# ---- the op -------------------------------------------------------------------------------------

def _types(p: TensorType, r: TensorType, bias: TensorType | None = None,
           h0: TensorType | None = None, c0: TensorType | None = None, *, kind: str,
           direction: str, packed: int, plan: Plan | None = None) -> tuple[TensorType, ...]:
    need(kind in GATES and direction in COUNT, f"unknown kind {kind!r} or direction {direction!r}")
    need(p.rank == 4 and r.rank == 3 + (packed > 0),
         f"p must have rank 4 and r rank 3, got {p} and {r}")
    (length, count, batch, wide), hidden = p.shape, r.shape[-2]
    need(count == COUNT[direction] and wide == GATES[kind] * hidden, f"p {p} does not fit r {r}")
    state = TensorType(p.dtype, (count, batch, hidden))
    weights = (count, ceildiv(wide, packed), hidden, packed) if packed else (count, hidden, wide)
    for name, got, shape in (("r", r, weights), ("bias", bias, (count, wide)),
                             ("h0", h0, state.shape), ("c0", c0, state.shape)):
        want = TensorType(p.dtype, shape)
        need(got is None or got == want, f"{name} is {got}, expected {want}")
    y = TensorType(p.dtype, (length, *state.shape))
    kept = TensorType(p.dtype, (*y.shape[:3], KEPT[kind] * hidden))
    return y, *(state,) * (2 if kind == "lstm" else 1), kept


@composite(types=_types, lowering=Lowering.STATEMENTS, plans=(PANELS,), vjp=vjp)
def recurrence(p: Any, r: Any, bias: Any = None, h0: Any = None, c0: Any = None, *, kind: str,
               direction: str = "forward", packed: int = 0, plan: Plan | None = None) -> Any:
    """The steps of an lstm, gru, gru_linear, tanh or relu layer → (y, h, kept) or (y, h, c, kept).

    p [T, D, B, G·H] are the inputs times their weights, with the biases; r is [D, H, G·H], or [D,
    ⌈G·H/packed⌉, H, packed] with `packed`, the width of its panels; bias [D, G·H] is added to the
    recurrent product (a GRU that resets after this product needs it separately); kept are the
    values that the gradient reads. `plan` holds the width of the panels that was chosen.
    """
    states = (h0, c0) if kind == "lstm" else (h0,)
    return steps(p, unpacked(r, p.shape[3], packed), bias, states, kind, direction)
