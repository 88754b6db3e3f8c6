"""An Array computes at import what is known, repeats lazily, and records the rest."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Front, Refused
from graphtool.front.assumptions import Facts, SizeKnowledge
from graphtool.front.regions import OuterNames
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import OPS, evaluate
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Condition, Poly, substitute, symbol
from graphtool.symbolic import evaluate as value_of

N = symbol("n", 1, None)
M = symbol("m", 1, None)


def front() -> Front:
    return Front(SizeKnowledge(Facts()))


def floats(f: Front, *shape: Any) -> Array:
    return f.input(TensorType(dtypes.float32, shape), "x")


def size(f: Front, d: Any) -> Array:
    return f.number(d, dtypes.int64)


def shown(x: Array) -> Any:
    return None if x.known is None else x.known.tolist()


# ---- what is known -----------------------------------------------------------------------------

KNOWN: dict[str, tuple[Callable[[Front], Array], Any]] = {
    "numbers": (lambda f: f.constant(np.arange(3)) * 2 + 1, [1, 3, 5]),
    "a slice": (lambda f: f.constant(np.arange(6).reshape(2, 3)).take(1, 1, 3), [[1, 2], [4, 5]]),
    "a sum": (lambda f: f.constant(np.arange(6).reshape(2, 3)).reduce("sum", (0,)), [3, 5, 7]),
    "sizes": (lambda f: size(f, N) * size(f, M) + 1, N * M + 1),
    "a quotient": (lambda f: o.div(size(f, N), 2), N // 2),
    "that of floats": (lambda f: size(f, N).cast(dtypes.float32) / 2, None),
    "a size as a float": (lambda f: size(f, N).cast(dtypes.float32) * 2, 2 * N),
    "a size in a narrow type": (lambda f: size(f, N).cast(dtypes.int8), None),
    "a comparison that holds": (lambda f: size(f, N) > 0, True),
    "one that may hold": (lambda f: size(f, N) < size(f, M), Condition("<", N, M)),
    "its opposite": (lambda f: ~(size(f, N) < size(f, M)), Condition("<=", M, N)),
    "all elements": (lambda f: f.constant(np.arange(4).reshape(2, 2)).flat(), [0, 1, 2, 3]),
    "an entry": (lambda f: f.constant(np.arange(6).reshape(2, 3)).entry(1, 2), [2, 5]),
    "an axis moved": (lambda f: f.constant(np.arange(6).reshape(1, 2, 3)).moveaxis(-1, 0),
                      np.moveaxis(np.arange(6).reshape(1, 2, 3), -1, 0).tolist()),
    "an axis more": (lambda f: f.constant(np.arange(4).reshape(2, 2)).unsqueeze(-2),
                     [[[0, 1]], [[2, 3]]]),
    "slices by indices": (lambda f: f.constant(np.arange(12).reshape(2, 3, 2)).at(
        np.array([[2, 0]]), 1), np.arange(12).reshape(2, 3, 2)[:, np.array([[2, 0]])].tolist()),
    "sizes that are moved": (lambda f: f.sizes((N, 3, M)).take(0, 0, 3, 2), [N, M]),
    "sizes that are joined": (lambda f: o.concat(f.sizes((N,)), f.sizes((2,)), axis=0), [N, 2]),
    "sizes that are drawn": (lambda f: o.gather(f.sizes((N, M)), f.constant(np.array([[1]])),
                                                axes=(0,)), [M]),
    "data": (lambda f: floats(f, 3) + 1, None),
}


@pytest.mark.parametrize("case", KNOWN)
def test_what_is_known_needs_no_node(case: str) -> None:
    f, (fn, known) = front(), KNOWN[case]
    made = fn(f)
    assert shown(made) == known
    assert known is None or not f.nodes


def test_what_is_known_becomes_nodes_when_it_is_read() -> None:
    f = front()
    x = f.sizes((N, 2)) * 3
    assert not f.nodes and x.value.type == TensorType(dtypes.int64, (2,))
    assert [n.op.name for n in f.nodes] == ["dim", "dim", "reshape", "reshape", "concat"]


# ---- nodes -------------------------------------------------------------------------------------

NODES: dict[str, tuple[Callable[[Front, Array], Any], list[tuple[str, Any]], tuple[Any, ...]]] = {
    "a number in place of a constant": (
        lambda f, x: x * f.number(0.5, x.dtype).broadcast((2, 3)), [("mul", 0.5)], (2, 3)),
    "a float beside floats": (lambda f, x: o.max(x, 0), [("max", 0.0)], (2, 3)),
    "two numbers": (lambda f, x: o.select(x > 0, x.number(1), x.number(2)),
                    [("gt", 0.0), ("constant", None), ("select", 2.0)], (2, 3)),
    "the same shape": (lambda f, x: x.reshape((2, 3)).transpose((0, 1)).cast(x.dtype).slice(
        (0, 0), (2, 3)), [], (2, 3)),
    "a reshape of a reshape": (lambda f, x: x.reshape((6,)).reshape((3, 2)).value and x.reshape(
        (6,)).reshape((3, 2)), [("reshape", None)] * 4, (3, 2)),
    "a repetition": (lambda f, x: x.reshape((1, 2, 3)).broadcast((4, 2, 3)) + 1,
                     [("reshape", None), ("add", 1.0)], (4, 2, 3)),
    "a repetition that is reduced": (lambda f, x: o.reduce_sum(x.broadcast((4, 2, 3)), axes=(0,)),
                                     [("broadcast", None), ("reduce_sum", None)], (1, 2, 3)),
}


@pytest.mark.parametrize("case", NODES)
def test_nodes(case: str) -> None:
    f, (fn, nodes, shape) = front(), NODES[case]
    made = fn(f, floats(f, 2, 3))
    numbers = [(n.op.name, next((x for x in n.inputs if isinstance(x, (int, float))), None))
               for n in f.nodes]
    assert made.shape == shape and numbers == nodes


def test_a_parameter_is_not_folded() -> None:
    f = front()
    w = f.constant(np.ones((2, 3), np.float32), "w", param=True)
    made = w.transpose((1, 0))
    assert made.known is None and [n.op.name for n in f.nodes] == ["constant", "transpose"]


def test_a_region_knows_what_is_known_outside() -> None:
    f, inner = front(), front()
    names = OuterNames({"x": floats(f, 2), "n": size(f, N), "r": floats(f, 1).broadcast((2,))},
                       inner)
    assert shown(names["n"]) == N and names["n"].builder is inner and not names.taken
    assert (names["x"] + names["r"]).shape == (2,) and len(names.taken) == 2


def test_what_the_run_computes_is_no_size() -> None:
    f = front()
    assert f.sizes((N, 2)).sizes("the shape") == (N, 2)
    with pytest.raises(Refused, match="the shape must be known at import"):
        floats(f, 2).sizes("the shape")


# ---- the record of an op says the same of sizes and of numbers ----------------------------------

ENTRIES = (3, -2, 0, N, N + 2, -N, 4 * N, True, False, Condition("<", N, 5), Condition("==", N, 4))


def at(entry: Any, n: int) -> Any:
    match entry:
        case Condition(sign, a, b):
            a, b = at(a, n), at(b, n)
            return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b}[sign]
        case Poly():
            return value_of(substitute(entry, {"n": n}), {})
    return entry


SIZED = [p for p in OPS.values() if p.known and Trait.ELEMENTWISE in p.traits]


@pytest.mark.parametrize("op", SIZED, ids=lambda p: p.name)
def test_an_op_on_sizes_is_the_op_on_their_numbers(op: Any) -> None:
    found = 0
    attrs = {"dtype": dtypes.int64, "saturate": True} if op is o.cast else {}
    arity = BY_NAME[op.name].arity if op.name in BY_NAME else len(op.operands)
    for xs in itertools.product(ENTRIES, repeat=arity):
        kinds = {isinstance(xs[i], (bool, Condition)) for i in op.alike or ()}
        made = op.known(dtypes.int64, *xs, **attrs) if len(kinds) < 2 else None
        for n in (1, 4, 7) if made is not None else ():
            numbers = [np.array(at(x, n)) for x in xs]
            assert at(made, n) == evaluate(op, numbers, attrs).item(), (xs, n)
            found += 1
    assert found
