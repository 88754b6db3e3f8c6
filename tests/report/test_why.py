"""show --why: kernels with their rivals and rules; --why-not-fused: the rule that forbids it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.compile.rows import threads_of
from graphtool.errors import InputError
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.op import OPS
from graphtool.ir.text import value_names
from graphtool.ir.trace import trace
from graphtool.loops.program import runs
from graphtool.lower import lower
from graphtool.report.why import why_graph, why_lines, why_not_fused, why_steps
from graphtool.symbolic import Symbol, symbol
from graphtool.target import TABLE, for_threads


def made() -> Module:
    def fn(x: Any) -> Any:
        w = np.ones((32, 32, 3, 3), np.float32)
        y = o.conv(x, w, padding=((1, 1), (1, 1)))
        z = o.exp(o.neg(o.neg(y)))
        total = o.reduce_sum(z, axes=(1,))
        wide = o.matmul(o.reshape(z, shape=(32, 64)), np.ones((64, 64), np.float32))
        return total, wide
    graph = trace(fn, [TensorType(dtypes.float32, (1, 32, 8, 8))])
    return passes.run(Module(graph, ("total", "wide")),
                      supply={"target": TABLE["x86-64-v4"]})


MODULE = made()
NAMES = {n.op.name: value_names(MODULE.graph)[n.outputs[0]] for n in MODULE.graph.nodes}


def test_a_kernel_its_rivals_and_its_rules() -> None:
    (conv,) = (k for k in why_graph(MODULE).kernels if k.op == "winograd")
    assert conv.by == "cost" and conv.us > 0 and len(conv.rivals) >= 2
    assert conv.kernel.startswith("winograd{tile=") and NAMES["exp"] in conv.fused
    assert "winograd" in "\n".join(why_lines(why_graph(MODULE)))


@pytest.mark.parametrize(("width", "words"), [
    (16, "1: a second one pays from"), (1024, "up to 2: a second one pays from")])
def test_what_decides_how_many_threads(width: int, words: str) -> None:
    def fn(x: Any) -> Any:
        return o.matmul(o.exp(x), np.ones((width, width), np.float32))
    graph = trace(fn, [TensorType(dtypes.float32, (4, width))])
    target = for_threads(TABLE["x86-64-v4"], 2)
    program = lower(passes.run(Module(graph, ("y",)), supply={"target": target}), target)
    alone = {k.name for k in program.kernels if k.serial}
    told = why_steps(runs(program.steps), "default", "k0", threads=threads_of(program),
                     alone=alone)
    assert told.threads.startswith(words) and f"threads: {words}" in "\n".join(why_lines(told))
    assert told.kernels[0].notes == (
        ["one alone, as it has little to do, or no loop to share"] if "k0" in alone else [])


def test_the_panels_of_a_recurrence_and_their_rivals() -> None:
    def fn(p: Any) -> Any:
        return o.recurrence(p, np.ones((1, 64, 256), np.float32), kind="lstm")[0]
    graph = trace(fn, [TensorType(dtypes.float32, (20, 1, 1, 256))])
    new = passes.run(Module(graph, ("y",)), supply={"target": TABLE["x86-64-v4"]})
    (told,) = why_graph(new).kernels
    assert (told.op, told.kernel, told.by) == ("recurrence", "recurrence{nv=8}", "cost")
    assert told.site == "recurrence{steps=20,batch=1,n=256,k=64}" and len(told.rivals) == 4
    steps = runs(lower(new, TABLE["x86-64-v4"]).steps)
    assert [k.rivals for k in why_steps(steps, "default").kernels] == [told.rivals]


@pytest.mark.parametrize(("dtype", "shape", "op", "words"), [
    (dtypes.float32, (1, 4, 16, 8), "attend", "attention by its kernel"),
    (dtypes.float64, (1, 4, 16, 8), "matmul", "computes only float32, not float64"),
    (dtypes.float32, (16, 8), "matmul", "needs an axis of heads"),
    (dtypes.float32, (1, symbol("heads"), 16, 8), "matmul", "known number and size of heads")])
def test_attention_says_whether_its_kernel_fits(dtype: dtypes.DType, shape: Any, op: str,
                                                words: str) -> None:
    types = [TensorType(dtype, shape)] * 3
    graph = trace(OPS["attention"], types, list("qkv"))
    new = passes.run(Module(graph, ("y",), {"heads": Symbol("heads")}),
                     supply={"target": TABLE["x86-64-v4"]})
    again = serial.loads(serial.dumps(new, embed=True))
    told = why_graph(again).kernels[-1]
    assert told.op == op and words in told.notes[0] and told.rules == []
    assert told.kernel.startswith("attend{keys=0" if op == "attend" else "")
    assert f"because   {told.notes[0]}" in "\n".join(why_lines(why_graph(again)))


@pytest.mark.parametrize(("high", "strides", "words"), [
    (2, (1, 1), "by 2×2 phases"), (1, (1, 1), "not a multiple of its strides"),
    (2, (2, 2), "it also has strides")])
def test_a_transposed_convolution_says_what_became_of_its_zeros(
        high: int, strides: tuple[int, int], words: str) -> None:
    def fn(x: Any) -> Any:
        return o.conv(x, np.ones((3, 4, 4, 4), np.float32), strides=strides,
                      lhs_dilation=(2, 2), padding=((high, 2), (high, 2)))
    graph = trace(fn, [TensorType(dtypes.float32, (1, 4, 8, 8))])
    new = passes.run(Module(graph, ("y",)), supply={"target": TABLE["x86-64-v4"]})
    kernels = why_graph(new).kernels
    assert kernels and all(k.kernel and words in k.notes[0] for k in kernels)


def test_rules_survive_the_file() -> None:
    assert MODULE.history and serial.loads(serial.dumps(MODULE, embed=True)).history == dict(
        MODULE.history)
    told = [r for name in NAMES.values() for r in why_graph(MODULE, name).kernels[0].rules]
    assert any(r.startswith("simplify.") for r in told)


def test_a_program_knows_what_its_graph_did() -> None:
    steps = list(runs(lower(MODULE, TABLE["x86-64-v4"]).steps))
    kernels = {k.kernel for k in why_steps(steps, "default").kernels}
    assert kernels == {k.kernel for k in why_graph(MODULE).kernels}
    assert why_steps(steps, "default", NAMES["exp"]).kernels[0].kernel.startswith("winograd")


@pytest.mark.parametrize(("a", "b", "reason"), [
    ("winograd", "exp", "they are fused"), ("exp", "winograd", "they are fused"),
    ("exp", "reduce_sum", "not elementwise"), ("winograd", "gemm", "does not read"),
    ("reshape", "gemm", "a template has an epilogue")])
def test_why_not_fused(a: str, b: str, reason: str) -> None:
    assert reason in why_not_fused(MODULE, NAMES[a], NAMES[b]).reason


def test_unknown_names_have_near_ones() -> None:
    with pytest.raises(InputError, match="GT3093") as caught:
        why_not_fused(MODULE, NAMES["exp"] + "x", NAMES["exp"])
    assert NAMES["exp"] in str(caught.value.hint)
    with pytest.raises(InputError, match="GT3093"):
        why_graph(MODULE, "nothing")
