"""Loop as `scan` and `while` with regions. The pass `unroll` writes out small ones.

A loop is unrolled here only if its body cannot be typed as a region: values that change shape,
sequences, positions that must be constants. That requires a constant trip count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.front.regions import union
from graphtool.importers.onnx.driver.computed import Recorder, bind
from graphtool.importers.onnx.driver.context import TracedRegion, region
from graphtool.importers.onnx.driver.inputs import declared_shapes
from graphtool.importers.onnx.families import carried_sequences as sequences
from graphtool.importers.onnx.families.control import known_bool, selected, tracers
from graphtool.importers.onnx.families.sequence_rows import SequenceRows
from graphtool.importers.onnx.kit import Dim, Refused, Tracer, array_of, dtypes, o, onnx_op, trace
from graphtool.ir.graph import TensorType, Value

UNROLL = 4096  # iterations at most
_TABLE = 1 << 24  # rows from which a trip count stands for "without end", as exporters write

# ---- loop --------------------------------------------------------------------------------------


@onnx_op("Loop", fold=False, sequences=True)
def loop(trips: Any = None, cond: Any = None, *carried: Any, body: Any, ctx: Any) -> Any:
    """`scan` if the trip count is known before the first iteration, else `while`; unrolled at
    import if values change their types.

    A loop that collects rows and may end early is a `scan` over the largest trip count. Sequences
    of computed length are carried as tables.
    """
    going = True if cond is None else known_bool(cond)
    count = 0 if going is False else _known_count(trips)
    plain = None if going else cond
    if count != 0 and any(isinstance(x, (tuple, SequenceRows)) for x in carried):
        grows = any(isinstance(x, SequenceRows) for x in carried)
        out = None if count is None or grows else _tried(
            ctx, lambda: _unrolled(count, plain, carried, body, ctx))
        return _over_sequences(trips, count, going, cond, carried, body, ctx) if out is None \
            else out
    if count in (0, 1) or not all(isinstance(x, Tracer) for x in carried):
        return _unrolled(count, plain, carried, body, ctx)
    step, flag = _scalar(ctx, 0), _flag(cond, ctx)
    types = [step.type, flag.type, *(x.type for x in carried)]
    inner = attempt(ctx, body, types, count is not None)
    if inner is None or not keeps_types(inner, carried):
        if count is None:
            shown = [str(x.type) for x in (inner.results[1:] if inner else ())]
            raise Refused("a loop whose trip count is computed must not change the types of its "
                          "values" + (f", but they change to {', '.join(shown)}" if shown else ""))
        return _unrolled(count, plain, carried, body, ctx)
    return _as_region(trips, count, going, flag, carried, inner, ctx)


def _as_region(trips: Any, count: int | None, going: bool | None, flag: Any, carried: Any,
              inner: TracedRegion, ctx: Any) -> list[Any]:
    again, flag_in = inner.results[0], inner.inputs[1]
    if going and trips is not None and (known_bool(again) or again.value is flag_in.value):
        return _counted(trips, count, carried, inner, ctx)
    return _repeated(trips, count, flag, carried, inner, ctx)


def _flag(cond: Any, ctx: Any) -> Any:
    return _scalar(ctx, True) if cond is None else cond.reshape(())


def _known_count(trips: Any) -> int | None:
    array = None if trips is None else array_of(trips)
    if array is None or array.dtype == object:
        return None
    return max(int(array.reshape(-1)[0]), 0)


def attempt(ctx: Any, body: Any, types: list[TensorType], optional: bool) -> TracedRegion | None:
    """The body as a region. If that is refused: None if the loop may be unrolled, else Refused."""
    def build() -> TracedRegion:
        return _as_declared(region(ctx, body, types, label(ctx)), body)
    built: TracedRegion | None = _tried(ctx, build) if optional else build()
    return built


def _tried(ctx: Any, build: Callable[[], Any]) -> Any:
    """What `build` returns, or None if it is refused. Then refusals recorded on the way are
    dropped."""
    before = {k: list(v) for k, v in ctx.importer.refusals.items()}
    try:
        return build()
    except Refused:
        ctx.importer.refusals.clear()
        ctx.importer.refusals.update(before)
        return None


def _as_declared(inner: TracedRegion, body: Any) -> TracedRegion:
    """The region with results cut to the shapes that the body declares for them. This matters for
    results whose sizes each iteration computes."""
    shapes = declared_shapes(body)
    for i, (info, x) in enumerate(zip(body.output, inner.results, strict=True)):
        shape = shapes.get(info.name)
        if shape is not None and len(shape) == x.ndim and any(map(inner.own, x.shape)):
            x = Tracer(x.value, inner.builder)
            inner.results[i] = o.slice(x, start=(0,) * x.ndim, limit=shape, strides=(1,) * x.ndim)
    return inner


def keeps_types(inner: TracedRegion, carried: Any, first: int = 1) -> bool:
    """Whether an iteration keeps the types of its carried values, and all collected rows have sizes
    that are valid outside."""
    after = inner.results[first:first + len(carried)]
    rows = inner.results[first + len(carried):]
    return all(x.type == y.type for x, y in zip(carried, after, strict=True)) and not any(
        inner.own(d) for y in rows for d in y.shape)


def _counted(trips: Any, count: int | None, carried: Any, inner: TracedRegion, ctx: Any
             ) -> list[Any]:
    """A `scan` over the iterations, with only their number as its length."""
    length: Dim = count if count is not None else bind(o.max(trips.reshape(()), 0), 0)
    step, flag, *state = inner.inputs
    inner.results = [_next(inner), *inner.results[1:]]
    inner.inputs = [step, *state]
    if any(flag.value in n.inputs for n in inner.builder.nodes) or any(
            y.value is flag.value for y in inner.results):
        inner.inputs = [step, *state, flag]  # always true; a region's fixed operand
    outer = union(inner)
    fixed = [_scalar(ctx, True)] if len(inner.inputs) > 1 + len(state) else []
    out = o.scan(_scalar(ctx, 0), *carried, *fixed, *tracers(outer, ctx), body=inner.graph(outer),
                 carries=1 + len(carried), xs=0, length=length)
    return list(out)[1:]


def _next(inner: TracedRegion) -> Tracer:
    return Tracer(inner.inputs[0].value, inner.builder) + 1


def _repeated(trips: Any, count: int | None, flag: Any, carried: Any, inner: TracedRegion,
              ctx: Any) -> list[Any]:
    """A `while` that carries the step, the condition and the values."""
    state, results = len(carried), inner.results
    if results[1 + state:]:
        return _collected(trips, count, flag, carried, inner, ctx)
    inner.results = [_next(inner), results[0].reshape(()), *results[1:]]
    outer = union(inner)
    bound = count if count is not None and count <= UNROLL else None  # it has gradients then
    limit = [] if trips is None or bound is not None else [trips.reshape(())]
    operands = [_scalar(ctx, 0), flag, *carried, *tracers(outer, ctx), *limit]
    body = inner.graph(outer)
    body = type(body)((*body.inputs, *(Value(x.type, "trips") for x in limit)), body.nodes,
                      body.outputs)

    def goes_on(*xs: Any) -> Any:
        return xs[1] & (xs[0] < xs[-1]) if limit else xs[1]
    check = trace(goes_on, [x.type for x in operands])
    return list(o.while_(*operands, cond=check, body=body, carries=2 + state, bound=bound))[2:]


def _collected(trips: Any, count: int | None, flag: Any, carried: Any, inner: TracedRegion,
               ctx: Any) -> list[Any]:
    """A `scan` over the largest trip count, in which iterations do nothing once the condition is
    false.

    Each iteration writes its rows in place, while a `while` would have to carry the whole table.
    """
    state, results = len(carried), inner.results
    most = _room(trips, count, ctx)
    rows = [x.type for x in results[1 + state:]]
    inner.results = [results[0].reshape(()), *results[1:]]
    outer = union(inner)
    operands = [_scalar(ctx, 0), flag, *carried, *tracers(outer, ctx)]
    types = [x.type for x in operands]

    def idle(_: Any, alive: Any, *xs: Any) -> Any:
        zeros = [alive.builder.constant(np.zeros((), t.dtype.numpy)) for t in rows]
        return (alive, *xs[:state], *(o.broadcast(z, shape=t.shape)
                                      for z, t in zip(zeros, rows, strict=True)))

    def iteration(step: Any, alive: Any, *xs: Any) -> Any:
        out = o.cond(alive, step, alive, *xs, then=inner.graph(outer), orelse=trace(idle, types))
        return (step + alive.cast(dtypes.int64), *out)
    ran, alive, *out = o.scan(*operands, body=trace(iteration, types), carries=2 + state, xs=0,
                              length=most)
    if trips is None or (count is not None and count > _TABLE):  # it must have come to its end
        ran = ran + alive.cast(dtypes.int64)
    n = bind(ran, 0, most)
    return [*out[:state], *(y.take(0, 0, n) for y in out[state:])]


def _room(trips: Any, count: int | None, ctx: Any) -> Dim:
    """How many rows a loop that may end early can collect, at most."""
    if count is not None and count <= _TABLE:
        return count
    if trips is not None and count is None:
        return bind(o.max(trips.reshape(()), 0), 0)
    assert isinstance(ctx.builder, Recorder)
    size, most = ctx.builder.fresh(0, None)
    if most is None:
        raise Refused("rows that a loop without a trip count collects need a bound; give it with "
                      f"--dynamic {size}=0..MOST")
    return most


# ---- sequences of computed length --------------------------------------------------------------

def _over_sequences(trips: Any, count: int | None, going: bool | None, cond: Any, carried: Any,
                    body: Any, ctx: Any) -> list[Any]:
    """The loop with its sequences as tables that have room for everything that all iterations
    insert."""
    trip_count = count if count is not None else _room(trips, None, ctx)
    most = sequences.insertions(body)
    slots = [sequences.slot(ctx, body, i, x, trip_count * most, label(ctx), carried)
             for i, x in enumerate(carried)]
    flat = sequences.flattened(slots)
    step, flag = _scalar(ctx, 0), _flag(cond, ctx)

    def pack(inputs: list[Any]) -> list[Any]:
        return [*inputs[:2], *sequences.rebuilt(slots, inputs[2:], True)]

    def unpack(results: list[Any]) -> list[Any]:
        new = results[1:1 + len(slots)]
        if any(x.inserted > most for x in new if isinstance(x, SequenceRows)):
            raise Refused("a loop that inserts into a sequence more often than can be counted at "
                          "import is not supported")
        return [results[0], *sequences.flattened(new), *results[1 + len(slots):]]
    inner = region(ctx, body, [step.type, flag.type, *(x.type for x in flat)], label(ctx),
                   pack, unpack)
    if not keeps_types(inner, flat):
        raise Refused("a loop whose trip count is computed must not change the types of its "
                      "values or sequences")
    out = _as_region(trips, count, going, flag, flat, inner, ctx)
    rebuilt = sequences.rebuilt(slots, out[:len(flat)], False)
    if trips is None:  # the condition may have let it go on for longer
        for x in rebuilt:
            sequences.check_room(x)
    return [*rebuilt, *out[len(flat):]]


# ---- unrolled ----------------------------------------------------------------------------------

def _unrolled(most: int | None, cond: Any, carried: Any, body: Any, ctx: Any) -> list[Any]:
    alive = None if cond is None or most == 0 else cond.reshape(())
    if most is None:
        raise Refused("a loop over optionals whose trip count is computed is not supported")
    values, step = list(carried), 0
    seen: list[list[Any]] = []
    while most is None or step < most:
        if step >= UNROLL:
            raise Refused(f"a loop that must be unrolled into more than {UNROLL} iterations is "
                          "not supported")
        flag = _scalar(ctx, True) if alive is None else alive
        out = ctx.subgraph(body, (_scalar(ctx, step), flag, *values), f"{label(ctx)}.{step}")
        again, new, scans = out[0], out[1:1 + len(values)], out[1 + len(values):]
        if alive is not None and scans:
            raise Refused("a loop over sequences that collects rows must not stop early")
        values = new if alive is None else [selected(alive, a, b)
                                            for a, b in zip(new, values, strict=True)]
        seen.append(list(scans))
        step += 1
        if known_bool(again) is False:
            break
        if known_bool(again) is None:
            if most is None or scans:
                raise Refused("a loop over sequences that collects rows must have a trip count "
                              "known at import")
            alive = again.reshape(()) if alive is None else alive & again.reshape(())
    return [*values, *_stacked(seen, body, 1 + len(carried), ctx)]


def label(ctx: Any) -> str:
    """The node's first named output, which prefixes the names inside its body."""
    return next((n for n in ctx.node.output if n), ctx.node.op_type)  # type: ignore[no-any-return]


def _scalar(ctx: Any, value: Any) -> Any:
    kind = np.bool_ if isinstance(value, bool) else np.int64
    return ctx.builder.constant(np.asarray(value, kind))


def _stacked(seen: list[list[Any]], body: Any, first: int, ctx: Any) -> list[Any]:
    """The scan outputs, each with the iterations as its first axis."""
    if seen:
        return [joined(list(column)) for column in zip(*seen, strict=True)]
    return [_empty(v, ctx) for v in list(body.output)[first:]]


def joined(rows: list[Any]) -> Any:
    """Tensors of one type stacked along a new first axis, as `concat`."""
    wide = [r.unsqueeze(0) for r in rows]
    return o.concat(*wide, axis=0) if len(wide) > 1 else wide[0]


def _empty(info: Any, ctx: Any) -> Any:
    """A scan output of no iterations, with the type that the body declares."""
    t = ctx.importer.inputs.type(info)
    if not all(isinstance(d, int) for d in t.shape):
        raise Refused("a loop without iterations needs outputs of fixed size, which its body "
                      "must declare")
    return np.zeros((0, *t.shape), t.dtype.numpy)
