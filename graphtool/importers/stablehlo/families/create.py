"""Operations without operands: constants and iota; and the sizes of a value."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401  (numpy learns the names of narrow types)
import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.values import (
    FOLD_LIMIT,
    Array,
    Sizes,
    dims_of,
    element_type,
    shape_of,
    spread,
)
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.symbolic import Dim

_BYTES = 1 << 33


@stablehlo("constant", elementwise=True)
def constant(ctx: Context, *, value: Any) -> Any:
    """The array that the text says; of our own text, a parameter with its name."""
    if not isinstance(value, Dense):
        raise Refused("only dense constants are supported")
    kind = ctx.op.signature.results[0]
    array = array_of(value, element_type(kind), tuple(d or 0 for d in kind.shape or ()))
    name = ctx.op.attrs.get("graphtool.parameter")
    return array if name is None else ctx.builder.constant(array, str(name), param=True)


def array_of(value: Dense, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array of `dense<…>`: nested lists, one number for all elements, or bytes of all.

    Raises ValueError where the elements do not fit the shape.
    """
    count = int(np.prod(shape, dtype=np.int64))
    if isinstance(value.elements, bytes):
        return _from_bytes(value.elements, dtype, shape, count)
    flat: list[Any] = []
    _flatten(value.elements, flat)
    if len(flat) not in (1, count):
        raise ValueError(f"{len(flat)} elements for the shape {list(shape)}")
    out = _numbers(flat, dtype)
    return np.broadcast_to(out.reshape(()), shape) if len(flat) == 1 and not isinstance(
        value.elements, list) else out.reshape(shape)


def _from_bytes(text: bytes, dtype: DType, shape: tuple[int, ...], count: int) -> Array:
    if text[:2].lower() != b"0x":
        raise ValueError("an array of strings")
    data = bytes.fromhex(text[2:].decode())
    if dtype is dtypes.bool_:
        if len(data) == 1 and (data[0] in (0, 255) or count > 8):  # one byte for all elements
            return np.broadcast_to(np.array(data[0] != 0), shape)
        if len(data) == count:
            return np.not_equal(np.frombuffer(data, np.uint8), 0).reshape(shape)
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return bits[:count].astype(np.bool_).reshape(shape)
    found = np.frombuffer(data, dtype.numpy if not dtype.is_packed else np.uint8)
    if dtype.is_packed:
        found = found.astype(dtype.numpy)
    if len(found) == 1 != count:
        return np.broadcast_to(found.reshape(()), shape)
    return found.reshape(shape)


def _flatten(x: Any, out: list[Any]) -> None:
    if isinstance(x, list):
        for i in x:
            _flatten(i, out)
    else:
        out.append(x)


def _numbers(flat: list[Any], dtype: DType) -> Array:
    """Numbers as the text writes them; hexadecimal ones of floats are their bits."""
    if not dtype.is_float:
        return np.array([x if isinstance(x, bool) else int(x, 0) if x[:2] in ("0x", "-0") else
                         int(x) for x in flat], object).astype(dtype.numpy)
    hexadecimal = [isinstance(x, str) and x[:2] == "0x" for x in flat]
    plain = [0.0 if h else float(x) for x, h in zip(flat, hexadecimal, strict=True)]
    out = np.array(plain, np.float64).astype(dtype.numpy)
    if any(hexadecimal):
        whole = dtypes.BY_NAME[f"uint{max(dtype.bits, 8)}"].numpy
        bits = out.view(whole)
        for i, h in enumerate(hexadecimal):
            if h:
                bits[i] = int(flat[i], 16)
    return out


@stablehlo("iota")
def iota(ctx: Context, *, iota_dimension: int) -> Any:
    """0, 1, 2, … along an axis, repeated along the others."""
    return line(ctx, ctx.result().dtype, ctx.result().shape, iota_dimension)


@stablehlo("dynamic_iota")
def dynamic_iota(ctx: Context, shape: Any, *, iota_dimension: int) -> Any:
    """`iota` of a computed shape."""
    return line(ctx, ctx.dtype, dims_of(shape, "the shape"), iota_dimension)


def line(ctx: Context, dtype: DType, shape: tuple[Dim, ...], axis: int) -> Any:
    """0, 1, 2, … along one axis of a shape: stored for that axis only."""
    if not 0 <= axis < len(shape):
        raise ValueError(f"there is no axis {axis} of {len(shape)}")
    n, rest = shape[axis], (1,) * (len(shape) - axis - 1)
    if isinstance(n, int) and n <= FOLD_LIMIT:
        return spread(np.arange(n).astype(dtype.numpy).reshape((n, *rest)), shape)
    made = ctx.builder.emit(o.iota, (), {"shape": (n, *rest), "axis": 0, "dtype": dtype})
    return spread(made, shape)


@stablehlo("get_dimension_size")
def get_dimension_size(ctx: Context, x: Any, *, dimension: int) -> Any:
    """The size of one axis, known at import or an open size."""
    size = shape_of(x)[dimension]
    if isinstance(size, int):
        return np.array(size, ctx.dtype.numpy)
    out = np.empty((), object)
    out[()] = size
    return Sizes(out, ctx.dtype)
