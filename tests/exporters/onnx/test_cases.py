"""The table of all ops, written as ONNX: what onnxruntime gives for it is what the op means."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.errors import UnsupportedError
from graphtool.exporters.onnx import FORMS
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.op import OPS, complete_attrs, evaluate
from graphtool.ir.trace import Builder, trace
from tests.cases import CASES, Case, arrays, each, types
from tests.closeness import assert_close
from tests.exporters.onnx.running import exported, run

WORDLESS = {name for name, op in OPS.items() if op.decompose is None and name not in FORMS}
ONNXRUNTIME = {  # where the runtime's own choice differs; ONNX leaves these open
    "div-12": "integers divided by zero", "div-16": "integers divided by zero",
    "rem-14": "integers divided by zero",
    "cast-44": "floats beyond int32", "cast-45": "floats beyond int64",
    "reduce_max-9": "NaN loses", "reduce_min-9": "NaN loses",
    **{f"arg_reduce-{i}": "NaN loses on some processors" for i in (2, 5, 16, 19)},
    "sort-3": "NaN is not sorted", "top_k-2": "NaN is not sorted",
}
ONNXRUNTIME |= {c.name: "it may keep activations exact that may be rounded to 8 bits"
                for c in CASES if c.attrs.get("activations") == "q8"}
SINGLE = {"erf-4", "erfc-4", "gelu-6"}  # the runtime computes erf of doubles in float32


def module(case: Case) -> Module:
    xs = arrays(case)

    def fn(*tensors: Any) -> Any:
        rest = iter(tensors)
        return case.op(*[next(rest) if isinstance(x, np.ndarray) else x for x in xs],
                       **case.attrs)
    given = [t for t in types(case) if isinstance(t, TensorType)]
    if given:
        graph = trace(fn, given)
    else:
        builder = Builder()
        made = builder.emit(case.op, (), dict(case.attrs))
        graph = Graph((), tuple(builder.nodes), (made.value,))
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))))


@each(CASES)
def test_onnxruntime_gives_what_the_op_means(case: Case) -> None:
    xs = arrays(case)
    want = evaluate(case.op, xs, complete_attrs(case.op, case.attrs))
    try:
        model = exported(module(case))
    except UnsupportedError as refused:  # by name, and only what cannot be said
        assert {item.name for item in refused.items} <= WORDLESS
        return
    if case.name in ONNXRUNTIME:
        return
    _, got = run(model, [x for x in xs if isinstance(x, np.ndarray)])
    for a, b in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        assert np.asarray(a).dtype == b.dtype
        assert_close(a, b, [x for x in xs if isinstance(x, np.ndarray)],
                     tolerance=1e-6 if case.name in SINGLE else 0)


def test_what_has_no_words() -> None:
    """Known so far; an op that comes to the table joins ONNX, or this list."""
    assert {"erf_inv", "lgamma", "digamma"} <= WORDLESS
    assert not {"matmul", "conv", "gather", "scatter", "sort", "trees"} & WORDLESS


def test_the_exceptions_are_cases() -> None:
    assert set(ONNXRUNTIME) <= {c.name for c in CASES}
