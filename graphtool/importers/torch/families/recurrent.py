"""lstm, gru and rnn as our ops of the same names, one call for each layer.

For each layer and direction torch has w_ih [G·H, I], w_hh [G·H, H] and two biases [G·H] or none;
the gates, G blocks of rows, are put into our order.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.front.array import concat
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten

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
    if len(params) != num_layers * count * (4 if has_biases else 2):
        raise Refused("a recurrence with projections (proj_size) is not supported")
    x = input.transpose([1, 0, 2]) if batch_first else input
    step = len(params) // num_layers
    finals: list[tuple[Any, ...]] = []
    for layer in range(num_layers):
        w, r, *b = _weights(list(params[layer * step:(layer + 1) * step]), count, gates)
        start = [s.take(0, layer * count, (layer + 1) * count) for s in states]
        y, *last = op(x, w, r, b[0] if b else None, *start,
                      direction="bidirectional" if bidirectional else "forward", **attrs)
        steps, _, batch, hidden = y.shape  # [T, D, B, H] to [T, B, D·H]
        x = y.transpose([0, 2, 1, 3]).reshape((steps, batch, count * hidden))
        finals.append(tuple(last))
    ends = [concat(f, 0) for f in zip(*finals, strict=True)]
    return (x.transpose([1, 0, 2]) if batch_first else x, *ends)


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
