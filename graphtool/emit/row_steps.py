"""Several rows of a block in one step: each loop of the block runs for some rows before the next
loop begins.

A softmax, or a norm, of a short row waits: for its greatest element, then for its sum, each the end
of a chain of vectors. The loops of different rows do not wait for each other, so a processor has
work in the meantime. What one row computes stays in its order, so no bit changes. A scalar that a
later loop reads is kept in an array, which has one for each row of the step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from graphtool import dtypes
from graphtool.emit.kept_rows import Block, Printer, Row, write_all
from graphtool.loops.ir import Accumulate, For, If, Index, Let, Load, Name, Stmt, Store, Template
from graphtool.loops.program import Param
from graphtool.loops.walk import each, moved, polynomials, statements, values
from graphtool.symbolic import Dim, Symbol, bounds, coefficient, product, symbol_of, symbols

ROWS = 8  # of a step
LONGEST = 208  # elements of a row: a processor that has as many in flight does not wait
Body = tuple[Stmt, ...]


@dataclass(frozen=True)
class RowSteps:
    """A loop over `row` that is run for `ROWS` rows at a time, unless they turn out to have a
    greater `length` than `LONGEST`; `first` is the first one of a step. `block` has the arrays of
    all rows, which keep what the later `stages` read."""

    row: Symbol
    first: Symbol
    length: Dim
    block: Block
    stages: tuple[Body, ...]


def in_steps(loop: For, block: Block) -> RowSteps | None:
    """The loop, whose body is the block, in steps; None for one without rows or with long ones, and
    where an iteration may touch what another stores."""
    inside = list(statements(block.body))
    rows = [s for s in block.body if isinstance(s, For)]
    length = max(map(_elements, rows), key=lambda n: bounds(n)[1] or 1, default=0)
    if len(rows) < 2 or not any(isinstance(s, Accumulate) for s in inside) or (
            (bounds(length)[0] or 0) > LONGEST or (bounds(loop.extent)[1] or ROWS) < 2):
        return None
    if any(isinstance(s, (If, Template)) or (isinstance(s, For) and s.mode.startswith("parallel"))
           for s in inside):
        return None
    first = Symbol(f"{loop.iter.name}_first", 0, None)
    at, kept = symbol_of(loop.iter) - symbol_of(first), {row.name: n for row, n in block.rows}
    linked = _linked(_stages(block.body), at)
    if linked is None or not _apart(loop, inside, kept):
        return None
    wide = tuple((row, n * ROWS) for row, n in block.rows)
    return RowSteps(loop.iter, first, length, replace(block, rows=(*linked[0], *wide)), tuple(
        moved(s, lambda b, d: (b, d + at * kept[b] if b in kept else d)) for s in linked[1]))


def _elements(loop: For) -> Dim:
    """The iterations of a loop, with those of the loop inside."""
    inner = [_elements(s) for s in loop.body if isinstance(s, For)]
    return product([loop.extent, *inner])


def _stages(body: Body) -> list[Body]:
    """The statements up to each loop."""
    ends = [i + 1 for i, s in enumerate(body) if isinstance(s, For)]
    parts = zip([0, *ends], [*ends, len(body)], strict=True)
    return [body[i:j] for i, j in parts if i < j]


def _linked(stages: Sequence[Body], at: Dim) -> tuple[list[Row], list[Body]] | None:
    """The arrays of the scalars that later stages read, and the stages that write and read them at
    an index; None if one is changed later, or has no type of its own in memory."""
    made, arrays, begun = dict[str, Let](), dict[str, Row](), list[Body]()
    for stage in stages:
        begin = list[Let]()
        for let in _read(stage, made.values()):
            dtype = let.value.dtype
            if not isinstance(let.value, Index):
                if dtype.computes is not dtype or dtype is dtypes.bool_:
                    return None
                row = Param(f"rows_{let.name}", dtype, False)
                arrays[let.name], let = (row, ROWS), Let(let.name, Load(row.name, at, dtype))
            begin.append(let)
        made |= {s.name: s for s in stage if isinstance(s, Let)}
        begun.append((*begin, *stage))
    for old, new in zip(stages, begun, strict=True):
        own = {s.name for s in statements(old) if isinstance(s, Let)}
        if any(isinstance(s, Accumulate) and s.name not in own for s in statements(new)):
            return None
    return list(arrays.values()), [(*new, *(
        Store(arrays[s.name][0].name, at, Name(s.name, s.value.dtype))
        for s in old if isinstance(s, Let) and s.name in arrays))
        for old, new in zip(stages, begun, strict=True)]


def _read(stage: Body, made: Collection[Let]) -> list[Let]:
    """The scalars of earlier stages that a stage reads, in their order, with the indices that
    indices are made of."""
    names, out = _names(stage), list[Let]()
    for let in reversed([*made]):
        if let.name in names:
            out.insert(0, let)
            names |= _names([let]) if isinstance(let.value, Index) else set()
    return out


def _names(body: Iterable[Stmt]) -> set[str]:
    """The scalars and the symbols that statements read."""
    body = [*body]
    named = {e.name for e in each(v for s in statements(body) for v in values(s))
             if isinstance(e, Name)}
    return named | {s.name for d in polynomials(body) for s in symbols(d)}


def _apart(loop: For, inside: Sequence[Stmt], kept: Collection[str]) -> bool:
    """Whether iterations touch different elements of what any of them stores: each index is
    c·i + j + what is equal for all, where j is at least 0 and less than c."""
    i, places = loop.iter.name, dict[str, set[tuple[Dim, Dim]]]()
    stored = {s.buffer for s in inside if isinstance(s, Store)}.difference(kept)
    inner = {s.iter.name: s.extent for s in inside if isinstance(s, For)}
    local = {s.name for s in inside if isinstance(s, Let)}
    loads = [e for e in each(v for s in inside for v in values(s)) if isinstance(e, Load)]
    for x in (x for x in (*loads, *inside) if isinstance(x, (Load, Store)) and x.buffer in stored):
        c = coefficient(x.index, i)
        if c is None or any(s.name in local for s in symbols(x.index)):
            return False
        j = sum(((coefficient(x.index, s.name) or 0) * symbol_of(s) for s in symbols(x.index)
                 if s.name in inner), start=0)
        rest = x.index - c * symbol_of(loop.iter) - j
        if any(s.name in inner for s in symbols(rest)) or not _within(j, c, inner):
            return False
        places.setdefault(x.buffer, set()).add((c, rest))
    return all(len(p) == 1 for p in places.values())


def _within(j: Dim, c: Dim, inner: dict[str, Dim]) -> bool:
    """Whether j is always at least 0 and less than c."""
    low, high = bounds(j)
    if low is None or low < 0:
        return False
    if isinstance(c, int):
        return high is not None and high < c
    return [*map(symbol_of, symbols(j))] == [j] and inner[symbols(j)[0].name] == c


def write(steps: RowSteps, lo: str, hi: str, to: Printer) -> None:
    """Write the loop from `lo` to `hi`."""
    i, first, size = steps.row.name, steps.first.name, to.language.size
    step = str(ROWS)
    if not isinstance(steps.length, int):
        step = f"{i}_step"
        to.w.line(f"const {size} {step} = {to.p.index(steps.length)} <= {LONGEST} ? {ROWS} : 1;")
    with to.w.block(f"for ({size} {first} = {lo}; {first} < {hi}; {first} += {step}) {{"):
        to.w.line(f"const {size} {i}_last = gt_min_i64({first} + {step}, {hi});")
        with steps.block.around(to):
            for stage in steps.stages:
                with to.w.block(f"for ({size} {i} = {first}; {i} < {i}_last; {i}++) {{"):
                    write_all(stage, steps.block.sums, to)
