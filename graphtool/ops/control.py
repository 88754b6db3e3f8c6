"""Control flow: `cond`, `while_`, `scan`. Their bodies are closed graphs in attributes.

What a body reads from outside is an operand of its own, behind the others; `eval` gets a body as a
function of arrays.
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
from graphtool.ir.trace import inline, replay, trace
from graphtool.ops.common import Array, need
from graphtool.symbolic import Dim

Body = Callable[..., list[Array]]
FLAG = TensorType(dtypes.bool_, ())


def _takes(what: str, graph: Graph, given: Sequence[TensorType]) -> None:
    need(all(isinstance(t, TensorType) for t in given), "an operand is a tensor, not a literal")
    wanted = [v.type for v in graph.inputs]
    need(wanted == list(given), f"the {what} takes {_listing(wanted)}, got {_listing(given)}")


def _listing(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"


def _gives(graph: Graph) -> tuple[TensorType, ...]:
    return tuple(v.type for v in graph.outputs)


def _callable(body: Body | Graph) -> Body:
    """A body as a function; a graph as it stands where no size in it is open."""
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
    need(bound is None or bound >= 0, f"a loop runs at least 0 times, not {bound}")
    need(0 < carries <= len(operands), f"{carries} of {len(operands)} operands are carried")
    _takes("condition", cond, operands)
    _takes("body", body, operands)
    need(_gives(cond) == (FLAG,), f"the condition gives {_listing(_gives(cond))}, not one {FLAG}")
    need(_gives(body) == operands[:carries], f"the body gives {_listing(_gives(body))}, carried "
                                             f"are {_listing(operands[:carries])}")
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
    """A loop with a bound as one without, which counts its iterations."""
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
            doc="carries, replaced by the results of `body` as long as `cond` holds; the first "
                "`carries` operands are where they start, the others stay the same. With "
                "`bound`, at most so many iterations"))


# ---- scan --------------------------------------------------------------------------------------

def _scan_infer(*operands: TensorType, body: Graph, carries: int, xs: int, length: Dim,
                reverse: bool = False) -> tuple[TensorType, ...]:
    cut = carries + xs
    need(0 <= carries <= cut <= len(operands), f"{len(operands)} operands are fewer than {cut}")
    held, rows = operands[:carries], operands[carries:cut]
    for t in rows:
        need(t.rank > 0 and t.shape[0] == length, f"{t} is scanned, its first axis must be "
                                                  f"{length}")
    _takes("body", body, (*held, *(TensorType(t.dtype, t.shape[1:]) for t in rows),
                          *operands[cut:]))
    given = _gives(body)
    need(given[:carries] == held, f"the body gives {_listing(given)}, carried are "
                                  f"{_listing(held)}")
    return (*held, *(TensorType(t.dtype, (length, *t.shape)) for t in given[carries:]))


def _scan_eval(*operands: Array, body: Body, carries: int, xs: int, length: int,
               reverse: bool) -> tuple[Array, ...]:
    held, fixed = list(operands[:carries]), operands[carries + xs:]
    body = _callable(body)
    rows: list[list[Array]] = []
    for t in reversed(range(length)) if reverse else range(length):
        out = body(*held, *(x[t] for x in operands[carries:carries + xs]), *fixed)
        held, made = out[:carries], out[carries:]
        rows.append(made)
    if not rows:  # the body's types are known to `infer` only; run it on zeros to learn them
        blank = [np.zeros(x.shape[1:], x.dtype) for x in operands[carries:carries + xs]]
        made = body(*held, *blank, *fixed)[carries:]
        return (*held, *(np.zeros((0, *y.shape), y.dtype) for y in made))
    ordered = rows[::-1] if reverse else rows
    return (*held, *(np.stack(column) for column in zip(*ordered, strict=True)))


register(Op("scan", _scan_infer, _scan_eval, category="control",
            lowering=Lowering.CONTROL,
            doc="`body` for each row along the first axis. The operands are carries, then `xs` "
                "operands that are read row by row, then what stays the same; the results are "
                "the last carries, then the other results of all rows, stacked"))
