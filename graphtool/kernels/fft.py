"""fft.h: Fourier transforms of lines whose length has the factors 2, 3 and 5 only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphtool import dtypes
from graphtool.kernels.kit import (
    Area, Contract, Dim, Instance, Lowered, Macro, MacroValue, Numbers, Pointer, Record, Symbol,
    Use, View, anywhere, flags, product, register, sizes, symbol_of, unflatten_index, work_of)
from graphtool.ops.spectrum import is_smooth

SIDE_BY_SIDE = 16  # lines
MACROS = (
    Macro("T", "type", "the type of the elements, f32 or f64"),
    *sizes(LINES="lines", N="elements of a line", COUNT="elements of a result that are stored"),
    *flags(INVERSE="whether the exponent's sign is +"),
    *sizes(XS="elements between adjacent real parts of a line"),
    Macro("XIS", "size", "the same for imaginary parts", None),
    Macro("YRS", "size", "elements between adjacent real parts of a result", None),
    Macro("YIS", "size", "the same for imaginary parts", None))
POINTERS = (
    Pointer("X", "the real parts of a line", ("line",)),
    Pointer("XI", "the imaginary parts; without them they are 0", ("line",), False),
    Pointer("TABLE", "the cosines of 2·pi·k/N for each k, then the sines"),
    Pointer("YR", "memory for the real parts", ("line",), False, True),
    Pointer("YI", "memory for the imaginary parts", ("line",), False, True),
    Pointer("WORK", "memory of thread t for 64·N elements", ("t",), writes=True))


def meaning(t: Instance) -> None:
    """Each line, by numpy."""
    lines, n, count = t.sizes("LINES N COUNT")
    for line in range(lines):
        x = t.read("X", line).astype(np.complex128)
        if t.has("XI"):
            x += 1j * t.read("XI", line)
        y = np.fft.ifft(x) * n if t.get("INVERSE") else np.fft.fft(x)
        for name, part in (("YR", y.real), ("YI", y.imag)):
            if t.has(name):
                t.write(name, part[:count], line)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    lines, n, count, kind = t.sizes("LINES N COUNT T")
    t.need(kind in (dtypes.float32, dtypes.float64), "elements of float32 or float64")
    t.need(is_smooth(n), "N with the factors 2, 3 and 5 only")
    t.need(count <= n, "COUNT of at most N")
    yield Area("X", (n,), (t.get("XS"),), (lines,), kind)
    yield Area("TABLE", (2 * n,), dtype=kind)
    for name, length in (("XI", n), ("YR", count), ("YI", count)):
        if t.has(name):
            t.need(t.get(f"{name}S") is not None, f"{name}S")
            yield Area(name, (length,), (t.get(f"{name}S"),), (lines,), kind)
    yield Area("WORK", (4 * SIDE_BY_SIDE * n,), dtype=kind)


def lower(use: Use) -> Lowered:
    """The lines are all axes but the last."""
    real, imag, table = use.given()
    assert real is not None and table is not None
    n, line = real.shape[-1], symbol_of(Symbol("line", 0, None))
    lines = product(real.shape[:-1])
    results = [use.result(0), use.result(1)]
    stored = next(v for v in results if v is not None)
    macros: dict[str, MacroValue] = {
        "T": real.dtype, "LINES": lines, "N": n, "COUNT": stored.shape[-1],
        "INVERSE": bool(use.node.attrs["inverse"])}
    pointers: dict[str, tuple[str, Dim]] = {"TABLE": (table.buffer, table.offset)}
    for name, step, view in (("X", "XS", real), ("XI", "XIS", imag), ("YR", "YRS", results[0]),
                             ("YI", "YIS", results[1])):
        if view is not None:
            macros[step] = view.strides[-1]
            pointers[name] = (view.buffer, _line_start(view, line))
    pointers["WORK"] = (use.scratch(4 * SIDE_BY_SIDE * n, real.dtype), 0)
    assert isinstance(n, int)
    flops = lines * (5 * n * n.bit_length())
    return Lowered(use.template("fft", macros, pointers), flops, work_of(flops))


def _line_start(v: View, line: Dim) -> Dim:
    """Where line number `line` of a view starts; they are counted over all axes but the last."""
    shape = v.shape[:-1]
    at = unflatten_index(line, shape) if product(shape) != 1 else (0,) * len(shape)
    return v.index((*at, 0))


register(Record(Contract("fft", "Fourier transforms of lines", MACROS, POINTERS, meaning,
                         touches=touches, grain="pieces"), {"fft": lower}, anywhere))
