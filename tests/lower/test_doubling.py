"""Values used twice at each of many levels, and long chains: C stays linear in the nodes."""

from __future__ import annotations

import numpy as np
import pytest

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import interp, passes
from graphtool.emit.c import emit
from graphtool.ir.graph import Module
from graphtool.ir.serial import loads
from graphtool.loops import interp as programs
from graphtool.lower import lower
from graphtool.target import named

TARGET = named("x86-64-v3", 2)
# type of the values, lines before and after the chain; {} is its last value
FORMS = {
    "elements": ("f32[8]", "", ""),
    "halves": ("f16[8]", "", ""),
    "a sum": ("f32[8,16]", "", "z: f32[8,1] = reduce_sum({}, axes=(1,))"),
    "a small sum": ("f32[8,4]", "", "z: f32[8,1] = reduce_sum({}, axes=(1,))"),
    "a window": ("f32[1,8,8,4]", "", 'z: f32[1,4,4,4] = reduce_window({}, kind="max", '
                 "window=(1, 2, 2, 1), strides=(1, 2, 2, 1))"),
    "rows of a product": ("f32[8,16]", "matmul(a, b)", ""),
    "rows of a transpose": ("f32[64,64]", "transpose(a, perm=(1, 0))", ""),
    "an index": ("i64[8,1]", "", "z: f32[8] = gather(a, {}, axes=(0,))"),
}
MORE = {"rows of a product": ["input a: f32[8,32]", "input b: f32[32,16]"],
        "rows of a transpose": ["input a: f32[64,64]"], "an index": ["input a: f32[100]"]}


def chain(form: str, count: int, line: str) -> Module:
    """`count` nodes, each `line` of the one before."""
    kind, first, last = FORMS[form]
    lines = ["input c: bool[]", *MORE.get(form, []),
             f"y0: {kind} = {first}" if first else f"input y0: {kind}"]
    lines += [f"y{i + 1}: {kind} = {line.format(f'y{i}')}" for i in range(count)]
    lines += [last.format(f"y{count}")] if last else []
    return loads("\n".join([*lines, f"return {'z' if last else f'y{count}'}"]))


def size(module: Module) -> int:
    """Characters of C of the kernels after the default passes; the results are right."""
    ready = passes.run(module, None, supply={"target": TARGET})
    program = lower(ready, TARGET, name="m")
    feed = {v.hint: np.zeros([int(str(d)) for d in v.type.shape], v.type.dtype.numpy)
            for v in module.graph.inputs}
    for name, got in programs.run(program, feed, {}).items():
        np.testing.assert_array_equal(got, interp.run(module, feed)[name])
    return sum(len(text) for name, text in emit(program).items() if "_kernels" in name)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_forty_doublings(form: str) -> None:
    ten, forty = (size(chain(form, n, "add({0}, {0})")) for n in (10, 40))
    assert forty < 5 * ten


@pytest.mark.long
@pytest.mark.part(4)
@pytest.mark.parametrize("form", FORMS)
def test_a_deep_nest_of_selects(form: str) -> None:
    number = "1" if FORMS[form][0].startswith("i") else "1.0"
    assert size(chain(form, 2000, f"select(c, {{}}, {number})")) < 2000 * 500
