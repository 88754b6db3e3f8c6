"""What one kernel computes: nothing is computed again for every element that reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.graph import Module
from graphtool.passes import run
from tests.passes.pass_samples import module


def groups(m: Module) -> list[list[str]]:
    new = run(m, "decompose,simplify,fuse")
    return [[n.op.name for n in g.members] for g in new.graph.groups]


def norm(x: Any) -> Any:
    return x / o.reduce_sum(x * x, axes=(2,))


def test_a_sum_within_rows_joins_what_follows() -> None:
    m = module(lambda x: o.reduce_sum(norm(x), axes=(2,)), "f32[2,3,4]")
    assert groups(m) == [["mul", "reduce_sum", "div", "reduce_sum"]]


def test_a_sum_over_rows_reads_the_sums_within_them() -> None:
    m = module(lambda x: o.reduce_sum(norm(x), axes=(1,)), "f32[2,3,4]")
    assert groups(m) == [["mul", "reduce_sum"], ["div", "reduce_sum"]]


def test_a_sum_stays_apart_from_what_turns_its_rows() -> None:
    def fn(x: Any) -> Any:
        return o.tanh(o.transpose(norm(x), perm=(0, 2, 1)))
    assert groups(module(fn, "f32[2,3,4]")) == [["mul", "reduce_sum"], ["div", "transpose", "tanh"]]


def test_a_sum_stays_apart_from_a_packing_of_its_rows() -> None:
    m = module(lambda x: o.pack(norm(x), nr=16, transpose=True), "f32[2,16,4]")
    assert groups(m) == [["mul", "reduce_sum"], ["div", "pack"]]


def gathered(rows: int) -> Module:
    at = np.arange(rows, 0, -1).reshape(rows, 1) % 3
    return module(lambda x: o.gather(o.tanh(x), at, axes=(0,)), "f32[3,4]")


def test_a_gather_joins_what_it_takes_once() -> None:
    assert groups(gathered(2)) == [["gather", "tanh"]]
    assert groups(gathered(7)) == []


def test_a_template_brings_what_only_it_reads() -> None:
    def fn(x: Any, w: Any, state: Any) -> Any:
        return o.matmul_packed(x, o.pack(w, nr=16), n=16) + o.tanh(state * 0.5)
    m = module(fn, "f32[8,4]", "f32[4,16]", "f32[8,16]")
    assert groups(m) == [["matmul_packed", "mul", "tanh", "add"]]


def test_a_template_leaves_what_others_read() -> None:
    def fn(x: Any, w: Any, state: Any) -> Any:
        half = state * 0.5
        return o.matmul_packed(x, o.pack(w, nr=16), n=16) + half, half
    m = module(fn, "f32[8,4]", "f32[4,16]", "f32[8,16]")
    assert groups(m) == [["matmul_packed", "add"]]


def test_two_templates_do_not_wait_for_each_other() -> None:
    def fn(x: Any, w: Any) -> Any:
        p = o.pack(w, nr=16)
        a, b = (o.matmul_packed(x, p, n=16) + x for _ in range(2))
        return o.matmul_packed(b, p, n=16) + a, o.matmul_packed(a, p, n=16) + b
    new = run(module(fn, "f32[8,16]", "f32[16,16]"), "fuse")  # which verifies it
    assert sum(g.kind == "template" for g in new.graph.groups) == 4
