"""One unit → one kernel. Equal kernels are kept once; a run lists the buffers that it passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from graphtool.ir.facets import Lowering
from graphtool.ir.graph import Node, Value
from graphtool.kernels.record import has_text, serving
from graphtool.kernels.use import Lowered
from graphtool.loops.contract import CONTRACTS, HOME
from graphtool.loops.ir import Accumulate, For, Stmt, Template
from graphtool.loops.program import Kernel, Param
from graphtool.loops.pull import Names, Pull, View, const, pull_of
from graphtool.loops.totals import cost
from graphtool.loops.walk import accesses, bodies, renamed, statements, values
from graphtool.lower.donation import stores_last
from graphtool.lower.exprs import rounded
from graphtool.lower.loop_axes import merged
from graphtool.lower.nest import nest
from graphtool.lower.row_loops import in_rows, kept
from graphtool.lower.slabs import in_slabs
from graphtool.lower.statements import lower_statements
from graphtool.lower.table_runs import in_runs
from graphtool.lower.transposition import crossing, crossing_pairs
from graphtool.lower.unit_use import UnitUse
from graphtool.lower.units import Unit, pull_from, pulls, read_values
from graphtool.lower.views import Assignment, Copy, Storage
from graphtool.ops.shape import pad_value
from graphtool.symbolic import Dim, bounds, product, symbols
from graphtool.target import Target

SERIAL_BELOW = 20_000  # below this number of nominal flops, one thread is faster than several
Made = tuple[Kernel, tuple[str, ...], frozenset[str], Dim]


class KernelTable:
    """The program's kernels so far, by their statements under canonical parameter names.

    With `excess`, narrow floats keep the digits of float32 within a kernel; `language` is that in
    which they will be emitted, and `grid` says that very many workers will run them.
    """

    def __init__(self, excess: bool = False, language: str = HOME, grid: bool = False) -> None:
        self.excess, self.language, self.grid = excess, language, grid
        self.kernels_by_text: dict[tuple[tuple[Param, ...], tuple[Stmt, ...], bool], Kernel] = {}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, in the order in which they were added."""
        return tuple(self.kernels_by_text.values())

    def add(self, body: tuple[Stmt, ...], buffers: Mapping[str, Storage], work: int) -> tuple[
            Kernel, tuple[str, ...], frozenset[str]]:
        """The kernel with buffers renamed to parameters, its arguments, and those it writes."""
        body = body if self.excess else rounded(body)
        order, written = _buffers(body)
        names, reads, writes = {}, 0, 0
        for b in order:
            if b in written:
                names[b], writes = f"y{writes}", writes + 1
            else:
                names[b], reads = f"x{reads}", reads + 1
        params = tuple(Param(names[b], buffers[b].dtype, b not in written, buffers[b].packed)
                       for b in order)
        stmts = renamed(body, lambda b: names.get(b, b))
        small = work < SERIAL_BELOW and not self.grid
        serial = (small or not _shared(body)) and not any(
            isinstance(s, Template) for s in statements(body))
        kernel = self.kernels_by_text.get((params, stmts, serial))
        if kernel is None:
            kernel = Kernel(f"k{len(self.kernels_by_text)}", params, stmts, serial)
            self.kernels_by_text[params, stmts, serial] = kernel
        return kernel, tuple(order), frozenset(written)


def _shared(body: tuple[Stmt, ...]) -> bool:
    """Whether threads share a loop; without such a loop one thread runs all of the kernel."""
    return any(isinstance(s, For) and s.mode.startswith("parallel") for s in statements(body))


def _buffers(body: tuple[Stmt, ...]) -> tuple[list[str], set[str]]:
    """The buffers that statements touch in order of appearance, and those they write."""
    order, _, written = touched(body)
    return order, written


def touched(body: tuple[Stmt, ...]) -> tuple[list[str], set[str], set[str]]:
    """The buffers of the statements in order of appearance, those read, and those written."""
    whole = [(b, write) for s in statements(body) if isinstance(s, Template)
             for names, write in ((s.reads, False), (s.writes, True)) for b in names]
    accessed = [(b, write) for b, write in (*whole, *accesses(body)) if b != "acc"]
    return (list(dict.fromkeys(b for b, _ in accessed)), {b for b, write in accessed if not write},
            {b for b, write in accessed if write})


def unit_kernel(unit: Unit, assignment: Assignment, target: Target,
                table: KernelTable) -> Iterator[Made]:
    """The kernels of a unit: one, or one per output shape where they differ."""
    lowered = _by_kernel(unit, assignment, target)
    if lowered is not None:
        for one in lowered:
            if one.body:
                yield *table.add(one.body, assignment.buffers, one.work), one.flops
        return
    shapes: dict[tuple[Dim, ...], list[Value]] = {}
    for v in unit.outputs:
        shapes.setdefault(v.type.shape, []).append(v)
    for shape, alike in shapes.items():
        if any(d == 0 for d in shape):
            continue
        names = Names()
        views = {v: assignment.views[v] for v in read_values(unit)} | {
            v: assignment.views[v] for v in alike}
        views = merged(unit, alike, views)
        env = pulls(unit.nodes, {v: pull_from(assignment.buffers, view) for v, view in views.items()
                                 if v not in unit.outputs}, names)
        outputs = [(views[v], env[v]) for v in alike]
        passes = in_slabs(outputs, names, assignment.buffers, alike[0].hint) if table.grid else [
            outputs]
        for stored in passes:
            yield _nest_kernel(stored, names, assignment.buffers, table)


