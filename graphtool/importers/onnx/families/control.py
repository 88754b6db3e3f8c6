"""If: a constant condition selects its branch at import; otherwise `select` or `cond`.

Two small branches that cannot fail are both computed and joined by `select`; others become `cond`.
Results that differ in size are padded to the larger size inside and cut again outside.
"""

from __future__ import annotations

from typing import Any

from graphtool.front.regions import union
from graphtool.importers.onnx.driver.computed import bind, truth_of
from graphtool.importers.onnx.driver.context import TracedRegion, region
from graphtool.importers.onnx.driver.node_order import subgraphs
from graphtool.importers.onnx.families.sequence_rows import SequenceRows, chosen
from graphtool.importers.onnx.kit import Refused, Tracer, array_of, dim_tensor, dtypes, o, onnx_op
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Graph, Value
from graphtool.ir.run_sizes import all_nodes, at_most
from graphtool.symbolic import Condition, Dim, known, maximum, text

SELECTED = 4  # nodes of both branches, nested ones included, that are computed either way


def known_bool(x: Any) -> bool | None:
    """The truth of a constant, or None if the run computes it."""
    array = array_of(x)
    return None if array is None or array.dtype == object else bool(array.reshape(-1)[0])


@onnx_op("If", fold=False)
def if_(cond: Any, *, then_branch: Any, else_branch: Any, ctx: Any) -> Any:
    """The taken branch if the condition is constant, else `select` or `cond` of both branches."""
    choice = known_bool(cond)
    if choice is not None:
        return ctx.subgraph(then_branch if choice else else_branch, ())
    sizes = truth_of(cond)
    if isinstance(sizes, bool):
        return ctx.subgraph(then_branch if sizes else else_branch, ())
    cond = cond.reshape(()).cast(dtypes.bool_)
    name = ctx.node.output[0]
    sides = (then_branch, f"{name}.then"), (else_branch, f"{name}.else")
    large = _nested(then_branch) + _nested(else_branch) > SELECTED  # others may be traced twice
    try:
        yes, no = (region(ctx, g, (), label) for g, label in sides)
    except Refused:  # sequences, which no region can give
        if large:
            raise
    else:
        if sizes is not None and _differ(yes, no):
            return ctx.subgraph(then_branch if _assumed(sizes, ctx) else else_branch, ())
        alike = all(map(_alike, yes.results, no.results))
        if large or not alike or _may_fail(yes) or _may_fail(no):
            return _branch(cond, yes, no)
    both = (ctx.subgraph(g, (), label) for g, label in sides)
    return [selected(cond, a, b) for a, b in zip(*both, strict=True)]


def _differ(yes: TracedRegion, no: TracedRegion) -> bool:
    """Whether a result has another rank or element type in one branch than in the other."""
    return any(a.dtype is not b.dtype or a.ndim != b.ndim
               for a, b in zip(yes.results, no.results, strict=True)
               if isinstance(a, Tracer) and isinstance(b, Tracer))


def _assumed(sizes: Condition, ctx: Any) -> bool:
    """Which branch is taken, if that is by sizes of the inputs: the one for equal sizes, which is
    then required of every run. Raises Refused where no equation says it."""
    builder = ctx.builder
    if sizes.sign not in ("==", "!=") or builder.inside or not builder.knowledge.of_inputs(
            sizes.a, sizes.b):
        said = f"{text(sizes.a)} {sizes.sign} {text(sizes.b)}"
        outer = ", and give an input that decides an outer branch its number, as in --inputs " \
                "rate=16000" if builder.inside else ""
        raise Refused(f"the branches give results of different ranks, and {said} decides between "
                      "them: state the sizes so that it always holds or never, as in "
                      f"--dynamic T=2..{outer}")
    builder.require(sizes.a, sizes.b)
    return sizes.sign == "=="


def _nested(graph: Any) -> int:
    """How many nodes a graph has, with those of the graphs inside it."""
    return sum(1 + sum(map(_nested, subgraphs(n))) for n in graph.node)


