"""What a row's reduction and result share is computed once, and comes out as the evaluator has it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import serial
from graphtool.loops.ir import Apply
from graphtool.loops.walk import each, statements, values
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named

TARGET = named("native", 2)
# name: function, shapes, exponentials in the text
CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
    "rows": (lambda x: o.softmax(x, axis=-1), [(300, 130)], 1),
    "scaled": (lambda x: o.softmax(x * 0.5, axis=-1) * 3.0 + 1.0, [(300, 130)], 1),
    "masked": (lambda x, m: o.softmax(x + m, axis=-1), [(4, 60, 90), (60, 90)], 1),
    "two axes": (lambda x: o.softmax(o.reshape(x, shape=(70, 90)), axis=-1), [(70, 9, 10)], 1),
    "one row": (lambda x: o.softmax(x, axis=-1), [(1, 30000)], 2),
    "also read": (lambda x: (lambda y: (y, y * 2.0))(o.softmax(x, axis=-1)), [(300, 130)], 1),
    "no reuse": (lambda x: o.log_softmax(x, axis=-1), [(300, 130)], 1),
    "short": (lambda x: o.softmax(x, axis=-1), [(300, 7)], 1),
}


def optimized(name: str) -> Module:
    fn, shapes, _ = CASES[name]
    names = [f"x{i}" for i in range(len(shapes))]
    graph = trace(fn, [TensorType(dtypes.float32, s) for s in shapes], names)
    outputs = tuple(f"y{i}" for i in range(len(graph.outputs)))
    return passes.run(Module(graph, outputs), supply={"target": TARGET})


@pytest.mark.parametrize("name", CASES)
def test_an_exponential_is_computed_once(name: str) -> None:
    program = lower(optimized(name), TARGET)
    text = serial.dumps(program)
    assert serial.dumps(serial.loads(text)) == text
    found = [e for k in program.kernels for s in statements(k.body) for e in each(values(s))]
    assert sum(isinstance(e, Apply) and e.fn == "exp" for e in found) == CASES[name][2]


def test_compiled(tmp_path: Path) -> None:
    for name, (_, shapes, _) in CASES.items():
        module = optimized(name)
        rng = np.random.default_rng(0)
        xs = {f"x{i}": rng.standard_normal(s, np.float32) * 5 for i, s in enumerate(shapes)}
        built = build(module, tmp_path / name.replace(" ", "_"), target=TARGET, jobs=2)
        for threads in (1, 2):
            got = runtime.load(built, threads).run(xs)
            for key, want in interp.run(module, xs).items():
                np.testing.assert_allclose(got[key], want, rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_sum_over_a_row_counts_once() -> None:
    program = lower(optimized("rows"), TARGET)
    (run,) = program.steps
    assert 300 * 130 * 15 < run.flops < 300 * 130 * 40  # type: ignore[union-attr, operator]
