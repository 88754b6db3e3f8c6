"""LSTM, GRU and plain RNN over a whole sequence, in ONNX's layout and gate order.

x [T, B, I], w [D, G·H, I], r [D, G·H, H], bias [D, 2·G·H] (input part, then recurrent part),
states [D, B, H] with D directions and G gates. The decomposition unrolls a static T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.ir.graph import TensorType
from graphtool.ir.op import ops as o
from graphtool.ops.common import check_axis, composite, fail, filled, like_first, need

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


def _run(x: Any, r: Any, states: tuple[Any, ...], direction: str,
         step_of: Callable[[int], tuple[Any, Step]]) -> tuple[Any, ...]:
    """Unrolled: `step_of(d)` gives the projected input [T, B, G·H] and the step of a direction."""
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[2]
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
    def step_of(d: int) -> tuple[Any, Step]:
        first, second = _biases(bias, d)
        projected = _project(x, w, None if bias is None else first + second, d)
        hidden = _at(r, d)
        p = _parts(_at(peephole, d), 3) if peephole is not None else None

        def step(xt: Any, state: State) -> State:
            h, c = state
            i, out, f, g = _parts(xt + o.matmul(h, hidden, transpose_b=True), 4)
            if p:
                i, f = i + p[0] * c, f + p[2] * c
            i, f, g = (_clip(v, clip) for v in (i, f, g))
            c = o.sigmoid(f) * c + o.sigmoid(i) * o.tanh(g)
            if p:
                out = out + p[1] * c
            return o.sigmoid(_clip(out, clip)) * o.tanh(c), c
        return projected, step
    return _run(x, r, (h0, c0), direction, step_of)


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
    def step_of(d: int) -> tuple[Any, Step]:
        first, second = _biases(bias, d)
        projected = _project(x, w, first, d)
        u_gates, u_new = _rows(_at(r, d), 3)
        b_gates, b_new = _split_bias(second)

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
        return projected, step
    return _run(x, r, (h0,), direction, step_of)


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
    def step_of(d: int) -> tuple[Any, Step]:
        first, second = _biases(bias, d)
        projected = _project(x, w, None if bias is None else first + second, d)
        hidden = _at(r, d)

        def step(xt: Any, state: State) -> State:
            inner = _clip(xt + o.matmul(state[0], hidden, transpose_b=True), clip)
            return (o.tanh(inner) if activation == "tanh" else o.relu(inner),)
        return projected, step
    return _run(x, r, (h0,), direction, step_of)
