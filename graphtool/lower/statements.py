"""Ops that no single expression per element says (sort, scatter, trees, …): a kernel each.

They fuse with nothing; what they read and write may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from graphtool import dtypes
from graphtool.errors import UnsupportedError
from graphtool.ir.graph import Node, Value
from graphtool.loops.ir import (
    Accumulate,
    Const,
    Expr,
    For,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.pull import Names, apply, iterator
from graphtool.lower.alone import Lowered, operand, scratch, work_of
from graphtool.lower.buffer_assignment import Placement
from graphtool.lower.recurrences import recurrence, recurrence_grad
from graphtool.lower.views import View
from graphtool.ops.collective import FLAT
from graphtool.ops.indexing import unflatten_index
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, Symbol, maximum, minimum, product, symbol_of
from graphtool.target import Target, tile_rows

WIDENED = 2048  # columns that a panel of packed weights is widened for: it stays in L2


def lower_statements(node: Node, placement: Placement, target: Target) -> Lowered:
    """The body of the node's kernel."""
    return STATEMENTS[node.op.name](node, placement, target)


# ---- sort, top_k -------------------------------------------------------------------------------

_NAN_FIRST = "(a) > (b) || ((a) != (a) && (b) == (b))"
_NAN_LAST = "(a) < (b) || ((b) != (b) && (a) == (a))"


def _sort(node: Node, placement: Placement, target: Target) -> Lowered:
    x = operand(node, 0, placement)
    if not x.shape:
        x = View(x.buffer, x.dtype, (1,), (1,), x.offset)
    axis = node.attrs["axis"] % len(x.shape)
    outs = [_row_of_one(placement.views[v]) if v in placement.views else None
            for v in node.outputs]
    first = not node.attrs.get("largest", True) if node.op.name == "top_k" else (
        not node.attrs["descending"])
    n, k = x.shape[axis], node.attrs.get("k", x.shape[axis])
    rows = x.shape[:axis] + x.shape[axis + 1:]
    row = Symbol("row", 0, None)
    work = scratch(placement, dtypes.int64, 2 * n * target.threads, node.outputs[0].hint)
    if placement.buffers[x.buffer].packed:
        raise UnsupportedError("GT2003", f"{node.outputs[0].hint}: a sort of a constant whose "
                                         f"elements share bytes, of {x.dtype.name}",
                               hint="cast it to 8 bits first")
    key, load = x.dtype, "(e)"
    if x.dtype.is_float and x.dtype.bits <= 16:
        key, load = dtypes.float32, f"gt_{x.dtype.short}_to_f32(e)"
    elif x.dtype.bits < 8:  # what stands in the upper bits is not said
        load = f"gt_wrap_{x.dtype.short}(e)"
    order = (_NAN_LAST if first else _NAN_FIRST) if key.is_float else (
        "(a) < (b)" if first else "(a) > (b)")
    macros: list[tuple[str, str | Dim]] = [
        ("GT_ROWS", product(rows)), ("GT_N", n), ("GT_K", k), ("GT_KEY", key.c),
        ("GT_LOAD(e)", load), ("GT_BEFORE(a, b)", f"({order})"), ("GT_XS", x.strides[axis])]
    pointers = [("GT_X(row)", x.buffer, _row_start(x, axis, symbol_of(row)))]
    for letter, view in zip("VI", outs, strict=True):
        if view is not None:
            macros.append((f"GT_{letter}S", view.strides[axis]))
            pointers.append((f"GT_{letter}(row)", view.buffer,
                             _row_start(view, axis, symbol_of(row))))
    pointers.append(("GT_WORK(t)", work, symbol_of(Symbol("t", 0, None)) * (2 * n)))
    writes = tuple(dict.fromkeys([*(v.buffer for v in outs if v), work]))
    body = Template("sort.h", tuple(macros), tuple(pointers), (x.buffer,), writes)
    return (body,), product(x.shape) * 8, work_of(product(x.shape) * 16)


def _row_of_one(v: View) -> View:
    return v if v.shape else View(v.buffer, v.dtype, (1,), (1,), v.offset)


def _row_start(v: View, axis: int, row: Dim) -> Dim:
    """Where row `row` (all axes but one, row-major) of a view starts."""
    shape = v.shape[:axis] + v.shape[axis + 1:]
    at = unflatten_index(row, shape) if product(shape) != 1 else (0,) * len(shape)
    return v.index((*at[:axis], 0, *at[axis:]))


# ---- cumulative --------------------------------------------------------------------------------

