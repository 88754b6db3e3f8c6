"""select: contractions become target ops, with their weights packed for the kernels.

Packing is an op like any other: `fold` evaluates it where the weights are constant, and where they
are not it runs as a kernel of its own. What no kernel suits is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphtool import dtypes
from graphtool.choice import Choice, Conv, Product
from graphtool.choice.alternatives import Rules, choose
from graphtool.dtypes import DType
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.op import OPS
from graphtool.ir.trace import Builder, Tracer, rebuild
from graphtool.ops.reduce import identity
from graphtool.passes.decompose import decompose
from graphtool.passes.long_sums import long_sum
from graphtool.passes.polyphase import polyphase
from graphtool.passes.volume import volume
from graphtool.passes.weight_gradient import weight_gradient
from graphtool.passes.widen import diagonal, filters, follow, pixels, together
from graphtool.passes.winograd import transformed
from graphtool.symbolic import Dim, bounds, ceildiv, product
from graphtool.target import Target, named

NARROW = (dtypes.bfloat16, dtypes.float16)  # stored so, computed in float32
MOVES = frozenset({"reshape", "transpose", "slice", "reverse", "pad", "concat"})
UNKNOWN = 128  # what an open dim without bound is taken for


@dataclass(frozen=True)
class Goal:
    """What kernels are chosen for: the machine, and what may be chosen."""

    target: Target
    rules: Rules


def select(graph: Graph, *, target: Target | None = None, rules: Rules | None = None,
           march: str = "", winograd: int = 4) -> Graph:
    """Choose kernels for the target, or for `march`, by their cost or as they were tuned;
    `winograd` is the largest output tile allowed (0, 2 or 4).
    """
    aim = named(march or "native") if march or target is None else target
    allowed = rules or Rules()
    goal = Goal(aim, replace(allowed, winograd=min(winograd, allowed.winograd)))
    choices = {"matmul": _matmul, "conv": _conv}

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if node.op.name == "reduce_sum" and isinstance(inputs[0], Value):
            parts = long_sum(Tracer(inputs[0], b), node.attrs)
            return None if parts is None else (parts,)
        if node.op.name == "reduce_window":
            return _padded_window(node, inputs[0], b)
        if "elementwise" in node.op.traits:
            wide = follow(node, inputs, b)
            return None if wide is None else (wide,)
        if node.op.name == "recurrence":
            return _recurrence(goal.target, node, inputs, b)
        if node.op.name == "attention":
            wide = [_widened(x) if isinstance(x, Tracer) else x for x in operands_of(inputs, b)]
            out = _attention(node, wide)
            own = node.outputs[0].type.dtype
            return (out if out.dtype is own else OPS["cast"](out, dtype=own),)
        choose = choices.get(node.op.name)
        own = node.outputs[0].type.dtype
        if choose is None or own not in (dtypes.float32, *NARROW):
            return None
        x, w = inputs
        if not isinstance(x, Value) or not isinstance(w, Value):
            return None
        if any(d == 0 for d in node.outputs[0].type.shape):
            return None
        operands = [Tracer(x, b), Tracer(w, b)]
        if own is dtypes.float16 or node.op.name == "conv":
            operands = list(map(_widened, operands))
        out = choose(b, goal, node, *operands)
        return None if out is None else (out if out.dtype is own else OPS["cast"](out, dtype=own),)
    # first, so that what composites contain is seen; then, as a refused attention brings softmax
    return decompose(rebuild(decompose(graph), rewrite))


def _widened(x: Tracer) -> Tracer:
    """A product of narrow numbers is exact in float32, and is summed there."""
    return OPS["cast"](x, dtype=dtypes.float32) if x.dtype in NARROW else x


def operands_of(inputs: tuple[Operand, ...], b: Builder) -> list[Any]:
    """The operands as ops take them: tracers, literals, None."""
    return [Tracer(x, b) if isinstance(x, Value) else x for x in inputs]


def _padded_window(node: Node, x: Operand, b: Builder) -> Sequence[Any] | None:
    """The padding of a pool as a pad of its own: it is then written beside the producer's rows."""
    padding = node.attrs["padding"]
    if not padding or not any(p != 0 for pair in padding for p in pair) or not isinstance(x, Value):
        return None
    if node.attrs["base_dilation"] and any(d != 1 for d in node.attrs["base_dilation"]):
        return None
    fill = identity(node.attrs["kind"], x.type.dtype)
    wide = OPS["pad"](Tracer(x, b), lo=tuple(p[0] for p in padding),
                      hi=tuple(p[1] for p in padding), value=float(fill))
    return (node.op(wide, **{**node.attrs, "padding": None}),)


# ---- products ----------------------------------------------------------------------------------

