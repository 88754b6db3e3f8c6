"""What all templates share: where a target op stands, the hook that finishes its rows, scratch.

The nodes that follow the target op in its unit become the header's epilogue: a loop over one
finished row of sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InternalError, UsageError
from graphtool.ir.graph import Node, Value
from graphtool.loops.ir import Hook, Load, Stmt, Template
from graphtool.loops.pull import Names, Pull, iterator
from graphtool.lower.buffer_assignment import Placement, Storage
from graphtool.lower.members import pulls, read_values
from graphtool.lower.nest import hook_body
from graphtool.lower.units import Unit
from graphtool.lower.views import View, pull_of
from graphtool.symbolic import Dim, Symbol, bounds, ceildiv, symbol_of
from graphtool.target import Target, tile_rows

Macros = list[tuple[str, str | Dim]]
Lowered = tuple[tuple[Stmt, ...], Dim]
_PANEL = 16  # vectors across a panel of tile.h


@dataclass(frozen=True)
class Site:
    """One use of a template: the unit, its target op, and where everything lies."""

    unit: Unit
    root: Node
    placement: Placement
    target: Target

    def view(self, operand: int) -> View:
        x = self.root.inputs[operand]
        assert isinstance(x, Value)
        return self.placement.views[x]

    @property
    def out(self) -> Value:
        return self.root.outputs[0]

    @property
    def row_sum(self) -> Node | None:
        """The member that sums the rows of what another one gives, if there is one."""
        return next((n for n in self.unit.nodes if n.op.name == "reduce_sum"), None)

    @property
    def plan(self) -> Mapping[str, int]:
        """The kernel's parameters as they were chosen, by name; defaults for a node without a plan.
        """
        plan = self.root.attrs["plan"]
        form = next(f for f in self.root.op.plans if plan is None or f.kind == plan.kind)
        return form.values(plan)


def epilogue(site: Site, indices: tuple[Symbol, ...], idx: tuple[Dim, ...],
             row: Dim | None = None) -> Hook:
    """The hook that finishes a row: `idx` is the element of lane 0 in terms of `indices`.
    Sums are float32, those of integers int32.

    With `row`, the leading axes are walked as one: `row` is their row-major position.
    """
    names = Names()
    sums = dtypes.int32 if site.out.type.dtype.is_integer else dtypes.float32
    count = symbol_of(Symbol("count", 1, None))
    lane = iterator(names.new("j"), count)
    full = (*idx[:-1], idx[-1] + symbol_of(lane))
    full = tuple(0 if d == 1 else i for i, d in zip(full, site.out.type.shape, strict=True))

    def finished(at: tuple[Dim, ...]) -> Load:
        if at != full:
            raise InternalError("GT7203", f"the epilogue of {site.out.hint} leaves its row")
        return Load("acc", symbol_of(lane), sums)
    apart = () if site.row_sum is None else site.row_sum.outputs
    stored = [v for v in site.unit.outputs if v not in apart]
    views = {v: site.placement.views[v] for v in (*read_values(site.unit), *stored)}
    env = {v: pull_of(views[v]) if row is None else _row_pull(views[v], full, row)
           for v in read_values(site.unit)}
    env[site.out] = Pull(sums, site.out.type.shape, finished)
    env = pulls(tuple(n for n in site.unit.nodes if n is not site.row_sum), env, names)
    stores = [(views[v], index_in_row(views[v], full, full, row), env[v].at(full))
              for v in stored]
    return Hook("epilogue", indices, hook_body(names, stores, lane, count), sums)


def index_in_row(v: View, idx: tuple[Dim, ...], full: tuple[Dim, ...], row: Dim | None) -> Dim:
    """Where an element lies; without divisions where the view's leading axes are one walk."""
    step = None if row is None else row_stride(v)
    if step is None or row is None or idx[:-1] != full[len(full) - len(idx):-1]:
        return v.index(idx)
    return v.offset + row * step + idx[-1] * v.strides[-1]


def row_stride(v: View) -> Dim | None:
    """The step from row to row if all axes but the last can be walked as one, else None."""
    lead = [(d, s) for d, s in zip(v.shape[:-1], v.strides[:-1], strict=True) if d != 1]
    for (_, outer), (d, inner) in pairwise(lead):
        if outer != d * inner:
            return None
    return lead[-1][1] if lead else 0


def _row_pull(v: View, full: tuple[Dim, ...], row: Dim) -> Pull:
    whole = len(v.shape) == len(full) and all(
        d != 1 or i == 0 for d, i in zip(v.shape[:-1], full[:-1], strict=True))
    return Pull(v.dtype, v.shape, lambda idx: Load(
        v.buffer, index_in_row(v, idx, full, row if whole else None), v.dtype))


def template(site: Site, header: str, macros: Macros, pointers: list[tuple[str, str, Dim]],
             hook: Hook, scratch: tuple[str, ...] = ()) -> tuple[Stmt, ...]:
    reads = [b for _, b, _ in pointers if b not in scratch]
    reads += [site.placement.views[v].buffer for v in read_values(site.unit)]
    writes = [site.placement.views[v].buffer for v in site.unit.outputs]
    macros = [*macros, ("GT_EPILOGUE", "{KERNEL}_epilogue")]
    return (Template(header, tuple(macros), tuple(pointers), tuple(dict.fromkeys(reads)),
                     tuple(dict.fromkeys([*writes, *scratch])), (hook,)),)


def half_macros(operand: DType, pairs: bool = False) -> Macros:
    """What says that operands have 16 bits, if they do."""
    if operand not in dtypes.HALVES:
        return []
    return [("GT_HALF", f"GT_{operand.name.upper()}"), *((("GT_PAIRS", "1"),) if pairs else ())]


def rows_of_tile(target: Target, nv: int, rows: Dim) -> int:
    return tile_rows(target, nv, bounds(rows)[1])


def panel_vectors(target: Target, nr: int) -> int:
    """Vectors across a panel of nr columns, at most what tile.h holds of one.

    Raises UsageError GT2004 for a panel that another target's vectors are to read.
    """
    if nr % target.lanes or nr // target.lanes > _PANEL:
        raise UsageError("GT2004", f"weights are packed in panels of {nr} columns, which vectors "
                                   f"of {target.lanes} floats do not read",
                         hint="select kernels for the target that the build is for: "
                              f"opt --passes …,select{{march={target.march}}},…")
    return nr // target.lanes


def batch_offset(v: View, which: tuple[Dim, ...], own: int) -> Dim:
    """Where product `which` of a batch starts; leading dims broadcast."""
    lead = len(v.shape) - own
    idx = tuple(0 if d == 1 else i for i, d in zip(
        which[len(which) - lead:], v.shape[:lead], strict=True))
    return v.index((*idx, *(0,) * own))


def round_up(n: Dim, to: int) -> Dim:
    return ceildiv(n, to) * to


def scratch_of(site: Site, share: Dim, shares: int | None = None) -> str:
    """A buffer with one share for each thread; it lives during this kernel only."""
    name, shares = f"s{len(site.placement.buffers)}", shares or site.target.threads
    site.placement.buffers[name] = Storage(name, dtypes.float32, share * shares,
                                           "arena", label=f"scratch of {site.out.hint}")
    return name