def _may_fail(side: TracedRegion) -> bool:
    """Whether the branch compares sizes or indices, which may be wrong where it is not taken, or
    has a size that may then be negative."""
    return any(n.op.indexing is not None or Trait.SIZE in n.op.traits
               or n.op.lowering is Lowering.EVALUATED
               or any(known(d, "<", 0) is not False for v in n.outputs for d in v.type.shape)
               for n in all_nodes(Graph((), tuple(side.builder.nodes), ())))


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, SequenceRows) and isinstance(b, SequenceRows):
        return _alike(a.table, b.table)
    return isinstance(a, Tracer) and isinstance(b, Tracer) and a.type == b.type


def selected(cond: Any, a: Any, b: Any) -> Any:
    """a if the condition holds, else b, as `select`; sequences element by element."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(selected(cond, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, SequenceRows) and isinstance(b, SequenceRows) and _alike(a, b):
        return chosen(cond, a, b)
    if not (isinstance(a, Tracer) and isinstance(b, Tracer)):
        raise Refused("on a computed condition both branches must give tensors, or sequences of "
                      "the same length")
    if a.type != b.type:
        raise Refused("on a computed condition both branches must give the same type, not "
                      f"{a.type} and {b.type}")
    return a if a is b else o.select(cond, a, b)


# ---- branches ----------------------------------------------------------------------------------

def _branch(cond: Any, yes: TracedRegion, no: TracedRegion) -> Any:
    widths = [_common(a, b, yes, no) for a, b in zip(yes.results, no.results, strict=True)]
    for side in (yes, no):
        side.results = [y for x, w in zip(side.results, widths, strict=True)
                        for y in _padded(x, w, side)]
    outer = union(yes, no)
    flat = iter(o.cond(cond, *(Tracer(v, cond.builder) for v in outer), then=yes.graph(outer),
                       orelse=no.graph(outer)))
    return [_cut(next(flat), w, flat) for w in widths]


def tracers(values: list[Value], ctx: Any) -> list[Tracer]:
    """These values as Tracers of the current builder."""
    return [Tracer(v, ctx.builder) for v in values]


Widths = tuple[Dim, ...] | None


def _common(a: Tracer, b: Tracer, yes: TracedRegion, no: TracedRegion) -> Widths:
    """The sizes that hold either result; None if both have one type that is valid outside."""
    inner = yes.limits | no.limits
    if a.type == b.type and not any(yes.own(d) or no.own(d) for d in a.shape):
        return None
    if a.dtype is not b.dtype or a.ndim != b.ndim:
        raise Refused("on a computed condition both branches must give the same dtype and rank, "
                      f"not {a.type} and {b.type}: end one branch in a Reshape or Cast, or make "
                      "the condition a constant")
    out: list[Dim] = []
    for x, y in zip(a.shape, b.shape, strict=True):
        most = at_most(x, inner), at_most(y, inner)
        if most[0] is None or most[1] is None:
            raise Refused(f"on a computed condition both results need bounded sizes, but {a.type} "
                          f"or {b.type} has none")
        out.append(maximum(most[0], most[1]))
    return tuple(out)


def _padded(x: Tracer, widths: Widths, side: TracedRegion) -> list[Tracer]:
    """The result; if it is padded, then also its own sizes."""
    if widths is None:
        return [x]
    x = Tracer(x.value, side.builder)
    gap = tuple(w - d for w, d in zip(widths, x.shape, strict=True))
    wide = o.pad(x, lo=(0,) * x.ndim, hi=gap) if any(g != 0 for g in gap) else x
    return [wide, *(dim_tensor(d, side.builder) for d in x.shape)]


def _cut(x: Tracer, widths: Widths, more: Any) -> Tracer:
    if widths is None:
        return x
    sizes = tuple(bind(next(more), 0, w) for w in widths)
    return o.slice(  # type: ignore[no-any-return]
        x, start=(0,) * x.ndim, limit=sizes, strides=(1,) * x.ndim)
