"""Dimensions as ONNX values: constants if static, computed from a tensor's shape if symbolic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from graphtool.exporters.forms import Declined
from graphtool.exporters.onnx.writer import Writer
from graphtool.symbolic import Atom, Call, Dim, Poly, Symbol, bounds, substitute


def shape(w: Writer, dims: Sequence[Dim]) -> str:
    """All sizes as one i64 vector; the Shape of a tensor if one has this shape."""
    if all(isinstance(d, int) for d in dims):
        return w.array(list(dims))
    with _computing(w):
        whole = w.shapes.get(tuple(dims)) if len(dims) > 1 else None
        return _joined(w, dims) if whole is None else _whole(w, tuple(dims), whole)


def _whole(w: Writer, dims: tuple[Dim, ...], name: str) -> str:
    if dims not in w.sizes:
        w.sizes[dims] = w("Shape", name)
    return w.sizes[dims]


@contextmanager
def _computing(w: Writer) -> Iterator[None]:
    """A context in which nodes compute sizes."""
    before = len(w.nodes)
    yield
    w.shared.of_sizes.update(name for n in w.nodes[before:] for name in n.output)


def _joined(w: Writer, dims: Sequence[Dim]) -> str:
    parts: list[str] = []
    run: list[int] = []
    for d in dims:
        if isinstance(d, int):
            run.append(d)
            continue
        parts += [w.array(run)] if run else []
        parts.append(size(w, d))
        run = []
    parts += [w.array(run)] if run else []
    return parts[0] if len(parts) == 1 else w("Concat", *parts, axis=0)


def size(w: Writer, d: Dim) -> str:
    """One size as i64[1]; computed once in each graph."""
    if isinstance(d, int):
        return w.array([d])
    if d not in w.sizes:
        with _computing(w):
            w.sizes[d] = _sum(w, d)
    return w.sizes[d]


def _sum(w: Writer, d: Poly) -> str:
    if d in w.axes:
        shape, axis = w.axes[d]
        return str(w("Shape", w.shapes[shape], start=axis, end=axis + 1))
    total = ""
    for powers, coefficient in d.terms:
        factors = [_atom(w, atom) for atom, power in powers for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.append(w.array([coefficient]))
        term = factors[0]
        for f in factors[1:]:
            term = w("Mul", term, f)
        total = w("Add", total, term) if total else term
    return total


def _atom(w: Writer, atom: Atom) -> str:
    match atom:
        case Symbol():
            return _symbol(w, atom)
        case Call("//", a, b):
            low = bounds(a)[0]
            top, by = size(w, a), size(w, b)
            if low is None or low < 0:  # Div truncates
                top = w("Sub", top, w("Mod", top, by))
            return str(w("Div", top, by))
        case Call(fn, a, b):
            name = {"%": "Mod", "min": "Min", "max": "Max"}[fn]
            return str(w(name, size(w, a), size(w, b)))


def _symbol(w: Writer, s: Symbol) -> str:
    """The number of a symbol's steps, computed from the shape of a tensor with an axis of size
    a·s + b."""
    known = w.read(s.name)
    if known:
        return known
    source = w.source(s.name)
    if source is None:
        raise Declined(f"no tensor before this node has the size {s.name}")
    ((name, axis), d), home = source
    n = home("Shape", name, start=axis, end=axis + 1)
    offset = substitute(d, {s.name: s.offset})
    slope = substitute(d, {s.name: s.offset + s.step}) - offset
    if not isinstance(offset, int) or not isinstance(slope, int) or d != _line(s, slope, offset):
        raise Declined(f"the size {s.name} cannot be computed from a tensor's shape")
    if offset:
        n = home("Sub", n, home.array([offset]))
    if slope != 1:
        n = home("Div", n, home.array([slope]))
    home.sizes[s.name] = n
    return str(n)


def _line(s: Symbol, slope: int, offset: int) -> Dim:
    return Poly(((((s, 1),), 1),)) * slope + offset
