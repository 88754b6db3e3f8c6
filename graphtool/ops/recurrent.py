"""LSTM, GRU and plain RNN over a whole sequence, in ONNX's layout and gate order.

x [T, B, I], w [D, G·H, I], r [D, G·H, H], bias [D, 2·G·H] (input part, then recurrent part),
states [D, B, H] with D directions and G gates. The decomposition unrolls a static T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import dtypes
from graphtool.ir.graph import TensorType
from graphtool.ir.op import ops as o
from graphtool.ops.common import check_axis, composite, fail, filled, like_first, need
from graphtool.symbolic import ceildiv

_COUNT = {"forward": 1, "reverse": 1, "bidirectional": 2}
State = tuple[Any, ...]
Step = Callable[[Any, State], State]


def _check(gates: int, x: TensorType, w: TensorType, r: TensorType, bias: TensorType | None,
           states: tuple[TensorType | None, ...], direction: str) -> tuple[TensorType, TensorType]:
    """The types of y [T, D, B, H] and of a final state [D, B, H]."""
    need(direction in _COUNT, f"unknown direction {direction!r}")
    need(x.rank == w.rank == r.rank == 3, f"x {x}, w {w} and r {r} must have rank 3")
    directions, (steps, batch, inputs), hidden = _COUNT[direction], x.shape, r.shape[2]
    rows = hidden * gates
    for name, got, shape in (("w", w, (directions, rows, inputs)),
                             ("r", r, (directions, rows, hidden)),
                             ("bias", bias, (directions, 2 * rows)),
                             *(("a state", s, (directions, batch, hidden)) for s in states)):
        want = TensorType(x.dtype, shape)
        need(got is None or got == want, f"{name} is {got}, {want} expected")
    like_first(x)
    return (TensorType(x.dtype, (steps, directions, batch, hidden)),
            TensorType(x.dtype, (directions, batch, hidden)))


def _at(x: Any, i: int) -> Any:
    """x[i], the first axis dropped."""
    rest = x.shape[1:]
    row = o.slice(x, start=(i, *(0,) * len(rest)), limit=(i + 1, *rest), strides=(1,) * x.ndim)
    return o.reshape(row, shape=rest)


def _parts(x: Any, n: int) -> list[Any]:
    """n equal parts of the last axis."""
    axis = check_axis(-1, x.ndim)
    size = x.shape[axis] // n
    lead = x.shape[:axis]
    return [o.slice(x, start=(*(0,) * axis, k * size), limit=(*lead, (k + 1) * size),
                    strides=(1,) * x.ndim) for k in range(n)]


def _run(x: Any, sizes: tuple[Any, Any, Any], states: tuple[Any, ...], direction: str,
         step_of: Callable[[int], tuple[Any, Step]]) -> tuple[Any, ...]:
    """Unrolled: `step_of(d)` gives the projected input [T, B, G·H] and the step of a direction."""
    steps, batch, hidden = sizes
    if not isinstance(steps, int):
        raise fail("a recurrence over a symbolic number of steps cannot be unrolled")
    outputs, finals = [], []
    for d in range(_COUNT[direction]):
        projected, step = step_of(d)
        state = tuple(filled(x, 0.0, (batch, hidden)) if s is None else _at(s, d) for s in states)
        order = range(steps)
        if direction == "reverse" or d == 1:
            order = order[::-1]
        seen: dict[int, Any] = {}
        for t in order:
            state = step(_at(projected, t), state)
            seen[t] = state[0]
        outputs.append(o.stack(*(seen[t] for t in range(steps)), axis=0) if steps
                       else filled(x, 0.0, (0, batch, hidden)))
        finals.append(state)
    return (o.stack(*outputs, axis=1),
            *(o.stack(*(f[i] for f in finals), axis=0) for i in range(len(states))))


def _project(x: Any, w: Any, bias: Any, d: int) -> Any:
    """x·wᵀ for all steps at once, with the given bias vector."""
    y = o.matmul(x, _at(w, d), transpose_b=True)
    return y if bias is None else y + bias


def _biases(bias: Any, d: int) -> tuple[Any, Any]:
    """The input part and the recurrent part of one direction's bias."""
    if bias is None:
        return None, None
    first, second = _parts(_at(bias, d), 2)
    return first, second


