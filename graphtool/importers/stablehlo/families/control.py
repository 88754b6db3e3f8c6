"""Control flow: `while`, `case` and `if` as ops with closed graphs; calls are inlined; tuples and
tokens, which are no tensors of a graph; and what a graph has no place for."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.front.regions import Closed, union
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.counted import as_scan, counted
from graphtool.importers.stablehlo.driver.parts import TOKEN, Group, flat, joined
from graphtool.importers.stablehlo.driver.registry import stablehlo
from graphtool.importers.stablehlo.text.tree import Region
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.ir.replay import inline
from graphtool.ir.trace import trace

# ---- calls, tuples, tokens ---------------------------------------------------------------------


@stablehlo("call", "func.call", elementwise=True)
def call(ctx: Context, *xs: Any, callee: str) -> list[Any]:
    """The function's body, in place of the call."""
    return ctx.driver.call(ctx.driver.function(callee), xs, ctx.vector)


@stablehlo("optimization_barrier")
def optimization_barrier(ctx: Context, *xs: Any) -> list[Any]:
    """The operands; that nothing moves across is a matter of the source's compiler."""
    return list(xs)


@stablehlo("tuple")
def tuple_(ctx: Context, *xs: Any) -> list[Any]:
    """The operands as one value."""
    return [Group(xs)]


@stablehlo("get_tuple_element")
def get_tuple_element(ctx: Context, x: Any, *, index: int) -> Any:
    """One member of a tuple."""
    return x.members[index]


@stablehlo("after_all", "create_token")
def after_all(ctx: Context, *tokens: Any) -> Any:
    """A token: what it orders is in order anyway."""
    return TOKEN


@stablehlo("uniform_quantize", "uniform_dequantize", elementwise=True)
def uniform(ctx: Context, x: Any) -> Any:
    """The same number: the driver reads and writes the integers of quantised types."""
    return x


# operations that a graph has no place for, and why
OUTSIDE = {
    "infeed": "a run reads its inputs only", "outfeed": "a run writes its outputs only",
    "send": "a run writes its outputs only", "recv": "a run reads its inputs only",
    "async_start": "a graph has no operations that run beside others",
    "async_done": "a graph has no operations that run beside others",
    "rng": "its numbers follow from no state, and no two runs would agree; use rng_bit_generator",
}


def _refused(name: str, why: str) -> None:
    @stablehlo(name)
    def refuse(ctx: Context, *xs: Any, **attrs: Any) -> Any:
        raise Refused(why)
    del refuse


for _name, _why in OUTSIDE.items():
    _refused(_name, _why)


# ---- loops -------------------------------------------------------------------------------------

@stablehlo("while")
def while_(ctx: Context, *xs: Any) -> list[Any]:
    """The loop as `while`, or as `scan` if it counts. A value that the body hands on unchanged is
    no carry, but a value of its own that condition and body read."""
    arguments = ctx.op.regions[1].arguments
    given = joined((a.kind for a in arguments), xs)
    held = [i for i in range(len(given)) if i not in _unchanged(ctx.op.regions[1])]
    carried = flat(given[i] for i in held)
    if not carried:
        return list(xs)  # such a loop does nothing, or never ends
    types = [x.type for x in carried]
    test, step = (_part(ctx, r, given, held, types) for r in ctx.op.regions)
    outer = union(test, step)
    cond, body = test.graph(outer), step.graph(outer)
    operands = [*carried, *map(ctx.builder.traced, outer)]
    known = [x.literal if x.dtype.is_integer and not x.shape else None for x in carried]
    loop = counted(cond, body, len(carried), known)
    if loop is not None and loop.length:
        last = carried[loop.index].number(loop.first + loop.length)
        found = as_scan(loop, body, len(carried), operands)
        made = [last if x is None else x for x in found]
    else:
        results = o.while_(*operands, cond=cond, body=body, carries=len(carried))
        made = list(results if isinstance(results, tuple) else (results,))
    after = dict(zip(held, joined((arguments[i].kind for i in held), made), strict=True))
    return flat(after.get(i, x) for i, x in enumerate(given))


def _unchanged(body: Region) -> set[int]:
    """The positions of arguments that the body returns as they are."""
    last = body.operations[-1]
    return {i for i, (a, r) in enumerate(zip(body.arguments, last.operands, strict=True))
            if a.name == r}


def _part(ctx: Context, region: Region, xs: Sequence[Any], held: list[int],
          types: list[TensorType]) -> Closed:
    """The condition or the body on the carries in `held`; other arguments are outside values."""
    own = tuple(region.arguments[i] for i in held)
    fixed = {a.name: xs[i] for i, a in enumerate(region.arguments) if i not in held}
    operations, last = region.operations, region.operations[-1]
    if region is ctx.op.regions[1]:  # the body: it returns the carries only
        returned = replace(last, operands=tuple(last.operands[i] for i in held))
        operations = (*operations[:-1], returned)
    return ctx.driver.closed(Region(own, operations), types, ChainMap(fixed, ctx.env))


# ---- branches ----------------------------------------------------------------------------------

@stablehlo("case")
def case(ctx: Context, index: Array) -> list[Any]:
    """The branch that the index chooses, the last one for an index out of range; as `cond`s."""
    count = len(ctx.op.regions)
    at = index.literal
    if at is not None:
        return ctx.region(int(at) if 0 <= at < count else count - 1, [])
    parts = [ctx.driver.closed(r, [], ctx.env) for r in ctx.op.regions]
    outer = union(*parts)
    return _chosen([p.graph(outer) for p in parts], 0, index, [*map(ctx.builder.traced, outer)])


def _chosen(branches: list[Graph], at: int, index: Any, operands: Sequence[Any]) -> list[Any]:
    """Branch `at` where the index is `at`; else one of those behind it, which read the index too
    if they are several."""
    if len(branches) == 1:
        return inline(index.builder, branches[0], operands)
    then, rest = branches[at], branches[-1]
    if at < len(branches) - 2:
        last = Value(index.type, "index")
        then = Graph((*then.inputs, last), then.nodes, then.outputs)
        rest = trace(lambda *xs: _chosen(branches, at + 1, xs[-1], xs[:-1]),
                     [v.type for v in then.inputs], [v.hint for v in then.inputs])
        operands = [*operands, index]
    found = o.cond(o.eq(index, at), *operands, then=then, orelse=rest)
    return list(found) if isinstance(found, tuple) else [found]


@stablehlo("if")
def if_(ctx: Context, pred: Array) -> list[Any]:
    """Region 0 where the predicate is true, else region 1."""
    known = pred.literal
    if known is not None:
        return ctx.region(0 if known else 1, [])
    parts = [ctx.driver.closed(r, [], ctx.env) for r in ctx.op.regions]
    outer = union(*parts)
    found = o.cond(pred, *map(ctx.builder.traced, outer), then=parts[0].graph(outer),
                   orelse=parts[1].graph(outer))
    return list(found) if isinstance(found, tuple) else [found]
