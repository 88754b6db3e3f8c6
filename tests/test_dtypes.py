"""The table of element types against what numpy, ONNX, torch and safetensors say themselves."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import onnx
import pytest
import safetensors.numpy
import torch
from torch._export.serde.schema import ScalarType

from graphtool.dtypes import BY_NAME, TABLE, DType, converted, float32, int8, string, uint8
from graphtool.errors import UnsupportedError
from graphtool.exporters.onnx.writer import element_type
from graphtool.importers.torch.driver.live import DTYPES
from graphtool.io.weights import pack, unpack, weight

CONVERSIONS = [  # a number, its type, another type, whether that has the number
    (1.5, "f64", "f32", True), (np.nan, "f64", "f32", True), (np.inf, "f32", "f16", True),
    (1e300, "f64", "f32", False), (70000.0, "f32", "f16", False), (0.1, "f64", "bf16", True),
    (500.0, "f32", "f8e4m3fn", False), (1.0, "f64", "i64", False), (1.0, "f32", "bool", False),
    (2**24, "i64", "f32", True), (2**24 + 1, "i64", "f32", False), (257, "i32", "bf16", False),
    (2**63 - 1, "i64", "f64", False), (2**63, "u64", "i64", False),
    (2**64 - 1, "u64", "f32", False),
    (-1, "i64", "u64", False), (255, "i64", "u8", True), (255, "u8", "i8", False),
    (300, "i64", "u8", False), (-9, "i64", "i4", False), (True, "bool", "f32", True),
    (7, "i64", "bool", False)]


@pytest.mark.parametrize(("number", "kind", "to", "fits"), CONVERSIONS)
def test_conversions_keep_numbers(number: object, kind: str, to: str, fits: bool) -> None:
    x = np.array([0, number], BY_NAME[kind].numpy)
    out = converted(x, BY_NAME[to])
    assert (out is not None) == fits
    if out is not None:
        assert out.dtype == BY_NAME[to].numpy
        np.testing.assert_allclose(out.astype(np.float64), x.astype(np.float64), rtol=4e-3)
        if not BY_NAME[kind].is_float:
            assert out.tolist() == x.tolist()


def test_strings_and_complex_numbers_are_not_converted() -> None:
    assert converted(np.array(["1"]), float32) is None
    assert converted(np.ones(1, np.complex64), float32) is None


NUMBERS = [row for row in TABLE if row is not string]


def short(row: DType) -> str:
    return row.short


@pytest.mark.parametrize("row", [r for r in NUMBERS if r.onnx], ids=short)
def test_onnx(row: DType) -> None:
    assert row.onnx == onnx.helper.np_dtype_to_tensor_dtype(row.numpy)
    assert onnx.helper.tensor_dtype_to_np_dtype(row.onnx) == row.numpy
    assert onnx.TensorProto.DataType.Name(row.onnx) in (row.name.upper(), {
        "f32": "FLOAT", "f64": "DOUBLE"}.get(row.short))


@pytest.mark.parametrize("row", [r for r in NUMBERS if r.torch], ids=short)
def test_torch(row: DType) -> None:
    kind = getattr(torch, row.torch)
    assert DTYPES[kind] is row and kind.itemsize == row.bytes and kind.is_floating_point == (
        row.is_float)
    names = {"u8": "BYTE", "i8": "CHAR", "i16": "SHORT", "i32": "INT", "i64": "LONG",
             "f16": "HALF", "f32": "FLOAT", "f64": "DOUBLE"}
    assert ScalarType(row.torch_code).name == names.get(
        row.short, row.torch.upper().replace("_", "")) or ScalarType(
        row.torch_code).name == row.torch.upper()


def test_numbers_are_given_once() -> None:
    for field in ("name", "short", "onnx", "torch_code", "torch", "safetensors"):
        given = [getattr(r, field) for r in TABLE if getattr(r, field)]
        assert len(given) == len(set(given)), field


def test_safetensors_names_and_order() -> None:
    """Its own writer names the types so, and puts arrays of a larger rank first."""
    rows = [r for r in TABLE if r.safetensors]
    data = safetensors.numpy.save({r.name: np.zeros(3, r.numpy) for r in rows})
    header = data[8:8 + int.from_bytes(data[:8], "little")].decode()
    places = [header.index(f'"{r.name}":{{"dtype":"{r.safetensors}"') for r in rows]
    assert [r.rank for _, r in sorted(zip(places, rows, strict=True), key=lambda p: p[0])] == (
        sorted((r.rank for r in rows), reverse=True))


@pytest.mark.parametrize("row", [r for r in NUMBERS if r.is_integer], ids=short)
def test_ranges_of_integers(row: DType) -> None:
    limits = ml_dtypes.iinfo(row.numpy)
    assert (row.low, row.high) == (limits.min, limits.max)


@pytest.mark.parametrize("row", NUMBERS, ids=short)
def test_what_is_computed_in_holds_every_value(row: DType) -> None:
    assert row.computes is (float32 if row.is_narrow else row) or (row.is_packed and (
        row.computes is (int8 if row.kind == "int" else uint8)))
    assert not row.computes.is_borrowed and row.computes.bytes >= row.bytes


@pytest.mark.parametrize("row", [r for r in NUMBERS if r.is_packed], ids=short)
def test_packing_keeps_every_code(row: DType) -> None:
    codes = np.arange(2**row.bits, dtype=np.uint8)
    x = unpack(pack(codes, row.bits), row, codes.shape)
    held = weight(x)
    assert held.stored.size == max(1, 2**row.bits * row.bits // 8) and BY_NAME[row.name] is row
    assert held.source.astype(np.float32).tolist() == x.astype(np.float32).tolist()
    assert len(set(x.astype(np.float32).tolist())) >= 2**row.bits - 1  # -0.0 and 0.0 are equal


@pytest.mark.parametrize("row", NUMBERS, ids=short)
def test_npy_letters(row: DType) -> None:
    want = "V" if row.is_borrowed else row.numpy.str[1:2]
    assert row.npy == f"{want}{row.numpy.itemsize}"


def test_a_type_that_onnx_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="GT1040"):
        element_type(replace(float32, onnx=0))
