"""LSTM, GRU and RNN as the composites of these names; other activations or row lengths as scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from graphtool.importers.onnx.kit import Refused, array_of, dtypes, known, o, onnx_op
from graphtool.ir.trace import like
from graphtool.ops.recurrence_steps import scan

# ---- cells as scans -----------------------------------------------------------------------------

State = tuple[Any, ...]
Activation = Callable[[Any], Any]

# alpha and beta by default, and the function
ACTIVATIONS: dict[str, tuple[float, float, Callable[[Any, float, float], Any]]] = {
    "relu": (0, 0, lambda x, a, b: o.relu(x)),
    "tanh": (0, 0, lambda x, a, b: o.tanh(x)),
    "sigmoid": (0, 0, lambda x, a, b: o.sigmoid(x)),
    "affine": (1, 0, lambda x, a, b: x * a + b),
    "leakyrelu": (0.01, 0, lambda x, a, b: o.leaky_relu(x, slope=a)),
    "thresholdedrelu": (1, 0, lambda x, a, b: o.thresholded_relu(x, alpha=a)),
    "scaledtanh": (1, 1, lambda x, a, b: o.tanh(x * b) * a),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: o.hard_sigmoid(x, alpha=a, beta=b)),
    "elu": (1, 0, lambda x, a, b: o.elu(x, alpha=a)),
    "softsign": (0, 0, lambda x, a, b: o.softsign(x)),
    "softplus": (0, 0, lambda x, a, b: o.softplus(x, threshold=40.0)),
}
_WITH_ALPHA = {"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}
_WITH_BETA = {"affine", "scaledtanh", "hardsigmoid"}
DEFAULTS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}


def _times(x: Any, w: Any) -> Any:
    return o.matmul(x, w, transpose_b=True)


@dataclass(frozen=True)
class StepCell:
    """A step function with its activations and flags; `times` multiplies rows by weights, which
    are one tensor or several."""

    step: Callable[..., State]
    activations: Sequence[str]
    alpha: Sequence[float] | None
    beta: Sequence[float] | None
    clip: float
    flags: dict[str, int]
    times: Callable[..., Any] = _times

    def functions(self) -> list[Activation]:
        """The activation functions. Each takes its alpha and beta from the lists, in order.

        Raises Refused for an unknown activation.
        """
        alphas, betas = list(self.alpha or ()), list(self.beta or ())
        out: list[Activation] = []
        for name in (a.lower() for a in self.activations):
            if name not in ACTIVATIONS:
                raise Refused(f"the activation {name!r} is not supported")
            a, b, fn = ACTIVATIONS[name]
            a = alphas.pop(0) if alphas and name in _WITH_ALPHA else a
            b = betas.pop(0) if betas and name in _WITH_BETA else b
            out.append(partial(_call, fn, float(a), float(b)))
        return out


def _call(fn: Callable[[Any, float, float], Any], a: float, b: float, x: Any) -> Any:
    return fn(x, a, b)


def _clip(x: Any, clip: float) -> Any:
    return o.clamp(x, -clip, clip) if clip else x


def parts(x: Any, n: int) -> list[Any]:
    """n equal parts of the last axis."""
    size = x.shape[-1] // n
    return [x.take(x.ndim - 1, k * size, (k + 1) * size) for k in range(n)]


def _at(x: Any, i: int) -> Any:
    return x.take(0, i, i + 1).reshape(tuple(x.shape[1:]))


# ---- the steps: (cell, f, projected input, recurrent weights, recurrent bias, state, peephole) ---

def _lstm(cell: StepCell, f: list[Activation], xt: Any, r: Any, rb: Any, state: State,
          p: Any) -> State:
    h, c = state
    i, out, forget, g = parts(xt + cell.times(h, *r) + rb, 4)
    p_i, p_o, p_f = parts(p, 3) if p is not None else (None, None, None)
    i = i if p_i is None else i + p_i * c
    i = f[0](_clip(i, cell.clip))
    forget = forget if p_f is None else forget + p_f * c
    forget = 1.0 - i if cell.flags["input_forget"] else f[0](_clip(forget, cell.clip))
    c = forget * c + i * f[1](_clip(g, cell.clip))
    out = out if p_o is None else out + p_o * c
    return f[0](_clip(out, cell.clip)) * f[2](c), c


def _gru(cell: StepCell, f: list[Activation], xt: Any, r: Any, rb: Any, state: State,
         _: Any) -> State:
    (h,), (r,) = state, r
    n = h.shape[-1]
    xz, xr, xn = parts(xt, 3)
    gates = _times(h, r.take(0, 0, 2 * n)) + rb.take(0, 0, 2 * n)
    u, b = (r.take(0, 2 * n, 3 * n), rb.take(0, 2 * n, 3 * n))
    hz, hr = parts(gates, 2)
    z, reset = f[0](_clip(xz + hz, cell.clip)), f[0](_clip(xr + hr, cell.clip))
    if cell.flags["linear_before_reset"]:
        hn = reset * (_times(h, u) + b)
    else:
        hn = _times(reset * h, u) + b
    new = f[1](_clip(xn + hn, cell.clip))
    return ((1.0 - z) * new + z * h,)


def _rnn(cell: StepCell, f: list[Activation], xt: Any, r: Any, rb: Any, state: State,
         _: Any) -> State:
    return (f[0](_clip(xt + cell.times(state[0], *r) + rb, cell.clip)),)


CELLS: dict[str, Callable[..., State]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}


def layer(cell: StepCell, x: Any, w: Sequence[Any], r: Sequence[Any], bias: Any, states: State,
          direction: str, lengths: Any, peephole: Any = None) -> tuple[Any, ...]:
    """y [T, D, B, H] and the final states [D, B, H], as one `scan` for each direction; w and r are
    the tensors of the weights, [D, rows, columns] or as `cell.times` takes them."""
    fs, count = cell.functions(), w[0].shape[0]
    per = len(fs) // count if len(fs) >= 2 * count or count == 1 else len(fs)
    if lengths is not None:
        lengths = lengths.cast(dtypes.int64).reshape((lengths.shape[0], 1))
    results = []
    for d in range(count):
        mine = fs[d * per:(d + 1) * per] or fs
        start = [o.broadcast(x.number(0).reshape((1, 1)), shape=(x.shape[1], r[0].shape[2]))
                 if s is None else _at(s, d) for s in states]
        results.append(_direction(cell, mine, x, [_at(p, d) for p in w], _of_steps(r, d),
                                  None if bias is None else _at(bias, d), start, lengths,
                                  None if peephole is None else _at(peephole, d),
                                  direction == "reverse" or d == 1))
    y = o.stack(*(f[-1] for f in results), axis=1)
    return y, *(o.stack(*(f[i] for f in results), axis=0) for i in range(len(states)))


def _of_steps(weights: Sequence[Any], direction: int) -> list[Any]:
    """The weights of the steps of one direction: arrays if there are several tensors and all are
    known, so that they are constants of a step, which a product can pack."""
    known = [array_of(p) for p in weights]
    if len(known) > 1 and all(a is not None for a in known):
        return [np.asarray(a[direction]) for a in known if a is not None]
    return [_at(p, direction) for p in weights]


def _direction(cell: StepCell, f: list[Activation], x: Any, w: Sequence[Any], r: Sequence[Any],
               bias: Any, start: list[Any], lengths: Any, peephole: Any, backwards: bool) -> State:
    """The final states of one direction, then its y [T, B, H]."""
    projected = cell.times(x, *w)
    rows = projected.shape[-1]
    if bias is not None:
        projected, hidden_bias = (projected + bias.take(0, 0, rows), bias.take(0, rows, 2 * rows))
    else:
        hidden_bias = o.broadcast(x.number(0).reshape((1,)), shape=(rows,))
    numbers = None if lengths is None else like(x, o.iota, shape=(x.shape[0],), axis=0,
                                                dtype=dtypes.int64)

    def step(state: Any, rows: Any, fixed: Any) -> State:
        (xt, t), (b, p, ends, *u) = rows, fixed
        u = u or [xt.builder.constant(a) for a in r]
        new = cell.step(cell, f, xt, u, b, tuple(state), p)
        if ends is None:
            return *new, new[0]
        alive = ends > t
        return (*(o.select(alive, a, old) for a, old in zip(new, state, strict=True)),
                o.select(alive, new[0], 0.0))
    of_steps = [u for u in r if not isinstance(u, np.ndarray)]
    return scan(step, start, [projected, numbers], [hidden_bias, peephole, lengths, *of_steps],
                backwards)


# ---- layers -------------------------------------------------------------------------------------

def _lengths(x: Any, lengths: Any) -> Any:
    """The sequence lengths, or None if all of them equal the number of steps."""
    array = array_of(lengths)
    if array is not None and array.dtype != object and isinstance(x.shape[0], int) \
            and np.all(array == x.shape[0]):
        return None
    return lengths


def _check_size(hidden_size: int | None, r: Any) -> None:
    if hidden_size is not None and known(r.shape[-1], "==", hidden_size) is False:
        raise ValueError(f"hidden_size is {hidden_size}, the recurrent weights are for "
                         f"{r.shape[-1]}")


def _time_first(layout: int, x: Any, *states: Any) -> tuple[Any, ...]:
    """x and the states transposed so that time is the first axis; with layout 1 they come with the
    batch first."""
    if not layout:
        return x, *states
    swap = (1, 0, 2)
    return (x.transpose(swap), *(s if s is None else s.transpose(swap) for s in states))


def _laid_out(layout: int, y: Any, *states: Any) -> list[Any]:
    if not layout:
        return [y, *states]
    return [y.transpose((2, 0, 1, 3)), *(s.transpose((1, 0, 2)) for s in states)]


def _plain(name: str, activations: Any, direction: str) -> bool:
    count = 2 if direction == "bidirectional" else 1
    return activations is None or [a.lower() for a in activations] == DEFAULTS[name] * count


@onnx_op("LSTM", since=7)
def lstm(x: Any, w: Any, r: Any, bias: Any = None, sequence_lens: Any = None,
         initial_h: Any = None, initial_c: Any = None, peephole: Any = None, *,
         activation_alpha: Any = None, activation_beta: Any = None, activations: Any = None,
         clip: float = 0.0, direction: str = "forward", hidden_size: int | None = None,
         input_forget: int = 0, layout: int = 0) -> Any:
    """`lstm`, or a `scan` of its cell; y [T, D, B, H] and the last h and c [D, B, H]."""
    _check_size(hidden_size, r)
    x, h0, c0 = _time_first(layout, x, initial_h, initial_c)
    lengths = _lengths(x, sequence_lens)
    if lengths is None and not input_forget and _plain("LSTM", activations, direction):
        return _laid_out(layout, *o.lstm(x, w, r, bias, h0, c0, peephole, direction=direction,
                                         clip=clip))
    cell = StepCell(CELLS["LSTM"], activations or DEFAULTS["LSTM"], activation_alpha,
                    activation_beta, clip, {"input_forget": input_forget})
    return _laid_out(layout, *layer(cell, x, [w], [r], bias, (h0, c0), direction, lengths,
                                    peephole))


@onnx_op("GRU", since=7)
def gru(x: Any, w: Any, r: Any, bias: Any = None, sequence_lens: Any = None,
        initial_h: Any = None, *, activation_alpha: Any = None, activation_beta: Any = None,
        activations: Any = None, clip: float = 0.0, direction: str = "forward",
        hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0) -> Any:
    """`gru`, or a `scan` of its cell; y [T, D, B, H] and the last h [D, B, H]."""
    _check_size(hidden_size, r)
    x, h0 = _time_first(layout, x, initial_h)
    lengths = _lengths(x, sequence_lens)
    if lengths is None and _plain("GRU", activations, direction):
        return _laid_out(layout, *o.gru(x, w, r, bias, h0, direction=direction, clip=clip,
                                        linear_before_reset=bool(linear_before_reset)))
    cell = StepCell(CELLS["GRU"], activations or DEFAULTS["GRU"], activation_alpha, activation_beta,
                    clip, {"linear_before_reset": linear_before_reset})
    return _laid_out(layout, *layer(cell, x, [w], [r], bias, (h0,), direction, lengths))


@onnx_op("RNN", since=7)
def rnn(x: Any, w: Any, r: Any, bias: Any = None, sequence_lens: Any = None,
        initial_h: Any = None, *, activation_alpha: Any = None, activation_beta: Any = None,
        activations: Any = None, clip: float = 0.0, direction: str = "forward",
        hidden_size: int | None = None, layout: int = 0) -> Any:
    """`rnn` with tanh or relu, else a `scan` of its cell; y [T, D, B, H] and the last h
    [D, B, H]."""
    _check_size(hidden_size, r)
    x, h0 = _time_first(layout, x, initial_h)
    lengths = _lengths(x, sequence_lens)
    kinds = {a.lower() for a in activations or ["tanh"]}
    if lengths is None and len(kinds) == 1 and kinds <= {"tanh", "relu"}:
        return _laid_out(layout, *o.rnn(x, w, r, bias, h0, direction=direction, clip=clip,
                                        activation=kinds.pop()))
    cell = StepCell(CELLS["RNN"], activations or DEFAULTS["RNN"], activation_alpha, activation_beta,
                    clip, {})
    return _laid_out(layout, *layer(cell, x, [w], [r], bias, (h0,), direction, lengths))
