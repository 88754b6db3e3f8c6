"""LSTM, GRU and RNN as the composites of these names; other activations or row lengths use
`cells`."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.driver.values import array_of
from graphtool.importers.onnx.families.cells import CELLS, DEFAULTS, Cell, layer
from graphtool.symbolic import known


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
    cell = Cell(CELLS["LSTM"], activations or DEFAULTS["LSTM"], activation_alpha, activation_beta,
                clip, {"input_forget": input_forget})
    return _laid_out(layout, *layer(cell, x, w, r, bias, (h0, c0), direction, lengths, peephole))


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
    cell = Cell(CELLS["GRU"], activations or DEFAULTS["GRU"], activation_alpha, activation_beta,
                clip, {"linear_before_reset": linear_before_reset})
    return _laid_out(layout, *layer(cell, x, w, r, bias, (h0,), direction, lengths))


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
    cell = Cell(CELLS["RNN"], activations or DEFAULTS["RNN"], activation_alpha, activation_beta,
                clip, {})
    return _laid_out(layout, *layer(cell, x, w, r, bias, (h0,), direction, lengths))

