"""Ops that need loops of their own, because no single expression gives an element and no template
serves.

They are not fused with other ops; their operands and results may have any strides.
"""

from __future__ import annotations

from collections.abc import Callable

from graphtool import ops as o
from graphtool.ir.graph import Node, Value
from graphtool.ir.op import Op
from graphtool.kernels.tiles import work_of
from graphtool.kernels.use import Lowered
from graphtool.loops.ir import Accumulate, Const, Expr, For, Let, Load, Name, Stmt, Store
from graphtool.loops.pull import Names, View, apply, iterator
from graphtool.lower.views import Assignment
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, Symbol, product, symbol_of


def lower_statements(node: Node, assignment: Assignment) -> Lowered:
    """The body of the node's kernel."""
    return STATEMENTS[node.op](node, assignment)


def _operand(node: Node, n: int, assignment: Assignment) -> View:
    x = node.inputs[n]
    assert isinstance(x, Value)
    return assignment.views[x]


# ---- cumulative --------------------------------------------------------------------------------

_STEP = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _cumulative(node: Node, assignment: Assignment) -> Lowered:
    """The loops of a cumulative op: each element from the one before, in linear time."""
    x, out, a = _operand(node, 0, assignment), assignment.views[node.outputs[0]], node.attrs
    axis = a["axis"] % len(x.shape)
    n, start = x.shape[axis], identity(a["kind"], x.dtype)
    names = Names()
    at = [iterator(names.new("i"), d) for d in x.shape]
    idx = [0 if d == 1 else symbol_of(s) for s, d in zip(at, x.shape, strict=True)]
    running = Name("running", x.dtype)
    here = n - 1 - idx[axis] if a["reverse"] else idx[axis]
    full = (*idx[:axis], here, *idx[axis + 1:])
    step: tuple[Stmt, ...] = (Accumulate("running", _STEP[a["kind"]], Load(
        x.buffer, x.index(full), x.dtype)),)
    store = Store(out.buffer, out.index(full), running)
    body = _loops([(at[axis], n, False)], (store, *step) if a["exclusive"] else (*step, store))
    body = (Let("running", Const(start, x.dtype), mutable=True), *body)
    others = [i for i in range(len(at)) if i != axis and x.shape[i] != 1]
    shared = max(others, key=lambda i: work_of(x.shape[i]), default=None)
    body = _loops([(at[i], x.shape[i], i == shared) for i in others], body)
    size = product(x.shape)
    return Lowered(body, size, 0 if shared is None else work_of(size))


# ---- scatter -----------------------------------------------------------------------------------

def _scatter(node: Node, assignment: Assignment) -> Lowered:
    """x copied, unless the result takes its place, then the updates in order. The threads share an
    axis that no index addresses, so that each writes its own part; without such an axis a single
    thread does everything."""
    x, indices, updates = (_operand(node, n, assignment) for n in range(3))
    out = assignment.views[node.outputs[0]]
    axes, batch = node.attrs["axes"], node.attrs["batch"]
    names = Names()
    free = [a for a in range(len(out.shape)) if a not in axes]
    shared = max((a for a in free if out.shape[a] != 1), key=lambda a: work_of(out.shape[a]),
                 default=None)
    def axes_of_out() -> tuple[list[tuple[Symbol, Dim, bool]], tuple[Dim, ...]]:
        loops = [(iterator(names.new("i"), d), d, a == shared) for a, d in enumerate(out.shape)]
        return loops, tuple(0 if d == 1 else symbol_of(s) for s, d, _ in loops)

    every, idx = axes_of_out()
    copy = () if x == out else _loops(every, (Store(out.buffer, out.index(idx), Load(
        x.buffer, x.index(idx), x.dtype)),))
    every, idx = axes_of_out()
    lead = [iterator(names.new("u"), d) for d in indices.shape[batch:-1]]
    where: list[Dim] = list(idx)
    lets = []
    outer = (*idx[:batch], *(0 if s.extent == 1 else symbol_of(s) for s in lead))
    for n, axis in enumerate(axes):
        read = Load(indices.buffer, indices.index((*outer, n)), indices.dtype)
        where[axis] = names.index(read, out.shape[axis])
        (name,) = list(names.indices)[-1:]
        lets.append(Let(name, names.indices[name]))  # type: ignore[arg-type]
    rest = [a for a in free if a >= batch]
    source = Load(updates.buffer, updates.index((*outer, *(idx[a] for a in rest))), x.dtype)
    target_at = out.index(tuple(where))
    body: tuple[Stmt, ...] = (Store(out.buffer, target_at, _updated(
        node.attrs["kind"], Load(out.buffer, target_at, x.dtype), source)),)
    body = (*lets, *_loops([every[a] for a in rest], body))
    body = _loops([*every[:batch], *((s, d, False) for s, d in zip(
        lead, indices.shape[batch:-1], strict=True))], body)
    size = product(out.shape) + product(updates.shape)
    size = size if copy else product(updates.shape)
    return Lowered((*copy, *body), product(updates.shape),
                   0 if shared is None else work_of(size))


def _updated(kind: str, old: Expr, new: Expr) -> Expr:
    return new if kind == "set" else apply(kind, old, new)


def _loops(loops: list[tuple[Symbol, Dim, bool]], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body inside loops, outermost first; the threads share the marked one."""
    for it, extent, parallel in reversed(loops):
        if extent != 1:
            body = (For(it, extent, "parallel" if parallel else "serial", body),)
    return body


STATEMENTS: dict[Op, Callable[[Node, Assignment], Lowered]] = {
    o.cumulative: _cumulative, o.scatter: _scatter}
