"""What holds for every case of the table: types, decomposition, the file, symbolic batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool.dtypes import of_numpy
from graphtool.errors import InputError
from graphtool.io.weights import weight
from graphtool.ir import listing, serial
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.op import OPS, apply_held, complete_attrs, evaluate
from graphtool.symbolic import Symbol, substitute, symbol
from tests.cases import CASES, Case, arrays, each, types
from tests.evaluated import EVALUATED

every_case = each(CASES + EVALUATED)


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def results(case: Case, xs: list[Any]) -> tuple[Any, ...]:
    return as_tuple(evaluate(case.op, xs, complete_attrs(case.op, case.attrs)))


def inferred(case: Case, ts: list[Any]) -> tuple[TensorType, ...]:
    return as_tuple(case.op.infer(*ts, **complete_attrs(case.op, case.attrs)))


def test_every_op_has_a_case() -> None:
    elsewhere = {n for n, op in OPS.items() if op.category == "memory" or op.lowering in (
        Lowering.TEMPLATE, Lowering.DATA)}  # kernels are tested under tests/kernels
    assert not set(OPS) - elsewhere - {c.op.name for c in CASES + EVALUATED}


def test_every_op_has_a_meaning() -> None:
    assert not [op.name for op in OPS.values() if op.eval is None and op.decompose is None]


@every_case
def test_infer_gives_the_types_of_eval(case: Case) -> None:
    got = [TensorType(of_numpy(y.dtype), y.shape) for y in results(case, arrays(case))]
    assert list(inferred(case, types(case))) == got


@pytest.mark.parametrize("case", [c for c in CASES if c.op.eval and c.op.decompose], ids=repr)
def test_decompose_equals_eval(case: Case) -> None:
    xs, attrs = arrays(case), complete_attrs(case.op, case.attrs)
    other = as_tuple(apply_held(lambda *a: case.op.decompose(*a, **attrs), xs))  # type: ignore
    for a, b in zip(results(case, xs), other, strict=True):
        np.testing.assert_array_equal(a, b)


def module_of(case: Case) -> Module:
    """The case as a graph of one node over inputs."""
    xs = types(case)
    inputs = [Value(x, f"x{i}") if isinstance(x, TensorType) else x for i, x in enumerate(xs)]
    outputs = tuple(Value(y, case.op.name) for y in inferred(case, xs))
    node = Node(case.op, tuple(inputs), complete_attrs(case.op, case.attrs), outputs)
    graph = Graph(tuple(x for x in inputs if isinstance(x, Value)), (node,), outputs)
    return Module(graph, tuple(f"y{i}" for i in range(len(outputs))))


@every_case
def test_file_round_trip(case: Case) -> None:
    text = serial.dumps(module_of(case), embed=True)
    again = serial.loads(text)
    assert serial.dumps(again, embed=True) == text
    listed = listing.dumps(again, embed=True)
    assert serial.dumps(serial.loads(listed), embed=True) == text
    assert repr(again.graph.nodes[0].attrs) == repr(complete_attrs(case.op, case.attrs))


def test_constants_round_trip() -> None:
    for data in (np.arange(40.0), np.array([np.nan, -0.0, np.inf]), np.array(3, np.int8),
                 np.array([["é", ""]] * 20), np.array("x")):
        attrs = complete_attrs(OPS["constant"], {"data": weight(data)})
        v = Value(OPS["constant"].infer(**attrs), "c")  # type: ignore[arg-type]
        module = Module(Graph((), (Node(OPS["constant"], (), attrs, (v,)),), (v,)), ("y",))
        text = serial.dumps(module, embed=True)
        assert serial.dumps(serial.loads(text), embed=True) == text


BATCH = symbol("B", 1, 64)


def _symbolic(x: Any) -> Any:
    """The first dim of every operand that has the first operand's size becomes B."""
    return TensorType(x.dtype, (BATCH, *x.shape[1:]))


@every_case
def test_symbolic_batch_agrees(case: Case) -> None:
    """Where an op takes a symbolic first dim, binding it gives the concrete types."""
    ts = types(case)
    first = next((x for x in ts if isinstance(x, TensorType)), None)
    if first is None or not first.shape or first.shape[0] == 0:
        pytest.skip("no dim to make symbolic")
    size = first.shape[0]
    wide = [_symbolic(x) if isinstance(x, TensorType) and x.shape and x.shape[0] == size
            and x.rank == first.rank else x for x in ts]
    try:
        got = inferred(case, wide)
    except InputError:
        pytest.skip("the op needs this dim static")
    bound = [TensorType(y.dtype, tuple(substitute(d, {"B": size}) for d in y.shape)) for y in got]
    assert bound == list(inferred(case, ts))


def test_symbolic_batch_is_taken_where_it_matters() -> None:
    b = Symbol("B", 1, 64)
    x = TensorType(of_numpy(np.dtype("f4")), (BATCH, 3, 8, 8))
    assert b.name in str(OPS["max_pool"].infer(x, **complete_attrs(
        OPS["max_pool"], {"window": (2, 2), "padding": ((1, 1), (0, 1))})))
    for name, attrs in (("softmax", {"axis": 1}), ("group_norm", {"groups": 3}),
                        ("lrn", {"size": 3}),
                        ("resize", {"sizes": (BATCH, 3, 5, 6), "mode": "linear"}),
                        ("reduce_mean", {"axes": (0, 2)}), ("avg_pool", {"window": (2, 2)})):
        xs = [x] + [None] * (2 if name == "group_norm" else 0)
        op = OPS[name]
        assert op.infer(*xs, **complete_attrs(op, attrs))


def test_a_case_that_fails_is_named_and_the_others_run() -> None:
    ran = []

    @each(CASES[:3])
    def one_fails(case: Case) -> None:
        ran.append(case)
        assert case is not CASES[1]
    with pytest.raises(ExceptionGroup, match="1 cases of neg") as failed:
        one_fails("neg")
    assert ran == CASES[:3] and failed.value.exceptions[0].__notes__ == [f"case: {CASES[1]!r}"]