def _matmul(b: Builder, goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    if x.dtype is not w.dtype or x.dtype not in (dtypes.float32, dtypes.bfloat16):
        return None
    across = bool(node.attrs["transpose_a"])
    if across:
        x = OPS["transpose"](x, perm=_swapped(x.ndim))
    n = w.shape[-2 if node.attrs["transpose_b"] else -1]
    constant = _is_constant(w)
    if not isinstance(n, int) or n < goal.target.lanes // 2:
        return None
    rows = product(x.shape[:-1]) if w.ndim == 2 else x.shape[-2]
    if not constant and (bounds(rows)[1] or 1 << 20) < 4:
        return None  # packing would cost as much as the product
    batch = 1 if w.ndim == 2 else product(node.outputs[0].type.shape[:-2])
    site = Product(_size(batch), _size(rows), n, _size(x.shape[-1]), constant, across,
                   all(isinstance(d, int) for d in (batch, rows)))
    return _product(goal, site, x, w, node.attrs["transpose_b"])


def _product(goal: Goal, site: Product, x: Any, w: Any, transpose: bool) -> Any:
    """x·w by the kernel that is best for the site."""
    # an image may get a margin, and then its rows are no walk that a library takes
    rules = goal.rules if x.ndim < 4 else replace(goal.rules, kernels="generated")
    choice = choose(site, goal.target, rules)
    if choice.candidate.kind == "blas":
        plain = OPS["transpose"](w, perm=(1, 0)) if transpose else w
        return OPS["matmul_blas"](x, plain, choice=str(choice))
    nr = choice.candidate.get("nv", goal.target.nv) * goal.target.lanes
    if x.dtype is dtypes.bfloat16:
        pairs = OPS["pack_pairs"](w, nr=nr, transpose=transpose)
        packed = OPS["reshape"](pairs, shape=(*pairs.shape[:-2], nr * 2))
        return OPS["matmul_bf16"](x, packed, n=site.n, choice=str(choice))
    if choice.candidate.kind == "bf16":
        packed = OPS["pack_bf16"](w, nr=nr, transpose=transpose)
        return OPS["matmul_bf16"](OPS["cast"](x, dtype=dtypes.bfloat16), packed, n=site.n,
                                  choice=str(choice))
    packed = OPS["pack"](w, nr=nr, transpose=transpose)
    return OPS["matmul_packed"](x, packed, n=site.n, choice=str(choice))


def _size(d: Dim) -> int:
    """The size that costs are computed for: the upper bound of an open dim."""
    return d if isinstance(d, int) else bounds(d)[1] or UNKNOWN


def fullest(goal: Target, n: Dim, most: int) -> int:
    """Columns of a panel of at most so many vectors, and half at least: the least padding."""
    widths = [goal.lanes * v for v in range(most, most // 2 - 1, -1)]
    return min(widths, key=lambda nr: ceildiv(n, nr) * nr) if isinstance(n, int) else widths[0]


def _is_constant(x: Tracer) -> bool:
    """Whether the value is known at build time: constants, or what is only moved from some."""
    made, pending = x.builder.made, [x.value]
    while pending:
        node = made.get(pending.pop())
        if node is None or node.op.name not in ("constant", *MOVES):
            return False
        pending += [v for v in node.inputs if isinstance(v, Value)]
    return True


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


# ---- attention ---------------------------------------------------------------------------------

def _attention(node: Node, operands: list[Any]) -> Any:
    """The kernel where it fits, else the ops that attention consists of."""
    q, k, v, mask = (*operands, None)[:4]
    a = node.attrs
    fits = q.dtype is dtypes.float32 and q.ndim >= 3 and all(
        isinstance(d, int) and d > 0 for x in (q, v) for d in (x.shape[-1], x.shape[-3]))
    if not fits:
        return node.op.decompose(*operands, **a)  # type: ignore[misc]
    given = () if mask is None or _hides_nothing(mask) else (_added(mask, q.dtype),)
    scale = a["scale"] if a["scale"] is not None else q.shape[-1] ** -0.5
    return OPS["attend"](q, k, v, *given, causal=a["causal"], scale=scale, softcap=a["softcap"])


def _hides_nothing(mask: Tracer) -> bool:
    node = mask.builder.made.get(mask.value)
    if node is None or node.op.name != "constant":
        return False
    data = node.attrs["data"].source
    return bool(data.all() if mask.dtype is dtypes.bool_ else not data.any())


def _added(mask: Any, dtype: DType) -> Any:
    """The mask as numbers to add, a row for each query."""
    if mask.dtype is dtypes.bool_:
        mask = OPS["select"](mask, OPS["cast"](mask, dtype=dtype) * 0.0, -math.inf)
    return mask if mask.ndim >= 2 else OPS["reshape"](mask, shape=(*(1,) * (2 - mask.ndim),
                                                                   *mask.shape))


# ---- recurrence --------------------------------------------------------------------------------

def _recurrence(goal: Target, node: Node, inputs: tuple[Operand, ...],
                b: Builder) -> Sequence[Any] | None:
    """Recurrent weights in panels: every step reads all of them, one behind the other."""
    p, r, *rest = operands_of(inputs, b)
    if node.attrs["packed"] or p.dtype is not dtypes.float32:
        return None
    _, hidden, wide = r.shape
    nr = fullest(goal, wide, 8 if p.shape[2] == 1 else 4)
    if node.attrs["kind"] == "gru":  # its last gate is a product of its own, and begins a panel
        nr = fullest(goal, hidden, 8 if p.shape[2] == 1 else 4)
        if hidden % nr:
            return None
    results: Sequence[Any] = node.op(p, OPS["pack"](r, nr=nr), *rest,
                                     **{**node.attrs, "packed": nr})
    return results


# ---- convolutions ------------------------------------------------------------------------------

def _conv(b: Builder, goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    a = node.attrs
    rank = x.ndim
    if not a["channels_last"] or rank not in (3, 4, 5) or a["batch_groups"] != 1 or a["dtype"]:
        return None
    out = node.outputs[0].type.shape
    fixed = all(isinstance(d, int) for d in w.shape)
    if rank == 5:
        if not fixed:
            return None
        return volume(x, w, a, out, lambda plain, part, taps, shape: _spread(
            goal, plain, part, taps, shape))
    if rank == 3:  # a row is an image one pixel high
        x = OPS["reshape"](x, shape=(x.shape[0], 1, *x.shape[1:]))
        w = OPS["reshape"](w, shape=(*w.shape[:2], 1, w.shape[2]))
        a = _one_row(a)
    shape = out if rank == 4 else (out[0], 1, *out[1:])
    y = weight_gradient(goal.target, a, x, w, shape)
    if y is None:
        if not fixed:
            return None  # in a gradient by the weights the batch stands in for channels
        y = _spread(goal, a, x, w, shape)
    return OPS["reshape"](y, shape=out) if rank == 3 else y


def _one_row(a: Any) -> Any:
    """The attributes of a 1-d convolution as those of a 2-d one."""
    return {**a, "strides": (1, *(a["strides"] or (1,))),
            "padding": ((0, 0), *(a["padding"] or ((0, 0),))),
            "lhs_dilation": (1, *(a["lhs_dilation"] or (1,))),
            "rhs_dilation": (1, *(a["rhs_dilation"] or (1,)))}


def _spread(goal: Goal, a: Any, x: Tracer, w: Tracer, out: tuple[Dim, ...]) -> Any:
    """Transposed convolutions by phases, or with zeros between the elements; others as they are."""
    if all(d == 1 or n == 1 for d, n in zip(a["lhs_dilation"] or (), x.shape[1:3], strict=False)):
        return _conv2d(goal, a, x, w)
    y = polyphase(x, w, a, out, lambda part, taps, plain: _conv2d(goal, plain, part, taps),
                  goal.target.lanes)
    if y is not None:
        return y
    gaps = tuple(d - 1 for d in a["lhs_dilation"])
    spread = OPS["pad"](x, lo=(0,) * 4, hi=(0,) * 4, interior=(0, *gaps, 0))
    return _conv2d(goal, {**a, "lhs_dilation": None}, spread, w)


def _conv2d(goal: Goal, a: Any, x: Tracer, w: Tracer) -> Any:
    strides, dilation = a["strides"] or (1, 1), a["rhs_dilation"] or (1, 1)
    padding = a["padding"] or ((0, 0), (0, 0))
    o, c, kh, kw = w.shape
    groups: int = a["groups"]
    if (kh, kw) == (1, 1) and strides == (1, 1) and groups == 1 and not any(
            p != 0 for pair in padding for p in pair):
        rows = product(x.shape[:-1])
        site = Product(1, _size(rows), _size(o), _size(c), _is_constant(w),
                       fixed=isinstance(rows, int))
        return _product(goal, site, x, OPS["reshape"](w, shape=(o, c)), True)
    if _of_one_pixel(x, w, a):
        return _one_pixel(goal, x, w, padding)
    x = _padded(x, padding)
    if x.shape[1:3] == (kh, kw) and groups == dilation[0] == dilation[1] == 1:
        return _whole_image(goal, x, w)
    if not groups == o == x.shape[3] and _is_constant(w):  # depthwise has a kernel
        joined = together(groups, w.shape[0], goal.target.lanes)
        w, groups = diagonal(w, groups, joined), groups // joined
    if groups == dilation[1] == 1 and isinstance(x.shape[2], int) and _is_constant(w):
        count = pixels((x.shape[2] - kw) // strides[1] + 1, o, kw, strides[1], goal.target.lanes)
        if count > 1:  # neighbours as the channels of one pixel
            y = _direct(goal, x, filters(w, count, strides[1]),
                        (strides[0], strides[1] * count), dilation, 1)
            return OPS["reshape"](y, shape=(*y.shape[:2], y.shape[2] * count, o))
    return _direct(goal, x, w, strides, dilation, groups)


def _direct(goal: Goal, x: Any, w: Any, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution of a padded image, by the kernel that is best for the site."""
    o, _, kh, kw = w.shape
    n, height, width, channels = x.shape
    h, wide = (_size((d - (k - 1) * r - 1) // s + 1) for d, k, s, r in zip(
        (height, width), (kh, kw), strides, dilation, strict=True))
    found = Conv(_size(n), h, wide, _size(channels), _size(o), _size(kh), _size(kw),
                 strides[0], strides[1], dilation[0], dilation[1], groups, _is_constant(w))
    return _chosen(goal, choose(found, goal.target, goal.rules), x, w, strides, dilation, groups)


def _chosen(goal: Goal, choice: Choice, x: Any, w: Any, strides: Any, dilation: Any,
            groups: int) -> Any:
    """The convolution by the kernel that was chosen, its weights laid out for it."""
    o, _, kh, kw = w.shape
    candidate = choice.candidate
    if candidate.kind == "depthwise":
        flat = OPS["transpose"](OPS["reshape"](w, shape=(o, kh, kw)), perm=(1, 2, 0))
        return OPS["depthwise"](x, flat, strides=strides, dilation=dilation, choice=str(choice))
    if candidate.kind == "winograd":
        tile = candidate.get("tile", 2)
        nr = goal.target.lanes if o <= goal.target.lanes else goal.target.nr
        packed = (OPS["pack_winograd"](w, tile=tile, nr=nr) if _is_constant(w)
                  else OPS["pack"](transformed(w, tile), nr=nr))
        return OPS["winograd"](x, packed, channels=o, tile=tile, choice=str(choice))
    nr = goal.target.lanes * candidate.get("nv", goal.target.nv)
    packed = OPS["pack_conv"](w, nr=nr, groups=groups)
    return OPS["conv_packed"](x, packed, channels=o, window=(kh, kw), strides=strides,
                              dilation=dilation, choice=str(choice))


def _whole_image(goal: Goal, x: Tracer, w: Tracer) -> Any:
    """A window as large as the image: one product for each image."""
    n, o, depth = x.shape[0], w.shape[0], product(w.shape[1:])
    rows = OPS["reshape"](OPS["transpose"](w, perm=(2, 3, 1, 0)), shape=(depth, o))
    site = Product(1, _size(n), _size(o), _size(depth), _is_constant(w), fixed=isinstance(n, int))
    y = _product(goal, site, OPS["reshape"](x, shape=(n, depth)), rows, False)
    return OPS["reshape"](y, shape=(n, 1, 1, o))


def _of_one_pixel(x: Tracer, w: Tracer, a: Any) -> bool:
    """Whether an image of one pixel meets one tap at each output: most of its padding is zeros."""
    padding = a["padding"] or ((0, 0), (0, 0))
    return (x.shape[1:3] == (1, 1) and a["groups"] == 1 and w.shape[2:] != (1, 1)
            and all(d == 1 for d in (*(a["strides"] or ()), *(a["rhs_dilation"] or ())))
            and all(0 <= p < k for k, pair in zip(w.shape[2:], padding, strict=True)
                    for p in pair))


def _one_pixel(goal: Goal, x: Tracer, w: Tracer, padding: Any) -> Any:
    """y[i, j] = x · w[lo - i, lo - j]: one product for all outputs."""
    o, c, *window = w.shape
    out = [2 + lo + hi - k for k, (lo, hi) in zip(window, padding, strict=True)]
    first = [lo - n + 1 for n, (lo, _) in zip(out, padding, strict=True)]
    taps = OPS["slice"](w, start=(0, 0, *first), strides=(1,) * 4,
                        limit=(o, c, *(f + n for f, n in zip(first, out, strict=True))))
    flat = OPS["transpose"](OPS["reverse"](taps, axes=(2, 3)), perm=(1, 2, 3, 0))
    columns = out[0] * out[1] * o
    site = Product(1, _size(x.shape[0]), _size(columns), _size(c), _is_constant(w),
                   fixed=isinstance(x.shape[0], int))
    y = _product(goal, site, OPS["reshape"](x, shape=(x.shape[0], c)),
                 OPS["reshape"](flat, shape=(c, columns)), False)
    return OPS["reshape"](y, shape=(x.shape[0], *out, o))


def _padded(x: Tracer, padding: Any) -> Any:
    if not any(p != 0 for pair in padding for p in pair):
        return x
    lo = (0, *(p[0] for p in padding), 0)
    return OPS["pad"](x, lo=lo, hi=(0, *(p[1] for p in padding), 0))

