"""Control flow: `while`, `case` and `if` as ops with closed graphs, loops that count as scans,
calls inlined; tuples and tokens."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphtool.front.regions import Closed, union
from graphtool.importers.stablehlo.driver.parts import TOKEN, ValueTuple, flat, joined
from graphtool.importers.stablehlo.kit import Array, Context, Refused, Region, o, stablehlo
from graphtool.ir.graph import Graph, Node, TensorType, Value, is_constant
from graphtool.ir.replay import inline, prune, replay
from graphtool.ir.trace import Builder, Tracer, trace

# ---- loops that count ---------------------------------------------------------------------------

@dataclass
class Counted:
    """A loop that counts: the position of its counter, the first value and the trip count, and
    which slices and updates of the body go by the counter."""

    index: int
    first: int
    length: int
    reverse: bool = False
    rows: dict[Node, int] = field(default_factory=dict)  # slice → the input of the body it reads
    stacks: dict[int, Node] = field(default_factory=dict)  # carry → the update that makes it


def counted(cond: Graph, body: Graph, carries: int, starts: Sequence[Any]) -> Counted | None:
    """How the loop counts; None if it does not. `starts` has the known first values, else None."""
    if len(cond.nodes) != 1 or cond.nodes[0].op is not o.lt:
        return None
    i, n = cond.nodes[0].inputs
    if i not in cond.inputs[:carries] or not isinstance(n, int):
        return None
    k = cond.inputs.index(i)
    node_of = {v: node for node in body.nodes for v in node.outputs}
    step = node_of.get(body.outputs[k])
    if step is None or step.op is not o.add or step.inputs != (body.inputs[k], 1):
        return None
    first = starts[k]
    if not isinstance(first, int):
        return None
    loop = Counted(k, first, max(n - first, 0))
    if first == 0:
        _rows_and_stacks(loop, body, carries, node_of)
    return loop


def _rows_and_stacks(loop: Counted, body: Graph, carries: int, made_by: dict[Value, Node]) -> None:
    """Find what goes by the counter, or by the counter from behind, whichever occurs."""
    forward = body.inputs[loop.index]
    left = {v for v, node in made_by.items()
            if node.op is o.sub and node.inputs == (loop.length, forward)}
    backward = {v for v, node in made_by.items() if node.op is o.sub and (
        node.inputs == (loop.length - 1, forward)
        or (node.inputs[0] in left and node.inputs[1] == 1))}
    uses: dict[Value, int] = {}
    for v in (x for node in body.nodes for x in node.inputs if isinstance(x, Value)):
        uses[v] = uses.get(v, 0) + 1
    for reverse, places in ((False, {forward}), (True, backward)):
        rows = {node: body.inputs.index(node.inputs[0])
                for node in body.nodes if node.op is o.dynamic_slice
                and node.inputs[0] in body.inputs[carries:]
                and _by_row(node.inputs[0], node.inputs[1:], places, loop.length)
                and tuple(node.attrs["sizes"]) == (1, *_shape(node.inputs[0])[1:])}
        stacks = {}
        for j in range(carries):
            node = made_by.get(body.outputs[j])
            if node is not None and node.op is o.dynamic_update_slice and (
                    node.inputs[0] is body.inputs[j] and uses[body.inputs[j]] == 1
                    and body.outputs[j] not in uses
                    and _by_row(node.inputs[0], node.inputs[2:], places, loop.length)
                    and _shape(node.inputs[1]) == (1, *_shape(node.inputs[0])[1:])):
                stacks[j] = node
        if rows or stacks:
            loop.reverse, loop.rows, loop.stacks = reverse, rows, stacks
            return


def _shape(x: Any) -> tuple[Any, ...]:
    return tuple(x.type.shape)


def _by_row(x: Any, starts: Sequence[Any], places: set[Value], length: int) -> bool:
    """Whether the starts are one of the places, then 0, and x has a row for each iteration."""
    return starts[0] in places and all(s == 0 and not isinstance(s, Value) for s in starts[1:]) \
        and _shape(x)[0] == length


def as_scan(loop: Counted, body: Graph, carries: int, operands: Sequence[Tracer]) -> list[Any]:
    """The loop as `scan`: the last values of all carries but the counter, whose place has None."""
    kept = [j for j in range(carries) if j != loop.index and j not in loop.stacks]
    sources = list(dict.fromkeys(loop.rows.values()))
    builder = Builder()

    def given(j: int, row: bool = False) -> Tracer:
        v = body.inputs[j]
        kind = TensorType(v.type.dtype, v.type.shape[1:]) if row else v.type
        return builder.input(kind, v.hint)
    index = given(loop.index)
    ins = {j: given(j) for j in kept}
    rows = {j: given(j, True) for j in sources}
    fixed = {j: given(j) for j in range(carries, len(body.inputs))}
    blank = {j: given(j) for j in loop.stacks}  # read by nothing

    def apply(node: Node, *xs: Any) -> Sequence[Any]:
        if node in loop.rows:
            row = rows[loop.rows[node]]
            return (row.unsqueeze(0),)
        if is_constant(node):
            return (builder.constant(node.attrs["data"], node.outputs[0].hint,
                                     node.attrs["param"], node.of),)
        if node.op is o.reshape:
            return (xs[0].reshape(node.attrs["shape"]),)
        with builder.scope("", node.where, node.of):
            result = builder.emit(node.op, xs, dict(node.attrs), node.outputs[0].hint)
        return result if isinstance(result, tuple) else (result,)
    every = {loop.index: index, **ins, **fixed, **blank}
    wanted = [*(body.outputs[j] for j in kept),
              *(node.inputs[1] for node in loop.stacks.values()), body.outputs[loop.index]]
    inner = Graph(body.inputs, tuple(n for n in body.nodes if n not in loop.stacks.values()),
                  tuple(v for v in wanted if isinstance(v, Value)))
    *after_step, after = replay(inner, [every[j] for j in range(len(body.inputs))], apply)
    lasts = after_step[:len(kept)]
    stacked = [x.reshape(x.shape[1:]) for x in after_step[len(kept):]]
    outputs = [x.value for x in (*lasts, *stacked)]
    pruned = prune(Graph((), tuple(builder.nodes), tuple(outputs)))
    read = {x for node in pruned.nodes for x in node.inputs} | set(outputs)
    counter = index.value in read
    carried = [*([index] if counter else []), *ins.values()]
    outputs = [*([after.value] if counter else []), *outputs]
    used = [j for j, x in fixed.items() if x.value in read]
    graph = prune(Graph((*(x.value for x in carried), *(x.value for x in rows.values()),
                         *(fixed[j].value for j in used)), tuple(builder.nodes), tuple(outputs)))
    order = [*([loop.index] if counter else []), *kept, *sources, *used]
    result = o.scan(*(operands[j] for j in order), body=graph, carries=len(carried),
                    xs=len(sources), length=loop.length, reverse=loop.reverse)
    results = list(result if isinstance(result, tuple) else (result,))[int(counter):]
    out: list[Any] = [None] * carries
    for j, x in zip((*kept, *loop.stacks), results, strict=True):
        out[j] = x
    return out


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
    return [ValueTuple(xs)]


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
        scanned = as_scan(loop, body, len(carried), operands)
        finals = [last if x is None else x for x in scanned]
    else:
        results = o.while_(*operands, cond=cond, body=body, carries=len(carried))
        finals = list(results if isinstance(results, tuple) else (results,))
    after = dict(zip(held, joined((arguments[i].kind for i in held), finals), strict=True))
    return flat(after.get(i, x) for i, x in enumerate(given))


def _unchanged(body: Region) -> set[int]:
    """The positions of arguments that the body returns as they are."""
    last = body.operations[-1]
    return {i for i, (a, r) in enumerate(zip(body.arguments, last.operands, strict=True))
            if a.name == r}


def _part(ctx: Context, region: Region, xs: Sequence[Any], held: list[int],
          types: list[TensorType]) -> Closed:
    """The condition or the body on the carries in `held`; other arguments are outside values."""
    arguments = tuple(region.arguments[i] for i in held)
    fixed = {a.name: xs[i] for i, a in enumerate(region.arguments) if i not in held}
    operations, last = region.operations, region.operations[-1]
    if region is ctx.op.regions[1]:  # the body: it returns the carries only
        returned = replace(last, operands=tuple(last.operands[i] for i in held))
        operations = (*operations[:-1], returned)
    return ctx.driver.closed(Region(arguments, operations), types, ChainMap(fixed, ctx.env))


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
    chosen = o.cond(o.eq(index, at), *operands, then=then, orelse=rest)
    return list(chosen) if isinstance(chosen, tuple) else [chosen]


@stablehlo("if")
def if_(ctx: Context, pred: Array) -> list[Any]:
    """Region 0 where the predicate is true, else region 1."""
    known = pred.literal
    if known is not None:
        return ctx.region(0 if known else 1, [])
    parts = [ctx.driver.closed(r, [], ctx.env) for r in ctx.op.regions]
    outer = union(*parts)
    chosen = o.cond(pred, *map(ctx.builder.traced, outer), then=parts[0].graph(outer),
                    orelse=parts[1].graph(outer))
    return list(chosen) if isinstance(chosen, tuple) else [chosen]
