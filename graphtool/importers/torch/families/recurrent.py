"""lstm, gru and rnn as our ops of the same names, one call for each layer.

For each layer and direction torch has w_ih [G·H, I], w_hh [G·H, H] and two biases [G·H] or none;
the gates, G blocks of rows, are put into our order.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.trace import Tracer

_LSTM = (0, 3, 1, 2)  # torch's i f g o → ours i o f g
_GRU = (1, 0, 2)      # torch's r z n → ours z r n


def _ordered(c: Context, x: Tracer, gates: tuple[int, ...]) -> Tracer:
    """The G blocks of H rows, one for each gate, in the order `gates`."""
    if len(gates) == 1:
        return x
    h = x.shape[0] // len(gates)
    blocks = [c.window(x, 0, g * h, g * h + h) for g in gates]
    out: Tracer = o.concat(*blocks, axis=0)
    return out


def _stacked(c: Context, xs: list[Tracer]) -> Tracer:
    rows = [c.reshape(x, (1, *x.shape)) for x in xs]
    return rows[0] if len(rows) == 1 else o.concat(*rows, axis=0)


def _weights(c: Context, params: list[Tracer], count: int, biased: bool,
             gates: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """(w, r, both biases joined) of one layer, the directions stacked on a new axis 0."""
    step = len(params) // count
    ws, rs, bs = [], [], []
    for d in range(count):
        mine = params[d * step:(d + 1) * step]
        ws.append(_ordered(c, mine[0], gates))
        rs.append(_ordered(c, mine[1], gates))
        if biased:
            bs.append(o.concat(*(_ordered(c, b, gates) for b in mine[2:4]), axis=0))
    return _stacked(c, ws), _stacked(c, rs), _stacked(c, bs) if biased else None


def _run(c: Context, op: Any, gates: tuple[int, ...], input: Tracer, states: tuple[Tracer, ...],
         params: tuple[Tracer, ...], has_biases: bool, num_layers: int, dropout: float,
         train: bool, bidirectional: bool, batch_first: bool, **attrs: Any) -> tuple[Any, ...]:
    if train and dropout:
        raise Refused("dropout between layers is random; call model.eval() before the import")
    count = 2 if bidirectional else 1
    if len(params) != num_layers * count * (4 if has_biases else 2):
        raise Refused("a recurrence with projections (proj_size) is not supported")
    x = c.transpose(input, [1, 0, 2]) if batch_first else input
    step = len(params) // num_layers
    finals: list[tuple[Any, ...]] = []
    for layer in range(num_layers):
        w, r, b = _weights(c, list(params[layer * step:(layer + 1) * step]), count, has_biases,
                           gates)
        start = [c.window(s, 0, layer * count, (layer + 1) * count) for s in states]
        y, *last = op(x, w, r, b, *start,
                      direction="bidirectional" if bidirectional else "forward", **attrs)
        steps, _, batch, hidden = y.shape  # [T, D, B, H] to [T, B, D·H]
        x = c.reshape(c.transpose(y, [0, 2, 1, 3]), (steps, batch, count * hidden))
        finals.append(tuple(last))
    ends = [f[0] if len(finals) == 1 else o.concat(*f, axis=0)
            for f in zip(*finals, strict=True)]
    return (c.transpose(x, [1, 0, 2]) if batch_first else x, *ends)


@aten("lstm.input")
def lstm(c: Context, input: Tracer, hx: tuple[Tracer, ...], params: tuple[Tracer, ...],
         *settings: Any) -> Any:
    """(y, h, c) by our lstm, layer after layer; y is [T, B, D·H], or [B, T, D·H] batch first."""
    return _run(c, o.lstm, _LSTM, input, hx, params, *settings)


@aten("gru.input")
def gru(c: Context, input: Tracer, hx: Tracer, params: tuple[Tracer, ...], *settings: Any) -> Any:
    """(y, h) by our gru, layer after layer, with the reset gate after the product (as cuDNN)."""
    return _run(c, o.gru, _GRU, input, (hx,), params, *settings, linear_before_reset=True)


@aten("rnn_tanh.input")
def rnn_tanh(c: Context, input: Tracer, hx: Tracer, params: tuple[Tracer, ...],
             *settings: Any) -> Any:
    """(y, h) by our rnn with tanh, layer after layer."""
    return _run(c, o.rnn, (0,), input, (hx,), params, *settings, activation="tanh")


@aten("rnn_relu.input")
def rnn_relu(c: Context, input: Tracer, hx: Tracer, params: tuple[Tracer, ...],
             *settings: Any) -> Any:
    """(y, h) by our rnn with relu, layer after layer."""
    return _run(c, o.rnn, (0,), input, (hx,), params, *settings, activation="relu")


@aten("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data")
def packed(c: Context, *_: Any, **__: Any) -> Any:
    """Refuses packed sequences."""
    raise Refused("packed sequences are not supported; give the recurrence a padded tensor")
