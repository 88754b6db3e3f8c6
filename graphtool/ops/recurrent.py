"""LSTM, GRU and plain RNN over a whole sequence, with ONNX's layout and gate order.

x [T, B, I], w [D, G·H, I], r [D, G·H, H], bias [D, 2·G·H] (input part, then recurrent part), states
[D, B, H] with D directions and G gates. The steps themselves are in `recurrences`.
"""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, equal_types, like_first, need
from graphtool.ops.recurrence_steps import COUNT, at, parts
from graphtool.ops.recurrences import steps


def _check(gates: int, x: TensorType, w: TensorType, r: TensorType, bias: TensorType | None,
           states: tuple[TensorType | None, ...], direction: str) -> tuple[TensorType, TensorType]:
    """The types of y [T, D, B, H] and of a final state [D, B, H]."""
    need(direction in COUNT, f"unknown direction {direction!r}")
    need(x.rank == w.rank == r.rank == 3, f"x {x}, w {w} and r {r} must have rank 3")
    directions, (length, batch, inputs), hidden = COUNT[direction], x.shape, r.shape[2]
    rows = hidden * gates
    for name, got, shape in (("w", w, (directions, rows, inputs)),
                             ("r", r, (directions, rows, hidden)),
                             ("bias", bias, (directions, 2 * rows)),
                             *(("a state", s, (directions, batch, hidden)) for s in states)):
        want = TensorType(x.dtype, shape)
        if got is not None:
            equal_types(got, want, f"{name} is {got}, expected {want}")
    like_first(x)
    return (TensorType(x.dtype, (length, directions, batch, hidden)),
            TensorType(x.dtype, (directions, batch, hidden)))


def _layer(x: Any, w: Any, r: Any, first: Any, second: Any, states: tuple[Any, ...], kind: str,
           direction: str, clip: float, peephole: Any = None) -> Any:
    """The product with the inputs for all steps at once, then the recurrence.

    `first` is the bias of the input part, `second` that of the recurrent part.
    """
    length, batch, inputs = x.shape
    rows = o.reshape(x, shape=(length * batch, inputs))
    projected = []
    for d in range(COUNT[direction]):
        y = o.matmul(rows, at(w, d), transpose_b=True)
        y = y if first is None else y + at(first, d)
        projected.append(o.reshape(y, shape=(length, 1, batch, w.shape[1])))
    p = projected[0] if len(projected) == 1 else o.concat(*projected, axis=1)
    turned = o.transpose(r, perm=(0, 2, 1))
    # in the form for which there is a kernel
    if x.dtype is dtypes.float32 and not clip and peephole is None:
        result = o.recurrence(p, turned, second, *states, kind=kind, direction=direction)
    else:
        result = steps(p, turned, second, states, kind, direction, peephole, clip)
    return result[:-1]


def _halves(bias: Any) -> tuple[Any, Any]:
    """The input part and the recurrent part of the biases of all directions."""
    return (None, None) if bias is None else tuple(parts(bias, 2))


def _joined(bias: Any) -> Any:
    first, second = _halves(bias)
    return None if bias is None else first + second


# ---- lstm --------------------------------------------------------------------------------------


def _lstm_types(x: TensorType, w: TensorType, r: TensorType, bias: TensorType | None = None,
                h0: TensorType | None = None, c0: TensorType | None = None,
                peephole: TensorType | None = None, *, direction: str,
                clip: float) -> tuple[TensorType, ...]:
    y, state = _check(4, x, w, r, bias, (h0, c0), direction)
    want = TensorType(x.dtype, (COUNT[direction], r.shape[2] * 3))
    need(peephole is None or peephole == want, f"the peephole is {peephole}, expected {want}")
    return y, state, state


@composite(types=_lstm_types)
def lstm(x: Any, w: Any, r: Any, bias: Any = None, h0: Any = None, c0: Any = None,
         peephole: Any = None, *, direction: str = "forward", clip: float = 0.0) -> Any:
    """Gates i, o, f, c: c' = f·c + i·g, h' = o·tanh(c') → (y, h, c). The peephole weights are in
    the order i, o, f.

    A positive `clip` limits the gates' inputs to [−clip, clip].
    """
    return _layer(x, w, r, _joined(bias), None, (h0, c0), "lstm", direction, clip, peephole)


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
    kind = "gru_linear" if linear_before_reset else "gru"
    return _layer(x, w, r, *_halves(bias), (h0,), kind, direction, clip)


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
    return _layer(x, w, r, _joined(bias), None, (h0,), activation, direction, clip)
