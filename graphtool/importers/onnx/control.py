"""If, Loop and Scan. Known branches are taken and small known trip counts unrolled; what is left
becomes `cond` and `while` with regions. Where both branches are small, both are computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.importers.onnx.regions import region, union
from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import Known, array_of, axis_of, reshape, take, type_of
from graphtool.ir.graph import Value
from graphtool.ir.op import ops as o
from graphtool.ir.trace import Tracer, trace

UNROLL = 4096  # steps at most
SELECTED = 4  # nodes of both branches that are computed either way


def known_bool(x: Any) -> bool | None:
    array = array_of(x)
    return None if array is None or array.dtype == object else bool(array.reshape(-1)[0])


@onnx_op("If", fold=False)
def if_(cond: Any, *, then_branch: Any, else_branch: Any, ctx: Any) -> Any:
    choice = known_bool(cond)
    if choice is not None:
        return ctx.subgraph(then_branch if choice else else_branch, ())
    if len(then_branch.node) + len(else_branch.node) > SELECTED:
        return _branch(reshape(cond, ()), then_branch, else_branch, ctx)
    yes = ctx.subgraph(then_branch, (), f"{ctx.node.output[0]}.then")
    no = ctx.subgraph(else_branch, (), f"{ctx.node.output[0]}.else")
    return [_selected(reshape(cond, ()), a, b) for a, b in zip(yes, no, strict=True)]


def _branch(cond: Any, then_branch: Any, else_branch: Any, ctx: Any) -> Any:
    name = ctx.node.output[0]
    yes = region(ctx, then_branch, (), f"{name}.then")
    no = region(ctx, else_branch, (), f"{name}.else")
    for a, b in zip(yes.results, no.results, strict=True):
        if a.type != b.type:
            raise Refused(f"branches of types {a.type} and {b.type} on a computed condition")
    outer = union(yes, no)
    return list(o.cond(cond, *_tracers(outer, ctx), then=yes.graph(outer), orelse=no.graph(outer)))


def _tracers(values: Any, ctx: Any) -> list[Tracer]:
    return [Tracer(v, ctx.builder) for v in values]


def _selected(cond: Any, a: Any, b: Any) -> Any:
    if not (isinstance(a, Tracer) and isinstance(b, Tracer)):
        raise Refused("branches that give sequences or optionals, on a computed condition")
    if type_of(a) != type_of(b):
        raise Refused(f"branches of types {type_of(a)} and {type_of(b)} on a computed condition")
    return a if a is b else o.select(cond, a, b)


# ---- loop --------------------------------------------------------------------------------------

@onnx_op("Loop", fold=False, sequences=True)
def loop(trips: Any = None, cond: Any = None, *carried: Any, body: Any, ctx: Any) -> Any:
    going: Any = True if cond is None else known_bool(cond)
    count = None if trips is None else array_of(trips)
    if going is not False and (going is None or (trips is not None and count is None)):
        return _repeat(trips, cond, carried, body, ctx)
    most = _trips(trips)
    alive = None if going is not None else reshape(cond, ())
    if alive is not None and most is None:
        raise Refused("a loop whose number of steps is not known")
    if going is False:
        most = 0
    values = list(carried)
    seen: list[list[Any]] = []
    step = 0
    while most is None or step < most:
        if step >= UNROLL:
            raise Refused(f"a loop of more than {UNROLL} steps")
        flag = _scalar(ctx, True) if alive is None else alive
        out = ctx.subgraph(body, (_scalar(ctx, step), flag, *values), _label(ctx, step))
        again, new, scans = out[0], out[1:1 + len(values)], out[1 + len(values):]
        if alive is not None and scans:
            raise Refused("a loop with scan outputs that may stop early")
        values = new if alive is None else [_selected(alive, a, b)
                                            for a, b in zip(new, values, strict=True)]
        seen.append(list(scans))
        step += 1
        if known_bool(again) is False:
            break
        if known_bool(again) is None:
            if most is None or scans:
                raise Refused("a loop whose number of steps is computed")
            alive = reshape(again, ()) if alive is None else o.and_(alive, reshape(again, ()))
    return [*values, *_stacked(seen, body, 1 + len(carried), ctx)]


def _repeat(trips: Any, cond: Any, carried: Any, body: Any, ctx: Any) -> list[Any]:
    """A loop whose number of steps only the run tells; it carries the step and the condition."""
    if len(body.output) > 1 + len(carried):
        raise Refused("a loop with scan outputs whose number of steps is computed")
    if not all(isinstance(x, Tracer) for x in carried):
        raise Refused("a loop over sequences whose number of steps is computed")
    step, flag = _scalar(ctx, 0), reshape(_scalar(ctx, True) if cond is None else cond, ())
    types = [step.type, flag.type, *(x.type for x in carried)]
    inner = region(ctx, body, types, _label(ctx, 0))
    again, *new = inner.results
    for x, y in zip(carried, new, strict=True):
        if x.type != y.type:
            raise Refused(f"a loop that carries {x.type} and makes {y.type} of it")
    inner.results = [o.add(inner.inputs[0], 1), reshape(again, ()), *new]
    outer = union(inner)
    known = None if trips is None else array_of(trips)
    bound = None if known is None else max(int(known.reshape(-1)[0]), 0)
    if bound is not None and bound > UNROLL:  # exporters write "no limit" so; else gradients exist
        bound = None
    limit = [] if trips is None or bound is not None else [reshape(trips, ())]
    given = [step, flag, *carried, *_tracers(outer, ctx), *limit]
    grown = inner.graph(outer)
    grown = replace(grown, inputs=(*grown.inputs, *(Value(x.type, "trips") for x in limit)))

    def goes_on(*xs: Any) -> Any:
        return o.and_(xs[1], o.lt(xs[0], xs[-1])) if limit else xs[1]
    check = trace(goes_on, [x.type for x in given])
    return list(o.while_(*given, cond=check, body=grown, carries=len(types),
                         bound=bound))[2:]


def _label(ctx: Any, step: int) -> str:
    name = next((n for n in ctx.node.output if n), ctx.node.op_type)
    return f"{name}.{step}"


def _scalar(ctx: Any, value: Any) -> Any:
    kind = np.bool_ if isinstance(value, bool) else np.int64
    return Known(np.asarray(value, kind), ctx.builder)


def _trips(trips: Any) -> int | None:
    if trips is None:
        return None
    array = array_of(trips)
    if array is None or array.dtype == object:
        raise Refused("a loop whose number of steps is computed")
    return max(int(array.reshape(-1)[0]), 0)


def _stacked(seen: list[list[Any]], body: Any, first: int, ctx: Any) -> list[Any]:
    """The scan outputs, each with the steps as its first axis."""
    if seen:
        return [o.concat(*(reshape(x, (1, *x.shape)) for x in column), axis=0)
                if len(column) > 1 else reshape(column[0], (1, *column[0].shape))
                for column in zip(*seen, strict=True)]
    return [_empty(v, ctx) for v in list(body.output)[first:]]


def _empty(info: Any, ctx: Any) -> Any:
    """A scan output of no steps, by the type that the body declares."""
    t = ctx.importer.inputs.type(info)
    if not all(isinstance(d, int) for d in t.shape):
        raise Refused("a loop of no steps whose outputs have unknown sizes")
    return np.zeros((0, *t.shape), t.dtype.numpy)


# ---- scan --------------------------------------------------------------------------------------

@onnx_op("Scan", since=9, fold=False)
def scan(*operands: Any, body: Any, num_scan_inputs: int, scan_input_axes: Any = None,
         scan_input_directions: Any = None, scan_output_axes: Any = None,
         scan_output_directions: Any = None, ctx: Any) -> Any:
    cut = len(operands) - num_scan_inputs
    axes = scan_input_axes or (0,) * num_scan_inputs
    flips = scan_input_directions or (0,) * num_scan_inputs
    xs = [(x, axis_of(a, x.ndim), bool(f))
          for x, a, f in zip(operands[cut:], axes, flips, strict=True)]
    values, seen = _scanned(list(operands[:cut]), xs, body, ctx, "")
    outs = len(body.output) - cut
    return [*values, *(_joined([row[k] for row in seen], (scan_output_axes or (0,) * outs)[k],
                               bool((scan_output_directions or (0,) * outs)[k]))
                       for k in range(outs))]


def _scanned(values: list[Any], xs: list[tuple[Any, int, bool]], body: Any, ctx: Any,
             label: str) -> tuple[list[Any], list[list[Any]]]:
    """The states after all steps, and the scan outputs of each."""
    steps = xs[0][0].shape[xs[0][1]]
    if not isinstance(steps, int) or not 0 < steps <= UNROLL:
        raise Refused("a scan over no steps, too many, or a symbolic number")
    count, seen = len(values), []
    for t in range(steps):
        rows = [_row(x, axis, steps - 1 - t if flip else t) for x, axis, flip in xs]
        out = ctx.subgraph(body, (*values, *rows), f"{_label(ctx, t)}{label}")
        values = out[:count]
        seen.append(out[count:])
    return values, seen


def _row(x: Any, axis: int, t: int) -> Any:
    shape = tuple(d for a, d in enumerate(x.shape) if a != axis)
    return reshape(take(x, axis, t, t + 1), shape)


def _joined(rows: list[Any], axis: int, flip: bool) -> Any:
    rows = rows[::-1] if flip else rows
    at = axis_of(axis, rows[0].ndim + 1)
    wide = [reshape(r, (*r.shape[:at], 1, *r.shape[at:])) for r in rows]
    return o.concat(*wide, axis=at) if len(wide) > 1 else wide[0]


@onnx_op("Scan", since=8, fold=False)
def scan_8(lengths: Any, *operands: Any, body: Any, num_scan_inputs: int,
           directions: Any = None, ctx: Any) -> Any:
    """The old form: a batch axis first, time second; each row of the batch is scanned alone."""
    cut = len(operands) - num_scan_inputs
    if lengths is not None:
        raise Refused("Scan-8 with sequence lengths")
    batch = operands[0].shape[0]
    if not isinstance(batch, int):
        raise Refused("Scan-8 over a symbolic batch")
    flips = directions or (0,) * num_scan_inputs
    columns: list[list[Any]] = []
    for b in range(batch):
        mine = [_row(x, 0, b) for x in operands]
        xs = [(x, 0, bool(f)) for x, f in zip(mine[cut:], flips, strict=True)]
        values, seen = _scanned(mine[:cut], xs, body, ctx, f".{b}")
        columns.append([*values, *(_joined(list(c), 0, False) for c in zip(*seen, strict=True))])
    return [_joined(list(c), 0, False) for c in zip(*columns, strict=True)]