_STEP = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _cumulative(node: Node, placement: Placement, target: Target) -> Lowered:
    """Each element from the one before it: time grows with the length, not with its square."""
    x, out, a = operand(node, 0, placement), placement.views[node.outputs[0]], node.attrs
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
    return body, size, 0 if shared is None else work_of(size)


# ---- scatter -----------------------------------------------------------------------------------

def _scatter(node: Node, placement: Placement, target: Target) -> Lowered:
    """x copied, then the updates in order. The threads share out an axis that no index runs over,
    so that each writes a part of its own; without one, a single thread does it all."""
    x, indices, updates = (operand(node, n, placement) for n in range(3))
    out = placement.views[node.outputs[0]]
    axes, batch = node.attrs["axes"], node.attrs["batch"]
    names = Names()
    free = [a for a in range(len(out.shape)) if a not in axes]
    shared = max((a for a in free if out.shape[a] != 1), key=lambda a: work_of(out.shape[a]),
                 default=None)
    def axes_of_out() -> tuple[list[tuple[Symbol, Dim, bool]], tuple[Dim, ...]]:
        loops = [(iterator(names.new("i"), d), d, a == shared) for a, d in enumerate(out.shape)]
        return loops, tuple(0 if d == 1 else symbol_of(s) for s, d, _ in loops)

    every, idx = axes_of_out()
    copy = _loops(every, (Store(out.buffer, out.index(idx), Load(
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
    return (*copy, *body), product(updates.shape), 0 if shared is None else work_of(size)


def _updated(kind: str, old: Expr, new: Expr) -> Expr:
    return new if kind == "set" else apply(kind, old, new)


def _loops(loops: list[tuple[Symbol, Dim, bool]], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body inside loops, outermost first; the marked one is shared out among threads."""
    for it, extent, parallel in reversed(loops):
        if extent != 1:
            body = (For(it, extent, "parallel" if parallel else "serial", body),)
    return body


# ---- exchanges between processes ---------------------------------------------------------------

_MPI = {dtypes.float32: "MPI_FLOAT", dtypes.float64: "MPI_DOUBLE", dtypes.int32: "MPI_INT32_T",
        dtypes.int64: "MPI_INT64_T"}


def _collective(node: Node, placement: Placement, target: Target) -> Lowered:
    """Where placement put the result over its operand, the reduction happens in place."""
    begin = node.op.name == "collective_begin"
    x = operand(node, 0 if begin else 1, placement)
    y = placement.views[node.outputs[0]]
    ticket = placement.views[node.outputs[1]] if begin else operand(node, 2, placement)
    kind = FLAT.index(node.attrs["kind"]) if begin else len(FLAT)
    macros: list[tuple[str, str | Dim]] = [
        ("GT_KIND", str(kind)), ("GT_PROCESSES", str(node.attrs["size"] if begin else 1)),
        ("GT_NOW", str(int(begin and node.attrs["now"]))),
        ("GT_COUNT", y.shape[0] if kind == FLAT.index("scatter") else x.shape[0]),
        ("GT_TYPE", x.dtype.c), ("GT_MPI_TYPE", _MPI[x.dtype])]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_Y", y.buffer, y.offset),
                ("GT_TICKET", ticket.buffer, ticket.offset)]
    reads = [x.buffer] if begin else [x.buffer, operand(node, 0, placement).buffer, ticket.buffer]
    writes = [y.buffer, ticket.buffer] if begin else [y.buffer]
    body = Template("collective.h", tuple(macros), tuple(pointers), tuple(dict.fromkeys(reads)),
                    tuple(dict.fromkeys(writes)))
    return (body,), 0, 1 << 30


def _rank(node: Node, placement: Placement, target: Target) -> Lowered:
    y = placement.views[node.outputs[0]]
    macros: list[tuple[str, str | Dim]] = [
        ("GT_KIND", str(len(FLAT) + 1)), ("GT_PROCESSES", "1"), ("GT_NOW", "0"), ("GT_COUNT", 1),
        ("GT_TYPE", y.dtype.c), ("GT_MPI_TYPE", _MPI[y.dtype])]
    return (Template("collective.h", tuple(macros), (("GT_Y", y.buffer, y.offset),), (),
                     (y.buffer,)),), 0, 1 << 30


# ---- trees -------------------------------------------------------------------------------------

_SIGNS = {"le": "<=", "lt": "<", "ge": ">=", "gt": ">", "eq": "==", "ne": "!="}


def _trees(node: Node, placement: Placement, target: Target) -> Lowered:
    """Rows are shared out; the tables must lie as they are written down."""
    x, *tables = (operand(node, i, placement) for i in range(6))
    out, row, a = placement.views[node.outputs[0]], symbol_of(Symbol("row", 0, None)), node.attrs
    if x.dtype.bits < 32 or not all(t.contiguous for t in tables):
        raise UnsupportedError("GT2003", f"{node.outputs[0].hint}: trees of {x.dtype.name} or over "
                                         "tables that are views")
    if a["compare"] == "mixed":
        goes = " || ".join(f"((((kind) >> 1) & 7) == {i} && (v) {sign} (s))"
                           for i, sign in enumerate(_SIGNS.values()))
    else:
        goes = f"((v) {_SIGNS[a['compare']]} (s))"
    if a["missing"]:
        goes += " || (((kind) & 1) && (v) != (v))"
    fold = {"sum": "((a) + (b))", "min": "((a) < (b) ? (a) : (b))",
            "max": "((a) > (b) ? (a) : (b))"}
    count, targets = tables[3].shape[0], tables[4].shape[1]
    macros: list[tuple[str, str | Dim]] = [
        ("GT_ROWS", x.shape[0]), ("GT_TREES", count), ("GT_TARGETS", targets), ("GT_T", x.dtype.c),
        ("GT_XS", x.strides[1]), ("GT_YS", out.strides[1]), ("GT_GO(kind, v, s)", f"({goes})"),
        ("GT_FOLD(a, b)", fold[a["fold"]])]
    names = ("KINDS", "SPLITS", "CHILDREN", "ROOTS", "WEIGHTS")
    pointers = [("GT_X(row)", x.buffer, x.index((row, 0))),
                ("GT_Y(row)", out.buffer, out.index((row, 0))),
                *((f"GT_{name}", t.buffer, t.index((0,) * len(t.shape)))
                  for name, t in zip(names, tables, strict=True))]
    reads = tuple(dict.fromkeys(v.buffer for v in (x, *tables)))
    body = Template("trees.h", tuple(macros), tuple(pointers), reads, (out.buffer,))
    return (body,), x.shape[0] * count * a["depth"], work_of(x.shape[0] * count * a["depth"] * 8)


# ---- products with weights of few bits ---------------------------------------------------------

def _nbits(node: Node, placement: Placement, target: Target) -> Lowered:
    """Rows of the weights are shared out; the tables must lie as they are written down."""
    x, *tables = (placement.views[v] for v in node.inputs if isinstance(v, Value))
    out, row, a = placement.views[node.outputs[0]], symbol_of(Symbol("row", 0, None)), node.attrs
    if x.dtype is not dtypes.float32 or not all(t.contiguous for t in tables):
        raise UnsupportedError("GT2003", f"{node.outputs[0].hint}: a {x.dtype.name} product of "
                                         "packed weights, or of weights that are views")
    n, blocks = tables[0].shape[:2]
    deep = minimum(blocks, max(1, WIDENED // a["block"])) * a["block"]
    share = maximum(8 * blocks * a["block"], deep * target.nr)
    work = scratch(placement, dtypes.float32, share * target.threads, node.outputs[0].hint)
    macros: list[tuple[str, str | Dim]] = [
        ("GT_M", x.shape[0]), ("GT_N", n), ("GT_K", x.shape[1]), ("GT_BITS", str(a["bits"])),
        ("GT_BLOCK", str(a["block"])), ("GT_PARTS", blocks), ("GT_XS", x.strides[1]),
        ("GT_YS", out.strides[1]), ("GT_MR", str(tile_rows(target, target.nv, None))),
        ("GT_NV", str(target.nv)), ("GT_DEEP", deep)]
    pointers = [("GT_X(row)", x.buffer, x.index((row, 0))),
                ("GT_Y(row)", out.buffer, out.index((row, 0))),
                *((f"GT_{name}", t.buffer, t.index((0,) * len(t.shape)))
                  for name, t in zip(("W", "SCALES", "ZEROS"), tables, strict=False)),
                ("GT_WORK(t)", work, symbol_of(Symbol("t", 0, None)) * share)]
    reads = tuple(dict.fromkeys(v.buffer for v in (x, *tables)))
    body = Template("nbits.h", tuple(macros), tuple(pointers), reads, (out.buffer, work))
    flops = 2 * x.shape[0] * x.shape[1] * n
    return (body,), flops, work_of(flops)


STATEMENTS: dict[str, Callable[[Node, Placement, Target], Lowered]] = {
    "sort": _sort, "top_k": _sort, "cumulative": _cumulative, "scatter": _scatter,
    "recurrence": recurrence, "recurrence_grad": recurrence_grad,
    "collective_begin": _collective, "collective_end": _collective, "process_rank": _rank,
    "trees": _trees, "linear_nbits": _nbits}