def _clip(x: Any, clip: float) -> Any:
    return o.clamp(x, -clip, clip) if clip else x


# ---- the recurrence itself ----------------------------------------------------------------------

_GATES = {"lstm": 4, "gru": 3, "gru_linear": 3, "tanh": 1, "relu": 1}


def _recurrence_types(p: TensorType, r: TensorType, bias: TensorType | None = None,
                      h0: TensorType | None = None, c0: TensorType | None = None, *, kind: str,
                      direction: str, packed: int) -> tuple[TensorType, ...]:
    need(kind in _GATES and direction in _COUNT, f"unknown kind {kind!r} or {direction!r}")
    need(p.rank == 4 and r.rank == 3 + (packed > 0), f"p {p} must have rank 4, r {r} rank 3")
    (steps, count, batch, wide), hidden = p.shape, r.shape[-2]
    need(count == _COUNT[direction] and wide == _GATES[kind] * hidden, f"p {p} does not fit r {r}")
    state = TensorType(p.dtype, (count, batch, hidden))
    weights = (count, ceildiv(wide, packed), hidden, packed) if packed else (count, hidden, wide)
    for name, got, shape in (("r", r, weights), ("bias", bias, (count, wide)),
                             ("h0", h0, state.shape), ("c0", c0, state.shape)):
        want = TensorType(p.dtype, shape)
        need(got is None or got == want, f"{name} is {got}, {want} expected")
    y = TensorType(p.dtype, (steps, count, batch, hidden))
    return (y, state, state) if kind == "lstm" else (y, state)


@composite(types=_recurrence_types, traits={"kernel"})
def recurrence(p: Any, r: Any, bias: Any = None, h0: Any = None, c0: Any = None, *, kind: str,
               direction: str = "forward", packed: int = 0) -> Any:
    """The steps of an lstm, gru, gru_linear, tanh or relu layer → (y, h) or (y, h, c).

    p [T, D, B, G·H] are the projected inputs, biases included; r [D, H, G·H], or with `packed` in
    panels of so many columns, [D, ⌈G·H/packed⌉, H, packed]; bias [D, G·H] joins what comes from the
    state (a GRU that resets behind its product needs it apart).
    """
    if packed:
        count, panels, hidden, nr = r.shape
        rows = o.reshape(o.transpose(r, perm=(0, 2, 1, 3)), shape=(count, hidden, panels * nr))
        r = o.slice(rows, start=(0, 0, 0), limit=(count, hidden, p.shape[3]), strides=(1, 1, 1))

    def step_of(d: int) -> tuple[Any, Step]:
        steps, _, batch, wide = p.shape
        projected = o.reshape(o.slice(p, start=(0, d, 0, 0), limit=(steps, d + 1, batch, wide),
                                      strides=(1,) * 4), shape=(steps, batch, wide))
        u = o.transpose(_at(r, d), perm=(1, 0))
        own = None if bias is None else _at(bias, d)
        if kind.startswith("gru"):
            return projected, _gru_step(u, own, kind == "gru_linear", 0.0)
        inner = projected if own is None else projected + own
        return inner, _lstm_step(u, None, 0.0) if kind == "lstm" else _rnn_step(u, kind, 0.0)
    states = (h0, c0) if kind == "lstm" else (h0,)
    return _run(p, (p.shape[0], p.shape[2], r.shape[1]), states, direction, step_of)


