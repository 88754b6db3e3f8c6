"""The boundary of a model: its inputs as values, its outputs as tensors, sequences by their
parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.errors import InputError, Unsupported, UnsupportedError, UsageError, listed
from graphtool.front import REFUSED, Refused
from graphtool.importers.onnx.driver.context import Frame, Session
from graphtool.importers.onnx.driver.inputs import Number, Parts
from graphtool.importers.onnx.families.sequence_rows import SequenceRows
from graphtool.io.weights import Array
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import Tracer


def check_parts(importer: Session, inputs: Sequence[Any]) -> None:
    """Check `made_of` against the inputs, and take the named dimensions from it.

    Raises UsageError GT1032 for a name that is not an input of a sequence or optional type, or, if
    a number is given, of a tensor type.
    """
    kinds = {v.name: v.type.WhichOneof("value") for v in inputs}
    for name, parts in importer.made_of.items():
        if isinstance(parts, Number):
            if kinds.get(name) != "tensor_type":
                raise UsageError("GT1032", f"{name!r} is no input that is a tensor",
                                 hint=f"the inputs are {listed(kinds)}")
        elif kinds.get(name, "tensor_type") == "tensor_type":
            what = "no sequence or optional" if name in kinds else "no input"
            raise UsageError("GT1032", f"{name!r} is {what}",
                             hint=f"the inputs are {listed(kinds)}; open dims of tensors are "
                                  "bounded by --dynamic")
    for v in inputs:
        importer.inputs.settle(v.type, importer.made_of.get(v.name))
    importer.inputs.use_settled()


def entered(importer: Session, info: Any, frame: Frame) -> list[Tracer]:
    """Put an input into the frame: as a constant, by its parts, or as a graph input.

    Returns the graph inputs that it needs.
    """
    name, builder = info.name, importer.builder
    if name in frame.env:
        raise InputError("GT1012", f"the input {name!r} is defined twice")
    frame.env[name] = REFUSED
    given = importer.fixed.get(name)
    if isinstance(given, (list, tuple)):
        frame.env[name] = tuple(builder.constant(_pinned(x), f"{name}.{i}")
                                for i, x in enumerate(given))
        return []
    parts = importer.made_of.get(name)
    if name in importer.made_of and not isinstance(parts, Number):
        frame.env[name] = _parts(importer, parts, name)
        return [x for _, x in flat(name, frame.env[name])]
    try:
        type = importer.inputs.type(info)
    except Refused as refused:
        importer.refuse("input", str(refused), name)
        return []
    if isinstance(parts, Number):
        frame.env[name] = builder.constant(_filled(importer, name, type, parts), name)
        return []
    tracer = builder.input(type, name)
    frame.env[name] = tracer if given is None else builder.constant(_pinned(given), name)
    return [tracer]


def _filled(importer: Session, name: str, type: TensorType, number: Number) -> Array:
    """The tensor of one number that an input always is; the module's meta data keep it.

    Raises UsageError GT1031 for a number that is none of the type and for an open size.
    """
    sizes = [d for d in type.shape if isinstance(d, int)]
    if len(sizes) < len(type.shape):
        raise UsageError("GT1031", f"{name!r} is {type}: only a tensor of fixed sizes can be "
                         "given a number", hint="fix its sizes with --dynamic NAME=SIZE")
    with np.errstate(invalid="ignore"):
        out = np.full(sizes, number).astype(type.dtype.numpy)
    if not type.dtype.is_float and not (out == number).all():
        raise UsageError("GT1031", f"{number} is no number of {name!r}, which is {type}")
    importer.filled[name] = [type.dtype.short, *sizes, out.flat[0].item()]
    return out


def _parts(importer: Session, parts: Parts, name: str) -> Any:
    """New graph inputs for the parts of a sequence or an optional."""
    if isinstance(parts, TensorType):
        return importer.builder.input(parts, name)
    return tuple(_parts(importer, p, f"{name}.{i}") for i, p in enumerate(parts)) if isinstance(
        parts, Sequence) else None


def flat(name: str, x: Any) -> list[tuple[str, Any]]:
    """The tensors of a value with their names: `name.0`, `name.1`, … for a sequence, nothing for an
    empty optional."""
    if isinstance(x, tuple):
        return [row for i, item in enumerate(x) for row in flat(f"{name}.{i}", item)]
    if isinstance(x, SequenceRows):
        reason = "a sequence of computed length as an output is not supported"
        raise UnsupportedError("GT1020", "the model needs 1 thing that is not supported",
                               (Unsupported(name, reason, (name,)),),
                               hint="join its elements with ConcatFromSequence")
    return [] if x is None else [(name, x)]


def _pinned(x: Any) -> Array:
    """The constant given for an input as an array; objects are strings."""
    array = np.asarray(x)
    return dtypes.as_strings(array) if array.dtype == object else dtypes.as_array(array)
