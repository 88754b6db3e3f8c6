"""The inputs and outputs of a program in its header: rank, shape, elements and bytes as macros."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool.emit.expr import ExprPrinter, Text, joined_terms
from graphtool.escaping import c_comment
from graphtool.loops.dim_names import author_text
from graphtool.loops.program import Port, Program
from graphtool.symbolic import Call, Dim, Symbol, bounds, product, symbols
from graphtool.symbolic.text import Factor, value_terms


class MacroPrinter(ExprPrinter):
    """Prints sizes as C of the standard headers alone, in terms of a macro's argument `dims`."""

    def __init__(self, program: Program) -> None:
        known = enumerate((*program.dims, *program.sizes))
        super().__init__({s.name: f"(dims)[{i}]" for i, s in known})

    def dim(self, d: Dim) -> Text:
        """As the base class does; a symbol stands for its value, not for the number of its
        steps."""
        if isinstance(d, int):
            return super().dim(d)
        return joined_terms((list(map(self.factor, parts)), c) for parts, c in value_terms(d))

    def factor(self, f: Factor) -> str:
        """The C text of a factor; its dividend is not negative."""
        a, offset, divisor = f
        less = f"({self.atom(a)} - {offset})" if offset else self.atom(a)
        return less if divisor == 1 else f"({less} / {divisor})"

    def atom(self, a: Symbol | Call) -> str:
        """As the base class does, without its functions."""
        if isinstance(a, Symbol):
            return super().atom(a)
        x, y = self.index(a.a, 13), self.index(a.b, 13)
        if a.fn in ("min", "max"):
            return f"(({x}) {'<' if a.fn == 'min' else '>'} ({y}) ? ({x}) : ({y}))"
        low = bounds(a.a)[0]
        if low is not None and low >= 0:
            return super().atom(a)
        below = f"(({x}) % ({y}) < 0)"
        return (f"(({x}) / ({y}) - {below})" if a.fn == "//" else
                f"(({x}) % ({y}) + ({below} ? ({y}) : 0))")


def open_sizes(program: Program, port: Port) -> bool:
    """Whether the port's shape is known only after a run."""
    names = {s.name for s in program.sizes}
    return any(s.name in names for d in port.shape for s in symbols(d))


def maybe_zero(program: Program, kind: str, slot: int) -> list[Dim]:
    """The sizes of an input or output that may be 0; if one is, it has no elements and may be
    NULL.

    If a run computes the shape, the room for it counts.
    """
    port = (program.inputs if kind == "input" else program.outputs)[slot]
    sizes: list[Dim] = list(port.shape)
    if open_sizes(program, port):
        sizes = [b.size for b in program.buffers if (b.space, b.slot) == (kind, slot)]
    return [d for d in sizes if (low := bounds(d)[0]) is None or low <= 0]


def port_lines(program: Program, left_out: frozenset[int] = frozenset()) -> Iterator[str]:
    """A comment and the macros of each port. Inputs in `left_out` and the outputs that are donated
    from them have the comment alone."""
    printer, name = MacroPrinter(program), program.name.upper()
    rooms = {b.slot: b.size for b in program.buffers if b.space == "output"}
    donors = dict(program.donations)
    updated = {o for o, i in program.donations if i in left_out}
    for kind, ports, skipped in (("input", program.inputs, left_out),
                                 ("output", program.outputs, updated)):
        for i, p in enumerate(ports):
            room = rooms[i] if kind == "output" and open_sizes(program, p) else None
            shape = c_comment(", ".join(map(author_text, p.shape)))
            more = "" if room is None else f", with room for {c_comment(author_text(room))}"
            if kind == "output" and i in donors and i not in skipped:
                more += f",\n   which takes the place of inputs[{donors[i]}]: give both one array"
            yield f"/* {kind}s[{i}]: {p.dtype.c} {c_comment(p.name)}[{shape}]{more} */"
            if i not in skipped:
                yield from _macros(printer, f"{name}_{kind.upper()}{i}", p, room)


def _macros(printer: ExprPrinter, stem: str, p: Port, room: Dim | None) -> Iterator[str]:
    """The macros of a port; `room` is the number of elements at most, if a run computes it."""
    yield f"#define {stem}_RANK {len(p.shape)}"
    if p.shape:
        shape = ", ".join(printer.index(d) for d in p.shape)
        yield f"#define {stem}_SHAPE{arguments(*p.shape)} {{{shape}}}"
    count = product(p.shape)
    yield f"#define {stem}_COUNT{arguments(count)} {printer.index(count, 15)}"
    size = (count if room is None else room) * p.dtype.bytes
    text = str(size) if isinstance(size, int) else f"((size_t)({printer.index(size)}))"
    yield f"#define {stem}_BYTES{arguments(size)} {text}"


def arguments(*sizes: Dim) -> str:
    """The parameter of a macro whose text depends on `dims`."""
    return "" if all(isinstance(d, int) for d in sizes) else "(dims)"
