"""Types and constants as ONNX protos, with elements below 8 bits packed."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto, ValueInfoProto, helper

from graphtool.dtypes import DType, string
from graphtool.errors import UnsupportedError
from graphtool.io.weights import Weight
from graphtool.ir.graph import TensorType
from graphtool.ir.run_sizes import bare
from graphtool.symbolic import text


def element_type(dtype: DType) -> int:
    """ONNX's number of an element type. Raises UnsupportedError GT1040 if ONNX does not have it."""
    if not dtype.onnx:
        raise UnsupportedError("GT1040", f"ONNX has no element type {dtype.name}")
    return dtype.onnx


def value_info(name: str, type: TensorType) -> ValueInfoProto:
    """A named tensor type; a symbolic dim becomes its name, or text such as `2*B + 1`."""
    dims: list[Any] = [d if isinstance(d, int) else text(d) if (s := bare(d)) is None else s.name
                       for d in type.shape]
    return helper.make_tensor_value_info(name, element_type(type.dtype), dims)


def packed_bytes(w: Weight) -> bytes:
    """The raw data of a TensorProto: little-endian; types below 8 bits are packed, low bits
    first."""
    return w.stored.tobytes()


def tensor(name: str, w: Weight) -> TensorProto:
    """A constant with its data in the proto."""
    if w.dtype is string:
        return TensorProto(name=name, data_type=string.onnx, dims=w.shape,
                           string_data=[s.encode() for s in w.source.reshape(-1).tolist()])
    return TensorProto(name=name, data_type=element_type(w.dtype), dims=w.shape,
                       raw_data=packed_bytes(w))


def external_tensor(name: str, w: Weight, location: str, offset: int, length: int) -> TensorProto:
    """A constant with its data in another file beside the model."""
    t = TensorProto(name=name, data_type=element_type(w.dtype), dims=w.shape,
                    data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        t.external_data.add(key=key, value=str(value))
    return t