def _nest_kernel(outputs: list[tuple[View, Pull]], names: Names, buffers: Mapping[str, Storage],
                 table: KernelTable) -> Made:
    """The kernel that stores outputs of one shape."""
    body = _transposed(outputs, names, table) or kept(nest(names, outputs, table.grid), buffers)
    body = in_runs(stores_last(body), buffers)
    per = sum(cost(p.at((0,) * len(p.shape))) for _, p in outputs)
    work = product(outputs[0][0].shape) * per
    return *table.add(in_rows(body, buffers), buffers, _at_most(work)), _flops(body, work)


def _transposed(outputs: list[tuple[View, Pull]], names: Names, table: KernelTable
                ) -> tuple[Stmt, ...] | None:
    """The kernel for outputs that transpose.h computes; None for others, and where it has no text
    in the language."""
    if table.language not in CONTRACTS["transpose"].languages:
        return None
    return crossing(outputs, names) or crossing_pairs(outputs, names)


def _by_kernel(unit: Unit, assignment: Assignment, target: Target) -> list[Lowered] | None:
    """The statements of the kernels of a unit that uses a template or has loops of its own; None if
    it is a loop nest."""
    node = next((n for n in unit.nodes if serving(n.op)
                 or n.op.lowering is Lowering.STATEMENTS), unit.nodes[0])
    kernel = serving(node.op)
    if kernel is None and node.op.lowering is not Lowering.STATEMENTS:
        return None
    if not (kernel and kernel.fuses) and all(product(v.type.shape) == 0 for v in unit.outputs):
        return []
    use = UnitUse(unit, node, assignment, target)
    if kernel is None or not has_text(node.op, target.language):
        return lower_statements(use)
    lowered = kernel.lower[node.op.name](use)
    lowered = lowered if isinstance(lowered, list) else [lowered]
    return [replace(x, body=stores_last(x.body)) for x in lowered] if kernel.fuses else lowered


def copy_kernel(c: Copy, assignment: Assignment, table: KernelTable) -> Made:
    """The kernel that fills a window with a value or a number."""
    names = Names()
    match c.source:
        case Value():
            source = pull_of(assignment.views[c.source])
        case Node():
            args = [pull_of(assignment.views[x]) if isinstance(x, Value) else x
                    for x in c.source.inputs]
            assert c.source.op.lower is not None
            source = c.source.op.lower(names, *args, **c.source.attrs)
        case number:
            source = _number(number, c.target)
    outputs = [(c.target, source)]
    body = _transposed(outputs, names, table) or nest(names, outputs, table.grid)
    return *table.add(body, assignment.buffers, _at_most(product(c.target.shape))), 0


def fill_kernel(edges: list[Copy], assignment: Assignment, table: KernelTable) -> Made:
    """The kernel that fills the edges of a padded buffer, with a loop nest for each edge."""
    names = Names()
    body: tuple[Stmt, ...] = ()
    for c in edges:
        assert isinstance(c.source, float)
        body += nest(names, [(c.target, _number(c.source, c.target))], table.grid)
    size: Dim = 0
    for c in edges:
        size = size + product(c.target.shape)
    return *table.add(body, assignment.buffers, _at_most(size)), 0


def _number(number: float, target: View) -> Pull:
    value = pad_value(number, target.dtype)
    return Pull(target.dtype, target.shape, lambda _: const(value, target.dtype))


def _flops(body: tuple[Stmt, ...], work: Dim) -> Dim:
    """Nominal flops of loops: each statement counts as often as it runs, so a sum over a row counts
    once for all its readers.

    It is `work`, which ignores such sharing, if a template contains the loops or an iterator bounds
    them.
    """
    inside = list(statements(body))
    if any(isinstance(s, Template) or (isinstance(s, For) and any(
            x.extent is not None for x in symbols(s.extent))) for s in inside):
        return work
    total: Dim = 0
    for s in body:
        here = sum(map(cost, values(s))) + isinstance(s, Accumulate)
        parts = [_flops(inner, 0) for inner in bodies(s)]
        total = total + here + (parts[0] * s.extent if isinstance(s, For) else sum(parts))
    return total


def _at_most(work: Dim) -> int:
    """An upper bound; if there is none, a number that is enough for all threads."""
    most = bounds(work)[1]
    return SERIAL_BELOW if most is None else most
