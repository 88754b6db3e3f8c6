"""The table of template kernels: for each target op, how its unit becomes a header with macros.

The nodes that follow the target op in its unit become the header's epilogue: a loop over one
finished row of sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from graphtool import dtypes
from graphtool.choice import Candidate, choice
from graphtool.errors import InternalError, UnsupportedError
from graphtool.ir.graph import Node, Value
from graphtool.loops.ir import Hook, Load, Stmt, Template
from graphtool.loops.pull import Names, Pull, iterator
from graphtool.lower.members import pulls, read_values
from graphtool.lower.nest import hook_body
from graphtool.lower.place import Placement, Storage, transposed
from graphtool.lower.units import Unit
from graphtool.lower.views import View, pull_of
from graphtool.ops.shape import unflatten_index
from graphtool.symbolic import Dim, Symbol, bounds, ceildiv, product, symbol_of
from graphtool.target import Target, tile_rows

Macros = list[tuple[str, str | Dim]]
Lowered = tuple[tuple[Stmt, ...], Dim]


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
    def plan(self) -> Candidate:
        """The kernel's parameters as they were chosen; none for a node without a record."""
        recorded = self.root.attrs["choice"]
        return choice(recorded).candidate if recorded else Candidate("")


def lower_template(unit: Unit, root: Node, placement: Placement, target: Target) -> Lowered:
    """The body of the unit's kernel, and its nominal flops."""
    return TEMPLATES[root.op.name](Site(unit, root, placement, target))


# ---- what all templates share ------------------------------------------------------------------

def epilogue(site: Site, indices: tuple[Symbol, ...], idx: tuple[Dim, ...],
             row: Dim | None = None) -> Hook:
    """The hook that finishes a row: `idx` is the element of lane 0 in terms of `indices`.

    With `row`, the leading axes are walked as one: `row` is their row-major position.
    """
    names = Names()
    count = symbol_of(Symbol("count", 1, None))
    lane = iterator(names.new("j"), count)
    full = (*idx[:-1], idx[-1] + symbol_of(lane))
    full = tuple(0 if d == 1 else i for i, d in zip(full, site.out.type.shape, strict=True))

    def finished(at: tuple[Dim, ...]) -> Load:
        if at != full:
            raise InternalError("GT7203", f"the epilogue of {site.out.hint} leaves its row")
        return Load("acc", symbol_of(lane), dtypes.float32)
    views = {v: site.placement.views[v] for v in (*read_values(site.unit), *site.unit.outputs)}
    env = {v: pull_of(views[v]) if row is None else _row_pull(views[v], full, row)
           for v in read_values(site.unit)}
    env[site.out] = Pull(dtypes.float32, site.out.type.shape, finished)
    env = pulls(site.unit.nodes, env, names)
    stores = [(views[v], index_in_row(views[v], full, full, row), env[v].at(full))
              for v in site.unit.outputs]
    return Hook("epilogue", indices, hook_body(names, stores, lane, count))


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


def rows_of_tile(target: Target, nv: int, rows: Dim) -> int:
    return tile_rows(target, nv, bounds(rows)[1])


def panel_vectors(target: Target, nr: int) -> int:
    if nr % target.lanes:
        raise InternalError("GT7204", f"panels of {nr} on vectors of {target.lanes}")
    return nr // target.lanes


# ---- the table's entries -----------------------------------------------------------------------

def matmul(site: Site) -> Lowered:
    a, b = site.view(0), site.view(1)
    *lead, m, _ = site.out.type.shape
    nr = b.shape[-1]
    assert isinstance(nr, int)
    shared = len(b.shape) == 3
    if transposed(a):
        return _product(site, a, b, tuple(lead), m, a.strides[-2], (m,))
    step = row_stride(a) if shared else None
    if step is not None:  # all rows of A in one product
        return _product(site, a, b, (), product((*lead, m)), step, tuple((*lead, m)))
    if shared and len(lead) == 2 and a.dtype is dtypes.float32:
        return _pointwise(site, a, b)
    return _product(site, a, b, tuple(lead), m, a.strides[-2], (m,))


