"""One case: an operation in a function of its own, and arrays to run it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

FLOATS = ("f16", "bf16", "f32", "f64")
NARROW = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f8E4M3", "f8E3M4",
          "f8E8M0FNU", "f4E2M1FN")
SIGNED = ("i4", "i8", "i16", "i32", "i64")
UNSIGNED = ("ui4", "ui8", "ui16", "ui32", "ui64")
INTEGERS = (*SIGNED, *UNSIGNED)
COMPLEX = ("complex<f32>", "complex<f64>")
NUMBERS = (*FLOATS, *INTEGERS, *COMPLEX)
EVERY = ("i1", *NUMBERS)
SHAPES: tuple[Shape, ...] = ((), (0, 3), (7,), (3, 5), (2, 3, 4), (2, 1, 3, 2))

_NUMPY: dict[str, Any] = {
          "i1": np.bool_, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
          "f64": np.float64, "complex<f32>": np.complex64, "complex<f64>": np.complex128,
          "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
          "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
          "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz, "f8E4M3": ml_dtypes.float8_e4m3,
          "f8E3M4": ml_dtypes.float8_e3m4, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
          "f4E2M1FN": ml_dtypes.float4_e2m1fn, "i2": ml_dtypes.int2, "ui2": ml_dtypes.uint2,
          "i4": ml_dtypes.int4, "ui4": ml_dtypes.uint4,
          **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
          **{f"ui{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}}


@dataclass(frozen=True)
class Case:
    """`text` has a function @main that takes the inputs; `op` is what the case is about."""

    name: str
    op: str
    text: str
    inputs: Sequence[Array]
    tolerance: float = 1e-5
    expected: Sequence[Array] | None = None


def numpy_of(element: str) -> np.dtype[Any]:
    out: np.dtype[Any] = np.dtype(_NUMPY[element])
    return out


def tensor(element: str, shape: Shape) -> str:
    return f"tensor<{''.join(f'{d}x' for d in shape)}{element}>"


def array(element: str, shape: Shape, seed: int = 0, lo: float = -3.0, hi: float = 3.0) -> Array:
    """Random numbers between lo and hi; of an integer type whole ones that it holds."""
    rng = np.random.default_rng(seed + 17 * len(shape))
    row = numpy_of(element)
    if element == "i1":
        return rng.random(shape) < 0.5
    if element in COMPLEX:
        return np.asarray(rng.uniform(lo, hi, shape) + 1j * rng.uniform(lo, hi, shape)).astype(row)
    if element.lstrip("u").startswith("i"):
        bits = int(element.lstrip("ui"))
        low = 0 if element.startswith("u") else -(1 << (bits - 1))
        high = low + (1 << bits) - 1
        return np.asarray(rng.integers(max(low, int(lo) * 4), min(high, int(hi) * 4) + 1, shape,
                                       dtype=np.int64)).astype(row)
    return np.asarray(rng.uniform(lo, hi, shape)).astype(row)


def case(op: str, tag: str, ins: Sequence[tuple[str, Array]], outs: Sequence[str], body: str,
         tolerance: float = 1e-5) -> Case:
    """A case from the inputs' element types and arrays, the results' types, and the body, which
    reads %0, %1, … and makes %r, or %r#0, %r#1, …"""
    takes = ", ".join(f"%a{i}: {tensor(e, x.shape)}" for i, (e, x) in enumerate(ins))
    results = [f"%r#{i}" for i in range(len(outs))] if len(outs) > 1 else ["%r"]
    text = (f"func.func public @main({takes}) -> ({', '.join(outs)}) {{\n  {body}\n"
            f"  return {', '.join(results)} : {', '.join(outs)}\n}}\n")
    return Case(f"{op} {tag}", op, text, [x for _, x in ins], tolerance)


def plain(op: str, element: str, xs: Sequence[Array], out: str | None = None,
          elements: Sequence[str] = (), attrs: str = "", tolerance: float = 1e-5) -> Case:
    """A case of an elementwise operation in the generic form."""
    kinds = list(elements) or [element] * len(xs)
    ins = list(zip(kinds, xs, strict=True))
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    to = tensor(out or element, shape)
    types = ", ".join(tensor(e, x.shape) for e, x in ins)
    name = op if "." in op else f"stablehlo.{op}"
    body = (f'%r = "{name}"({", ".join(f"%a{i}" for i in range(len(ins)))}) {attrs} : ({types}) -> '
            f"{to}")
    tag = " ".join([*dict.fromkeys(kinds), *([f"-> {out}"] if out else []), str(list(shape))])
    return case(name.removeprefix("stablehlo."), tag, ins, [to], body, tolerance)
