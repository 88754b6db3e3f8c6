"""Control flow: `cond`, `while_`, `scan`. Their bodies are closed graphs in attributes.

Values that a body reads from outside are extra operands, after the others. `eval` gets each body as
a function of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import Graph, Node, TensorType
from graphtool.ir.op import Op, evaluate, register
from graphtool.ir.replay import inline, replay
from graphtool.ir.trace import trace
from graphtool.ops.common import Array, need
from graphtool.symbolic import Dim

Body = Callable[..., list[Array]]
FLAG = TensorType(dtypes.bool_, ())


def _takes(what: str, graph: Graph, given: Sequence[TensorType]) -> None:
    need(all(isinstance(t, TensorType) for t in given),
         "every operand must be a tensor, not a literal")
    wanted = [v.type for v in graph.inputs]
    need(wanted == list(given), f"the {what} takes {_listing(wanted)}, got {_listing(given)}")


def _listing(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"


def _gives(graph: Graph) -> tuple[TensorType, ...]:
    return tuple(v.type for v in graph.outputs)


def _callable(body: Body | Graph) -> Body:
    """A body as a Python function; a graph that has no symbolic size is returned as it is."""
    if not isinstance(body, Graph):
        return body

    def apply(node: Node, *xs: Any) -> Sequence[Array]:
        out = evaluate(node.op, xs, node.attrs)
        return out if isinstance(out, tuple) else (out,)
    return lambda *xs: replay(body, xs, apply)


# ---- cond --------------------------------------------------------------------------------------

def _cond_infer(pred: TensorType, *operands: TensorType, then: Graph, orelse: Graph) -> tuple[
        TensorType, ...]:
    need(pred == FLAG, f"the predicate must be {FLAG}, got {pred}")
    for what, graph in (("then branch", then), ("else branch", orelse)):
        _takes(what, graph, operands)
    need(_gives(then) == _gives(orelse), f"the branches give {_listing(_gives(then))} and "
                                         f"{_listing(_gives(orelse))}")
    return _gives(then)


def _cond_eval(pred: Array, *operands: Array, then: Body, orelse: Body) -> tuple[Array, ...]:
    return tuple(_callable(then if pred else orelse)(*operands))


register(Op("cond", _cond_infer, _cond_eval, category="control",
            lowering=Lowering.CONTROL,
            doc="the results of `then` if the predicate is true, else those of `orelse`"))


# ---- while -------------------------------------------------------------------------------------

def _while_infer(*operands: TensorType, cond: Graph, body: Graph, carries: int,
                 bound: int | None = None) -> tuple[TensorType, ...]:
    need(bound is None or bound >= 0, f"the bound of a loop must be 0 or more, not {bound}")
    need(0 < carries <= len(operands), f"the loop carries {carries} values, but has "
                                       f"{len(operands)} operands")
    _takes("condition", cond, operands)
    _takes("body", body, operands)
    need(_gives(cond) == (FLAG,), f"the condition gives {_listing(_gives(cond))}, not one {FLAG}")
    need(_gives(body) == operands[:carries],
         f"the body gives {_listing(_gives(body))}, but the carries are "
         f"{_listing(operands[:carries])}")
    return operands[:carries]


def _while_eval(*operands: Array, cond: Body, body: Body, carries: int,
                bound: int | None) -> tuple[Array, ...]:
    held, fixed = list(operands[:carries]), operands[carries:]
    cond, body = _callable(cond), _callable(body)
    done = 0
    while done != bound and bool(cond(*held, *fixed)[0]):
        held, done = body(*held, *fixed), done + 1
    return tuple(held)


def _counted(*operands: Any, cond: Graph, body: Graph, carries: int,
             bound: int | None) -> tuple[Any, ...]:
    """Rewrite a loop with a bound as a loop without one, which counts its iterations."""
    if bound is None:
        return tuple(o.while_(*operands, cond=cond, body=body, carries=carries))
    types = [TensorType(dtypes.int64, ()), *(v.type for v in body.inputs)]

    def goes_on(i: Any, *xs: Any) -> Any:
        return o.and_(o.lt(i, bound), inline(i.builder, cond, xs)[0])

    def step(i: Any, *xs: Any) -> Any:
        return o.add(i, 1), *inline(i.builder, body, xs)
    start = operands[0].builder.constant(np.zeros((), np.int64))
    out = o.while_(start, *operands, cond=trace(goes_on, types), body=trace(step, types),
                   carries=carries + 1)
    return tuple(out[1:])


register(Op("while", _while_infer, _while_eval, decompose=_counted, category="control",
            lowering=Lowering.CONTROL,
            doc="the last values of the carries. They start as the first `carries` operands, and "
                "`body` replaces them as long as `cond` is true; the other operands stay the "
                "same. `bound` limits the number of iterations"))


# ---- scan --------------------------------------------------------------------------------------

def _scan_infer(*operands: TensorType, body: Graph, carries: int, xs: int, length: Dim,
                reverse: bool = False) -> tuple[TensorType, ...]:
    cut = carries + xs
    need(0 <= carries <= cut <= len(operands),
         f"the scan needs {cut} operands or more, got {len(operands)}")
    held, rows = operands[:carries], operands[carries:cut]
    for t in rows:
        need(t.rank > 0 and t.shape[0] == length,
             f"the first axis of the scanned {t} must be {length}")
    _takes("body", body, (*held, *(TensorType(t.dtype, t.shape[1:]) for t in rows),
                          *operands[cut:]))
    given = _gives(body)
    need(given[:carries] == held, f"the body gives {_listing(given)}, but the carries are "
                                  f"{_listing(held)}")
    return (*held, *(TensorType(t.dtype, (length, *t.shape)) for t in given[carries:]))


def _scan_eval(*operands: Array, body: Body, carries: int, xs: int, length: int,
               reverse: bool) -> tuple[Array, ...]:
    held, fixed = list(operands[:carries]), operands[carries + xs:]
    body = _callable(body)
    rows: list[list[Array]] = []
    for t in reversed(range(length)) if reverse else range(length):
        out = body(*held, *(x[t] for x in operands[carries:carries + xs]), *fixed)
        held, by_row = out[:carries], out[carries:]
        rows.append(by_row)
    if not rows:
        zeros = [np.zeros(x.shape[1:], x.dtype) for x in operands[carries:carries + xs]]
        blank = body.blank() if hasattr(body, "blank") else None
        by_row = (blank or body(*held, *zeros, *fixed))[carries:]
        return (*held, *(np.zeros((0, *y.shape), y.dtype) for y in by_row))
    ordered = rows[::-1] if reverse else rows
    return (*held, *(np.stack(column) for column in zip(*ordered, strict=True)))


register(Op("scan", _scan_infer, _scan_eval, category="control",
            lowering=Lowering.CONTROL,
            doc="runs `body` for each row along the first axis. The operands are the carries, "
                "then `xs` operands that are read row by row, then operands that stay the same. "
                "The results are the last carries, then the other results of all rows, stacked"))
