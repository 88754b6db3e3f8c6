"""lstm, gru and rnn as our ops of the same names, one call for each layer.

For each layer and direction torch has w_ih [G·H, I], w_hh [G·H, H] and two biases [G·H] or none;
the gates, G blocks of rows, are put into our order.
"""

from __future__ import annotations

from typing import Any

from graphtool.front.array import concat
from graphtool.importers.torch.kit import Array, Context, Refused, TensorType, aten, o, trace

_LSTM = (0, 3, 1, 2)  # torch's i f g o → ours i o f g
_GRU = (1, 0, 2)      # torch's r z n → ours z r n


def _ordered(x: Array, gates: tuple[int, ...]) -> Array:
    """The G blocks of H rows, one for each gate, in the order `gates`."""
    h = x.shape[0] // len(gates)
    return concat([x.take(0, g * h, g * h + h) for g in gates], 0)


def _weights(params: list[Array], count: int, gates: tuple[int, ...]) -> list[Array]:
    """[w, r, both biases joined] of one layer, the directions stacked on a new axis 0."""
    step = len(params) // count
    rows = []
    for d in range(count):
        w, r, *biases = (_ordered(x, gates) for x in params[d * step:(d + 1) * step])
        rows.append([w, r, concat(biases, 0)] if biases else [w, r])
    return [concat([x.unsqueeze(0) for x in xs], 0) for xs in zip(*rows, strict=True)]


def _run(c: Context, op: Any, gates: tuple[int, ...], input: Array, states: tuple[Array, ...],
         params: tuple[Array, ...], has_biases: bool, num_layers: int, dropout: float,
         train: bool, bidirectional: bool, batch_first: bool, **attrs: Any) -> tuple[Any, ...]:
    if train and dropout:
        raise Refused("dropout between layers is random; call model.eval() before the import")
    count = 2 if bidirectional else 1
    x = input.transpose([1, 0, 2]) if batch_first else input
    step = len(params) // num_layers
    finals: list[tuple[Any, ...]] = []
    for layer in range(num_layers):
        mine = list(params[layer * step:(layer + 1) * step])
        start = [s.take(0, layer * count, (layer + 1) * count) for s in states]
        if step // count % 2:  # an odd number of weights: one is the projection
            y, *last = _projected(x, mine, count, has_biases, *start)
        else:
            w, r, *b = _weights(mine, count, gates)
            y, *last = op(x, w, r, b[0] if b else None, *start,
                          direction="bidirectional" if bidirectional else "forward", **attrs)
        steps, _, batch, hidden = y.shape  # [T, D, B, H] to [T, B, D·H]
        x = y.transpose([0, 2, 1, 3]).reshape((steps, batch, count * hidden))
        finals.append(tuple(last))
    ends = [concat(f, 0) for f in zip(*finals, strict=True)]
    return (x.transpose([1, 0, 2]) if batch_first else x, *ends)


def _projected(x: Array, params: list[Array], count: int, biased: bool, h: Array, c: Array
               ) -> list[Array]:
    """[y [T, D, B, P], h [D, B, P], c [D, B, H]] of an LSTM layer with proj_size P by a scan: each
    step hands on h·w_hrᵀ for h."""
    def step(h: Any, c: Any, z: Any, r: Any, p: Any) -> Any:
        z = z + o.matmul(h, r, transpose_b=True)
        i, f, g, last = (z.take(1, k * c.shape[1], (k + 1) * c.shape[1]) for k in range(4))
        c = o.sigmoid(f) * c + o.sigmoid(i) * o.tanh(g)
        h = o.matmul(o.sigmoid(last) * o.tanh(c), p, transpose_b=True)
        return h, c, h
    each: list[Any] = []
    size = len(params) // count
    for d in range(count):
        w, r, *biases, p = params[d * size:(d + 1) * size]
        z = o.linear(x, w, biases[0] + biases[1] if biased else None)
        given = (h.entry(0, d), c.entry(0, d), z, r, p)
        types = [v.type if i != 2 else TensorType(z.dtype, z.shape[1:])
                 for i, v in enumerate(given)]
        each.append(o.scan(*given, body=trace(step, types), carries=2, xs=1, length=x.shape[0],
                           reverse=bool(d)))
    hs, cs, ys = zip(*each, strict=True)
    return [o.stack(*ys, axis=1), o.stack(*hs, axis=0), o.stack(*cs, axis=0)]


@aten("lstm.input")
def lstm(c: Context, input: Array, hx: tuple[Array, ...], params: tuple[Array, ...],
         *settings: Any) -> Any:
    """(y, h, c) by our lstm, layer after layer; y is [T, B, D·H], or [B, T, D·H] batch first."""
    return _run(c, o.lstm, _LSTM, input, hx, params, *settings)


@aten("gru.input")
def gru(c: Context, input: Array, hx: Array, params: tuple[Array, ...], *settings: Any) -> Any:
    """(y, h) by our gru, layer after layer, with the reset gate after the product (as cuDNN)."""
    return _run(c, o.gru, _GRU, input, (hx,), params, *settings, linear_before_reset=True)


@aten("rnn_tanh.input")
def rnn_tanh(c: Context, input: Array, hx: Array, params: tuple[Array, ...],
             *settings: Any) -> Any:
    """(y, h) by our rnn with tanh, layer after layer."""
    return _run(c, o.rnn, (0,), input, (hx,), params, *settings, activation="tanh")


@aten("rnn_relu.input")
def rnn_relu(c: Context, input: Array, hx: Array, params: tuple[Array, ...],
             *settings: Any) -> Any:
    """(y, h) by our rnn with relu, layer after layer."""
    return _run(c, o.rnn, (0,), input, (hx,), params, *settings, activation="relu")


@aten("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data")
def packed(c: Context, *_: Any, **__: Any) -> Any:
    """Refuses packed sequences."""
    raise Refused("packed sequences are not supported; give the recurrence a padded tensor")