def _fused(x: Any, w: Any, r: Any, first: Any, second: Any, states: tuple[Any, ...], kind: str,
           direction: str) -> Any:
    """A whole layer: the product with the inputs for all steps at once, then the recurrence."""
    steps, batch, inputs = x.shape
    rows = o.reshape(x, shape=(steps * batch, inputs))
    parts = []
    for d in range(_COUNT[direction]):
        y = o.matmul(rows, _at(w, d), transpose_b=True)
        y = y if first is None else y + _at(first, d)
        parts.append(o.reshape(y, shape=(steps, 1, batch, w.shape[1])))
    p = parts[0] if len(parts) == 1 else o.concat(*parts, axis=1)
    return o.recurrence(p, o.transpose(r, perm=(0, 2, 1)), second, *states, kind=kind,
                        direction=direction)


def _halves(bias: Any) -> tuple[Any, Any]:
    """The input part and the recurrent part of the biases of all directions."""
    return (None, None) if bias is None else tuple(_parts(bias, 2))


# ---- lstm --------------------------------------------------------------------------------------


def _lstm_types(x: TensorType, w: TensorType, r: TensorType, bias: TensorType | None = None,
                h0: TensorType | None = None, c0: TensorType | None = None,
                peephole: TensorType | None = None, *, direction: str,
                clip: float) -> tuple[TensorType, ...]:
    y, state = _check(4, x, w, r, bias, (h0, c0), direction)
    want = TensorType(x.dtype, (_COUNT[direction], r.shape[2] * 3))
    need(peephole is None or peephole == want, f"the peephole is {peephole}, {want} expected")
    return y, state, state


@composite(types=_lstm_types)
def lstm(x: Any, w: Any, r: Any, bias: Any = None, h0: Any = None, c0: Any = None,
         peephole: Any = None, *, direction: str = "forward", clip: float = 0.0) -> Any:
    """Gates i, o, f, c: c' = f·c + i·g, h' = o·tanh(c') → (y, h, c); peephole weights are i, o, f.

    A positive `clip` bounds the gates' inputs.
    """
    if x.dtype is dtypes.float32 and peephole is None and not clip:
        first, second = _halves(bias)
        both = None if bias is None else first + second
        return _fused(x, w, r, both, None, (h0, c0), "lstm", direction)

    def step_of(d: int) -> tuple[Any, Step]:
        first, second = _biases(bias, d)
        projected = _project(x, w, None if bias is None else first + second, d)
        p = _parts(_at(peephole, d), 3) if peephole is not None else None
        return projected, _lstm_step(_at(r, d), p, clip)
    return _run(x, (*x.shape[:2], r.shape[2]), (h0, c0), direction, step_of)


def _lstm_step(u: Any, p: list[Any] | None, clip: float) -> Step:
    def step(xt: Any, state: State) -> State:
        h, c = state
        i, out, f, g = _parts(xt + o.matmul(h, u, transpose_b=True), 4)
        if p:
            i, f = i + p[0] * c, f + p[2] * c
        i, f, g = (_clip(v, clip) for v in (i, f, g))
        c = o.sigmoid(f) * c + o.sigmoid(i) * o.tanh(g)
        if p:
            out = out + p[1] * c
        return o.sigmoid(_clip(out, clip)) * o.tanh(c), c
    return step


# ---- gru ---------------------------------------------------------------------------------------


def _gru_types(x: TensorType, w: TensorType, r: TensorType, bias: TensorType | None = None,
               h0: TensorType | None = None, *, direction: str, linear_before_reset: bool,
               clip: float) -> tuple[TensorType, ...]:
    return _check(3, x, w, r, bias, (h0,), direction)


