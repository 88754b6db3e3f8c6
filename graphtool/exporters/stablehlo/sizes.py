"""Open sizes as scalars of i32: those of arguments, and numbers that the program computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphtool import dtypes
from graphtool.exporters.forms import Ref
from graphtool.exporters.stablehlo.registry import Unsized
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Node, TensorType
from graphtool.ir.run_sizes import bare, defined
from graphtool.symbolic import Atom, Call, Dim, Poly, Symbol, bounds, substitute, symbol_of

SIZE = TensorType(dtypes.int32, ())


def vector(w: Writer, dims: Sequence[Dim | Ref]) -> Ref:
    """Several sizes, or scalars that have some, as a vector of i32."""
    if all(isinstance(d, int) for d in dims):
        return w.array(np.array(dims, np.int32))
    one = TensorType(dtypes.int32, (1,))
    rows = [w.array(np.array([d], np.int32)) if isinstance(d, int) else w(
        "reshape", d if isinstance(d, Ref) else size(w, d), to=one) for d in dims]
    if len(rows) == 1:
        return rows[0]
    return w("concatenate", *rows, to=TensorType(dtypes.int32, (len(rows),)), attrs=", dim = 0")


def note(w: Writer, node: Node, results: Sequence[Ref]) -> None:
    """Compute the open size that a node defines from its results, for the operations behind it."""
    s = defined(node)
    if s is None:
        return
    if node.op.name == "size":
        w.sizes[symbol_of(s)] = w("convert", results[0], to=SIZE)
        return
    for x in results:
        for axis, d in enumerate(x.shape):
            if bare(d) == s:
                w.sizes[symbol_of(s)] = _axis(w, x, axis)
                return


def size(w: Writer, d: Dim) -> Ref:
    """One size as a scalar of i32. Raises Unsized if nothing has it."""
    if isinstance(d, int):
        return w.number(d, dtypes.int32)
    ref = known(w, d)
    if ref is None:
        ref = w.sizes[d] = _of_argument(w, d) or _sum(w, d)
    return ref


def known(w: Writer, d: Dim) -> Ref | None:
    """A size that was computed before, in this block or around it."""
    block: Writer | None = w
    while block is not None:
        if d in block.sizes:
            return block.sizes[d]
        block = block.outer
    return None


def _of_argument(w: Writer, d: Dim) -> Ref | None:
    """The size itself, of an argument's axis."""
    for x in w.function.sources:
        if d in x.shape:
            return _axis(w, x, x.shape.index(d))
    return None


def _axis(w: Writer, x: Ref, axis: int) -> Ref:
    return w("get_dimension_size", x, to=SIZE, attrs=f", dim = {axis}")


def _sum(w: Writer, d: Poly) -> Ref:
    total: Ref | None = None
    for powers, coefficient in d.terms:
        factors = [_atom(w, atom) for atom, power in powers for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.append(w.number(coefficient, dtypes.int32))
        term = factors[0]
        for f in factors[1:]:
            term = w("multiply", term, f, to=SIZE)
        total = term if total is None else w("add", total, term, to=SIZE)
    return total or w.number(0, dtypes.int32)


def _atom(w: Writer, atom: Atom) -> Ref:
    match atom:
        case Symbol():
            return _symbol(w, atom)
        case Call("min" | "max" as fn, a, b):
            return w(f"{fn}imum", size(w, a), size(w, b), to=SIZE)
        case Call(fn, a, b):
            return _divided(w, fn, a, b)


def _divided(w: Writer, fn: str, a: Dim, b: Dim) -> Ref:
    """a // b or a % b, downwards: StableHLO cuts towards 0, so b·⌈…⌉ is added to a negative a."""
    top, by = size(w, a), size(w, b)
    low = bounds(a)[0]
    if low is not None and low >= 0:
        return w("divide" if fn == "//" else "remainder", top, by, to=SIZE)
    rest = w("remainder", top, by, to=SIZE)
    rest = w("remainder", w("add", rest, by, to=SIZE), by, to=SIZE)
    if fn == "%":
        return rest
    return w("divide", w("subtract", top, rest, to=SIZE), by, to=SIZE)


def _symbol(w: Writer, s: Symbol) -> Ref:
    """A symbol's number of steps, from an argument's axis of size a·s + b."""
    dim = symbol_of(s)
    ref = known(w, dim)
    if ref is not None:
        return ref
    for x in w.function.sources:
        for axis, d in enumerate(x.shape):
            line = _line(d, s)
            if line is None:
                continue
            slope, offset = line
            n = _axis(w, x, axis)
            if offset:
                n = w("subtract", n, w.number(offset, dtypes.int32), to=SIZE)
            if slope != 1:
                n = w("divide", n, w.number(slope, dtypes.int32), to=SIZE)
            w.sizes[dim] = n
            return n
    raise Unsized(s)


def _line(d: Dim, s: Symbol) -> tuple[int, int] | None:
    """(slope, offset) of a size that depends on the symbol alone, and linearly."""
    if isinstance(d, int) or {a for powers, _ in d.terms for a, _ in powers} != {s}:
        return None
    offset = substitute(d, {s.name: s.offset})
    slope = substitute(d, {s.name: s.offset + s.step}) - offset
    if not isinstance(offset, int) or not isinstance(slope, int):
        return None
    return (slope, offset) if d == symbol_of(s) * slope + offset else None