def _product(site: Site, a: View, b: View, lead: tuple[Dim, ...], m: Dim, step: Dim,
             rows: tuple[Dim, ...]) -> Lowered:
    """`lead` independent products of m rows, `step` apart, that stand for the axes `rows`."""
    n, k, nr = site.out.type.shape[-1], a.shape[-1], b.shape[-1]
    assert isinstance(nr, int)
    narrow = a.dtype is dtypes.bfloat16  # two rows of the panel in one
    batch = product(lead)
    at, row, first = Symbol("b", 0, None, batch), Symbol("m", 0, None, m), Symbol("n", 0, None)
    which = unflatten_index(symbol_of(at), lead) if batch != 1 else (0,) * len(lead)
    inner = unflatten_index(symbol_of(row), rows) if m != 1 else (0,) * len(rows)
    nv = panel_vectors(site.target, nr // 2 if narrow else nr)
    macros: Macros = [
        *((("GT_BF16", "1"),) if narrow else ()),
        ("GT_MR", str(rows_of_tile(site.target, nv, m))), ("GT_NV", str(nv)), ("GT_M", m),
        ("GT_N", n), ("GT_K", k), ("GT_LDA", step if m != 1 else k), ("GT_BATCH", batch)]
    if transposed(a):
        macros.append(("GT_LDK", a.strides[-1]))
    plan = site.plan
    if (kept := plan.get("resident", 640)) != 640:
        macros.append(("GT_RESIDENT", str(kept * 1024 or "INT64_MAX")))
    if split := plan.get("split", 0):
        macros.append(("GT_BY_ROWS", str(int(split == 1))))
    own = len(rows) + 1
    pointers = [("GT_A(b)", a.buffer, _batch_offset(a, which, own)),
                ("GT_B(b)", b.buffer, _batch_offset(b, which, 3))]
    hook = epilogue(site, (at, row, first), (*which, *inner, symbol_of(first)),
                    symbol_of(row) if len(rows) > 1 and not lead else None)
    return template(site, "gemm.h", macros, pointers, hook), batch * m * n * k * 2


def library(site: Site) -> Lowered:
    """All rows in one product by a CBLAS library; where they are not one walk, one by one."""
    a, b = site.view(0), site.view(1)
    *rows, n = site.out.type.shape
    m, step = product(tuple(rows)), row_stride(a)
    if step is None:
        raise UnsupportedError("GT2006", f"{site.out.hint}: a library takes rows one step apart",
                               hint="build with --kernels generated")
    at, row, first = Symbol("b", 0, None), Symbol("m", 0, None, m), Symbol("n", 0, None)
    inner = unflatten_index(symbol_of(row), tuple(rows)) if m != 1 else (0,) * len(rows)
    work = _scratch(site, m * _up(n, 16), 1)
    macros: Macros = [("GT_M", m), ("GT_N", n), ("GT_K", a.shape[-1]), ("GT_LDA", step)]
    pointers = [("GT_A", a.buffer, a.offset), ("GT_B", b.buffer, b.offset), ("GT_WORK", work, 0)]
    hook = epilogue(site, (at, row, first), (*inner, symbol_of(first)),
                    symbol_of(row) if len(rows) > 1 else None)
    return template(site, "blas.h", macros, pointers, hook, (work,)), m * n * a.shape[-1] * 2


def _pointwise(site: Site, x: View, w: View) -> Lowered:
    """Rows that lie in an image with a halo: a 1×1 convolution."""
    c, nr = w.shape[-2:]
    assert isinstance(nr, int)
    nv = panel_vectors(site.target, nr)
    out = site.out.type.shape
    ones: Macros = [(f"GT_{m}", 1) for m in ("GROUPS", "KH", "KW", "SH", "SW", "DH", "DW")]
    mr, rows = tall(site.target, nv, out, x.strides[2])
    macros: Macros = [
        ("GT_MR", mr), ("GT_TALL", rows), ("GT_NV", str(nv)), *_image(site),
        ("GT_C", c), ("GT_O", out[3]), *ones]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    hook = epilogue(site, _PIXEL, tuple(map(symbol_of, _PIXEL)))
    return template(site, "conv.h", macros, pointers, hook), product(out) * c * 2


def _batch_offset(v: View, which: tuple[Dim, ...], own: int) -> Dim:
    """Where product `which` of a batch starts; leading dims broadcast."""
    lead = len(v.shape) - own
    idx = tuple(0 if d == 1 else i for i, d in zip(
        which[len(which) - lead:], v.shape[:lead], strict=True))
    return v.index((*idx, *(0,) * own))


_PIXEL = (Symbol("n", 0, None), Symbol("oh", 0, None), Symbol("ow", 0, None), Symbol("o", 0, None))


def _image(site: Site) -> Macros:
    """What the convolutions have in common: sizes of the result, strides of the input."""
    x = site.view(0)
    n, oh, ow, _ = site.out.type.shape
    return [("GT_BATCH", n), ("GT_OH", oh), ("GT_OW", ow), ("GT_XN", x.strides[0]),
            ("GT_XH", x.strides[1]), ("GT_XW", x.strides[2])]


def conv(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    groups, _, kh, depth, nr = w.shape
    kw = a["window"][1]
    assert isinstance(depth, int) and isinstance(nr, int) and isinstance(groups, int)
    nv = panel_vectors(site.target, nr)
    out = site.out.type.shape
    mr, rows = tall(site.target, nv, out, x.strides[2] * a["strides"][1])
    macros: Macros = [
        ("GT_MR", mr), ("GT_TALL", rows), ("GT_NV", str(nv)), *_image(site),
        ("GT_GROUPS", groups), ("GT_C", depth // kw), ("GT_O", a["channels"] // groups),
        ("GT_KH", kh), ("GT_KW", kw), ("GT_SH", a["strides"][0]), ("GT_SW", a["strides"][1]),
        ("GT_DH", a["dilation"][0]), ("GT_DW", a["dilation"][1])]
    if (rows_first := site.plan.get("rows", -1)) >= 0:
        macros.append(("GT_ROWS_FIRST", str(rows_first)))
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    hook = epilogue(site, _PIXEL, tuple(map(symbol_of, _PIXEL)))
    return template(site, "conv.h", macros, pointers, hook), product(out) * kh * depth * 2


def tall(target: Target, nv: int, out: tuple[Dim, ...], step: Dim) -> tuple[str, str]:
    """The tile of a convolution, MR and TALL: some whole rows where a map is narrow.

    Not where its pixels are a multiple of 4 KB apart: so many would meet in one set of the cache.
    """
    _, height, width, _ = out
    most = rows_of_tile(target, nv, height * width)
    alike = isinstance(step, int) and step % 1024 == 0
    if alike or not isinstance(height, int) or not isinstance(width, int) or 2 * width > most:
        return str(rows_of_tile(target, nv, width)), "1"
    bands = -(-height // (most // width))
    rows = -(-height // bands)
    return str(rows * width), str(rows)


def depthwise(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    kh, kw, c = w.shape
    out, plan = site.out.type.shape, site.plan
    macros: Macros = [
        ("GT_BH", str(plan.get("high", 1))), ("GT_BW", "7"), ("GT_CB", str(plan.get("block", 1))),
        *_image(site), ("GT_C", c), ("GT_KH", kh), ("GT_KW", kw),
        ("GT_SH", a["strides"][0]), ("GT_SW", a["strides"][1]),
        ("GT_DH", a["dilation"][0]), ("GT_DW", a["dilation"][1])]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    hook = epilogue(site, _PIXEL, tuple(map(symbol_of, _PIXEL)))
    return template(site, "depthwise.h", macros, pointers, hook), product(out) * kh * kw * 2


def winograd(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    points, _, c, nr = w.shape
    assert isinstance(points, int) and isinstance(c, int) and isinstance(nr, int)
    m, channels = a["tile"], a["channels"]
    nv = panel_vectors(site.target, nr)
    group = site.plan.get("group", 28)
    rounded_c = -(-c // site.target.lanes) * site.target.lanes
    rounded_o = -(-channels // nr) * nr
    share = points * (group * (rounded_c + 16) + 16) + points * (group * (rounded_o + 16) + 16)
    shared = site.plan.get("shared", 0)
    work = _scratch(site, share, 1 if shared else None)
    macros: Macros = [
        ("GT_TILE", str(m)), ("GT_MR", str(tile_rows(site.target, nv, group))),
        ("GT_NV", str(nv)), ("GT_GROUP", str(group)), *_image(site), ("GT_C", c),
        ("GT_O", channels), *((("GT_SHARED", "1"),) if shared else ())]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset),
                ("GT_WORK(t)", work, symbol_of(Symbol("t", 0, None)) * share)]
    hook = epilogue(site, _PIXEL, tuple(map(symbol_of, _PIXEL)))
    flops = product(site.out.type.shape) * 9 * c * 2
    return template(site, "winograd.h", macros, pointers, hook, (work,)), flops


def attention(site: Site) -> Lowered:
    q, k, v, a = site.view(0), site.view(1), site.view(2), site.root.attrs
    *lead, s, dv = site.out.type.shape
    t, d = k.shape[-2:]
    heads, group = product(lead), q.shape[-3] // k.shape[-3]
    at, row, first = Symbol("b", 0, None, heads), Symbol("s", 0, None, s), Symbol("d", 0, None)
    which = unflatten_index(symbol_of(at), tuple(lead)) if heads != 1 else (0,) * len(lead)
    shared = (*which[:-1], which[-1] // group)
    nv = panel_vectors(site.target, site.target.nr)
    rows = rows_of_tile(site.target, nv, s)
    most = bounds(t)[1]
    if most is None:
        raise UnsupportedError("GT2002", f"{site.out.hint}: attention over a length without bound",
                               hint="bound it at import: --dynamic NAME=1..4096")
    macros: Macros = [
        ("GT_MR", str(rows)), ("GT_NV", str(nv)), ("GT_HEADS", heads), ("GT_S", s), ("GT_T", t),
        ("GT_D", d), ("GT_DV", dv), ("GT_LDQ", q.strides[-2]), ("GT_LDK", k.strides[-2]),
        ("GT_LDV", v.strides[-2]), ("GT_SCALE", _c_float(a["scale"])),
        ("GT_SOFTCAP", _c_float(a["softcap"])),
        ("GT_CAUSAL", str(int(a["causal"])))]
    wide_t, wide_v = _up(most, site.target.nr), _up(dv, site.target.nr)
    share = _up(d * wide_t + most * wide_v + rows * (wide_t + 16), 16)
    work = _scratch(site, share)
    pointers = [("GT_Q(b)", q.buffer, _batch_offset(q, which, 2)),
                ("GT_KEY(b)", k.buffer, _batch_offset(k, shared, 2)),
                ("GT_V(b)", v.buffer, _batch_offset(v, shared, 2)),
                ("GT_WORK(t)", work, symbol_of(Symbol("t", 0, None)) * share)]
    if len(site.root.inputs) > 3 and site.root.inputs[3] is not None:
        mask = site.view(3)
        at_row = (*which, symbol_of(row))[len(which) + 2 - len(mask.shape):]
        pointers.append(("GT_MASK(b, s)", mask.buffer, mask.index((*(
            0 if n == 1 else i for i, n in zip(at_row, mask.shape[:-1], strict=True)), 0))))
        macros += [("GT_MASKED", "1"), ("GT_MASK_STEP", "0" if mask.shape[-1] == 1 else "1")]
    else:
        macros += [("GT_MASKED", "0")]
    hook = epilogue(site, (at, row, first), (*which, symbol_of(row), symbol_of(first)))
    flops = heads * s * t * (d + dv) * 2
    return template(site, "attention.h", macros, pointers, hook, (work,)), flops


def _c_float(x: float) -> str:
    return f"({float(np.float32(x))!r}f)"


def _up(n: Dim, to: int) -> Dim:
    return ceildiv(n, to) * to


def _scratch(site: Site, share: Dim, shares: int | None = None) -> str:
    """A buffer with one share for each thread; it lives during this kernel only."""
    name, shares = f"s{len(site.placement.buffers)}", shares or site.target.threads
    site.placement.buffers[name] = Storage(name, dtypes.float32, share * shares,
                                           "arena", label=f"scratch of {site.out.hint}")
    return name


TEMPLATES: dict[str, Callable[[Site], Lowered]] = {
    "matmul_packed": matmul, "matmul_bf16": matmul, "matmul_blas": library, "conv_packed": conv,
    "depthwise": depthwise, "winograd": winograd, "attend": attention}