@composite(types=_gru_types)
def gru(x: Any, w: Any, r: Any, bias: Any = None, h0: Any = None, *, direction: str = "forward",
        linear_before_reset: bool = False, clip: float = 0.0) -> Any:
    """Gates z, r, h: h' = (1 − z)·n + z·h → (y, h).

    n = tanh(x·w + (r·h)·u + b), or tanh(x·w + r·(h·u + b)) with `linear_before_reset` (torch's).
    """
    if x.dtype is dtypes.float32 and not clip:
        kind = "gru_linear" if linear_before_reset else "gru"
        return _fused(x, w, r, *_halves(bias), (h0,), kind, direction)

    def step_of(d: int) -> tuple[Any, Step]:
        first, second = _biases(bias, d)
        return _project(x, w, first, d), _gru_step(_at(r, d), second, linear_before_reset, clip)
    return _run(x, (*x.shape[:2], r.shape[2]), (h0,), direction, step_of)


def _gru_step(u: Any, bias: Any, linear_before_reset: bool, clip: float) -> Step:
    u_gates, u_new = _rows(u, 3)
    b_gates, b_new = _split_bias(bias)

    def step(xt: Any, state: State) -> State:
        (h,) = state
        xz, xr, xn = _parts(xt, 3)
        hz, hr = _parts(_plus(o.matmul(h, u_gates, transpose_b=True), b_gates), 2)
        z, reset = o.sigmoid(_clip(xz + hz, clip)), o.sigmoid(_clip(xr + hr, clip))
        if linear_before_reset:
            hn = reset * _plus(o.matmul(h, u_new, transpose_b=True), b_new)
        else:
            hn = _plus(o.matmul(reset * h, u_new, transpose_b=True), b_new)
        n = o.tanh(_clip(xn + hn, clip))
        return ((1.0 - z) * n + z * h,)
    return step


def _plus(x: Any, bias: Any) -> Any:
    return x if bias is None else x + bias


def _rows(u: Any, n: int) -> tuple[Any, Any]:
    """All but the last of n equal runs of rows, and the last."""
    rows, columns = u.shape
    cut = rows // n * (n - 1)
    return (o.slice(u, start=(0, 0), limit=(cut, columns), strides=(1, 1)),
            o.slice(u, start=(cut, 0), limit=(rows, columns), strides=(1, 1)))


def _split_bias(bias: Any) -> tuple[Any, Any]:
    if bias is None:
        return None, None
    cut = bias.shape[0] // 3 * 2
    return (o.slice(bias, start=(0,), limit=(cut,), strides=(1,)),
            o.slice(bias, start=(cut,), limit=bias.shape, strides=(1,)))


# ---- rnn ---------------------------------------------------------------------------------------


def _rnn_types(x: TensorType, w: TensorType, r: TensorType, bias: TensorType | None = None,
               h0: TensorType | None = None, *, direction: str, activation: str,
               clip: float) -> tuple[TensorType, ...]:
    need(activation in ("tanh", "relu"), f"unknown activation {activation!r}")
    return _check(1, x, w, r, bias, (h0,), direction)


@composite(types=_rnn_types)
def rnn(x: Any, w: Any, r: Any, bias: Any = None, h0: Any = None, *, direction: str = "forward",
        activation: str = "tanh", clip: float = 0.0) -> Any:
    """h' = tanh(x·w + h·u + b), or relu of it → (y, h)."""
    if x.dtype is dtypes.float32 and not clip:
        first, second = _halves(bias)
        both = None if bias is None else first + second
        return _fused(x, w, r, both, None, (h0,), activation, direction)

    def step_of(d: int) -> tuple[Any, Step]:
        first, second = _biases(bias, d)
        projected = _project(x, w, None if bias is None else first + second, d)
        return projected, _rnn_step(_at(r, d), activation, clip)
    return _run(x, (*x.shape[:2], r.shape[2]), (h0,), direction, step_of)


def _rnn_step(u: Any, activation: str, clip: float) -> Step:
    def step(xt: Any, state: State) -> State:
        inner = _clip(xt + o.matmul(state[0], u, transpose_b=True), clip)
        return (o.tanh(inner) if activation == "tanh" else o.relu(inner),)
    return step
