"""The context of a kernel: its op within a unit, the hook that finishes its rows, and scratch
memory.

The nodes that follow the op in its unit become the header's epilogue: a loop over one finished row
of sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import InternalError
from graphtool.ir.graph import Node, Value
from graphtool.kernels.use import Macros, Pointers
from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import Hook, Load, Stmt, Template
from graphtool.loops.program import SCRATCH
from graphtool.loops.pull import Names, Pull, View, iterator, row_stride
from graphtool.lower.nest import hook_body
from graphtool.lower.units import Unit, operand_pull, pull_from, pulls, read_values
from graphtool.lower.views import Assignment, Storage
from graphtool.symbolic import Dim, Symbol, symbol_of
from graphtool.target import Target


@dataclass(frozen=True)
class UnitUse:
    """The use of a kernel (see kernels/use.py) by a node of a unit."""

    unit: Unit
    node: Node
    assignment: Assignment
    target: Target

    @property
    def plan(self) -> Mapping[str, int]:
        """The values of the node's plan; the defaults if it has none."""
        plan = self.node.attrs["plan"]
        form = next(f for f in self.node.op.plans if plan is None or f.kind == plan.kind)
        return form.values(plan)

    @property
    def out(self) -> Value:
        """The first output of the node."""
        return self.node.outputs[0]

    def view(self, operand: int) -> View:
        """The view of an operand, which must be a tensor."""
        x = self.node.inputs[operand]
        assert isinstance(x, Value)
        return self.assignment.views[x]

    def pull(self, operand: int, names: Names) -> Pull:
        """An operand that the unit may compute in place, as an expression of the unit's inputs."""
        x = self.node.inputs[operand]
        assert isinstance(x, Value)
        return operand_pull(self.unit, x, self.assignment, names)

    def given(self) -> list[View | None]:
        """The view of each operand; None for a literal or an omitted operand."""
        return [self.assignment.views[x] if isinstance(x, Value) else None
                for x in self.node.inputs]

    def result(self, output: int = 0) -> View | None:
        """The view of an output; None if it is not stored."""
        return self.assignment.views.get(self.node.outputs[output])

    def touched(self) -> list[View]:
        """The views of all values that the unit reads or writes."""
        return [self.assignment.views[v] for v in (*read_values(self.unit), *self.unit.outputs)]

    def shares_bytes(self, view: View) -> bool:
        """Whether the elements of the view's buffer share bytes."""
        return self.assignment.buffers[view.buffer].packed

    def constant(self, view: View) -> bool:
        """Whether the view is of a constant's data."""
        return self.assignment.buffers[view.buffer].space == "weight"

    @property
    def row_sum(self) -> Node | None:
        """The node of the unit that sums the rows of another node's result, if there is one."""
        return next((n for n in self.unit.nodes if n.op is o.reduce_sum), None)

    def summed_rows(self) -> tuple[View, View] | None:
        """The views of the unit's row sum: its operand and its result; None if there is no row
        sum."""
        if self.row_sum is None:
            return None
        y, = (v for v in self.row_sum.inputs if isinstance(v, Value))
        return self.assignment.views[y], self.assignment.views[self.row_sum.outputs[0]]

    def scratch(self, size: Dim, dtype: DType = dtypes.float32) -> str:
        """The name of a new arena buffer of `size` elements."""
        name = f"s{len(self.assignment.buffers)}"
        self.assignment.buffers[name] = Storage(name, dtype, size, "arena",
                                               label=f"{SCRATCH}{self.out.hint}")
        return name

    def template(self, kernel: str, macros: Macros, pointers: Pointers, hook: Hook | None = None,
                 also: Iterable[View] = (), written: Iterable[str] = ()) -> tuple[Stmt, ...]:
        """The template statement for `kernel`.

        The contract says which pointers are written; `written` adds more of them, and `also` adds
        buffers that are read. A hook reads and writes the buffers of the unit.
        """
        out = {p.name for p in CONTRACTS[kernel].pointers if p.writes} | {*written}
        reads = [b for name, (b, _) in pointers.items() if name not in out]
        reads += [v.buffer for v in also]
        writes = [b for name, (b, _) in pointers.items() if name in out]
        if hook is not None:
            reads += [self.assignment.views[v].buffer for v in read_values(self.unit)]
            writes = [self.assignment.views[v].buffer for v in self.unit.outputs] + writes
        return (Template(kernel, tuple(macros.items()),
                         tuple((name, b, at) for name, (b, at) in pointers.items()),
                         tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)),
                         () if hook is None else (hook,)),)

    def epilogue(self, indices: tuple[Symbol, ...], idx: tuple[Dim, ...],
                 row: Dim | None = None) -> Hook:
        """The hook that computes the rest of the unit from a row of sums: float32, or int32 for
        integers."""
        return _epilogue(self, indices, idx, row)


def _epilogue(use: UnitUse, indices: tuple[Symbol, ...], idx: tuple[Dim, ...],
              row: Dim | None) -> Hook:
    names = Names()
    sums = dtypes.int32 if use.out.type.dtype.is_integer else dtypes.float32
    count = symbol_of(Symbol("count", 1, None))
    lane = iterator(names.new("j"), count)
    full = (*idx[:-1], idx[-1] + symbol_of(lane))
    full = tuple(0 if d == 1 else i for i, d in zip(full, use.out.type.shape, strict=True))

    def finished(at: tuple[Dim, ...]) -> Load:
        if at != full:
            raise InternalError("GT7203", f"the epilogue of {use.out.hint} leaves its row")
        return Load("acc", symbol_of(lane), sums)
    apart = () if use.row_sum is None else use.row_sum.outputs
    stored = [v for v in use.unit.outputs if v not in apart]
    views = {v: use.assignment.views[v] for v in (*read_values(use.unit), *stored)}
    env = {v: pull_from(use.assignment.buffers, views[v]) if row is None else
           _row_pull(views[v], full, row) for v in read_values(use.unit)}
    env[use.out] = Pull(sums, use.out.type.shape, finished)
    env = pulls(tuple(n for n in use.unit.nodes if n is not use.row_sum), env, names)
    stores = [(views[v], index_in_row(views[v], full, full, row), env[v].at(full))
              for v in stored]
    return Hook("epilogue", indices, hook_body(names, stores, lane, count), sums)


def index_in_row(v: View, idx: tuple[Dim, ...], full: tuple[Dim, ...], row: Dim | None) -> Dim:
    """The index of an element; without divisions if the leading axes of the view can be walked as
    one."""
    step = None if row is None else row_stride(v)
    if step is None or row is None or idx[:-1] != full[len(full) - len(idx):-1]:
        return v.index(idx)
    return v.offset + row * step + idx[-1] * v.strides[-1]


def _row_pull(v: View, full: tuple[Dim, ...], row: Dim) -> Pull:
    whole = len(v.shape) == len(full) and all(
        d != 1 or i == 0 for d, i in zip(v.shape[:-1], full[:-1], strict=True))
    return Pull(v.dtype, v.shape, lambda idx: Load(
        v.buffer, index_in_row(v, idx, full, row if whole else None), v.dtype))
