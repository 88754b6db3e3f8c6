"""The interpreter of programs agrees with the graph's evaluator and with compiled C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.dtypes import dtype, float32
from graphtool.errors import InputError
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.loops import interp as loops
from graphtool.loops import serial
from graphtool.loops.ir import Template
from graphtool.loops.program import Program
from graphtool.loops.walk import statements
from graphtool.lower import lower
from graphtool.native import runtime
from tests.loops.programs import TARGET
from tests.passes.pass_samples import SAMPLES, module, values


def padded(x: Any) -> Any:
    return o.pad(x, lo=(0, 0, 1, 1), hi=(0, 0, 1, 1))


def winograd(x: Any) -> Any:
    return o.relu(o.conv(padded(x), values(x, 32, 32, 3, 3)))


def grouped_tiles(x: Any) -> Any:
    return o.conv(padded(x), values(x, 64, 32, 3, 3) * 0.1, groups=2)


def lines(x: Any) -> Any:
    y = o.relu(o.conv(padded(x), values(x, 36, 32, 1, 5) * 0.1, rhs_dilation=(1, 2)))
    return o.conv(y, values(x, 32, 36, 5, 1) * 0.1)


def depthwise(x: Any) -> Any:
    return o.conv(padded(x), values(x, 8, 1, 3, 3), groups=8, strides=(2, 2)) + values(x, 8, 1, 1)


def pools(x: Any) -> Any:
    each = {"window": (3, 3), "padding": ((1, 1), (1, 1)), "channels_last": True}
    return o.max_pool(x, strides=(2, 2), **each), o.relu(o.avg_pool(x, **each)) + 1.0


def grouped(x: Any) -> Any:
    return o.conv(x, values(x, 6, 4, 2, 3), groups=2, rhs_dilation=(2, 1))


def product(x: Any) -> Any:
    return o.gelu(o.linear(x, values(x, 9, 5), values(x, 9)))


def attend(q: Any, k: Any, v: Any) -> Any:
    return o.attention(q, k, v, causal=True, softcap=5.0)


def casts(x: Any) -> Any:
    y = o.cast(x * 100.0, dtype=dtype("i8"))
    return y + y, o.cast(o.cast(x, dtype=dtype("bf16")), dtype=float32) * 3.0


def nothing_special(x: Any) -> Any:
    return o.softmax(o.reverse(x, axes=(1,)) * 2.0, axis=1), o.reduce_max(x, axes=(0,))


def cells(x: Any) -> Any:
    y, h = o.gru(x, values(x, 2, 9, 4), values(x, 2, 9, 3), values(x, 2, 18), direction=(
        "bidirectional"), linear_before_reset=True)
    z, _ = o.rnn(x, values(x, 1, 3, 4), values(x, 1, 3, 3), direction="reverse")
    return y, h, z


def cells_back(x: Any) -> Any:
    """The gradients of all kinds of recurrence, by what their steps keep."""
    grads = []
    for i, (kind, gates) in enumerate((("lstm", 4), ("gru", 3), ("gru_linear", 3), ("tanh", 1),
                                       ("relu", 1))):
        way, d = (("forward", 1), ("reverse", 1), ("bidirectional", 2))[i % 3]
        p = o.reshape(o.concat(*(x * (0.1 * k + 0.3) for k in range(gates * d)), axis=2),
                      shape=(3, d, 2, gates * 4))
        r = values(x, d, 4, gates * 4)
        y, *_, kept = o.recurrence(p, r, kind=kind, direction=way)
        grads += o.recurrence_grad(r, y, kept, y * 0.5, kind=kind, direction=way)
    return tuple(grads)


def ordered(x: Any) -> Any:
    best, places = o.top_k(x, k=3, axis=0)
    rising, _ = o.sort(x, axis=1)
    falling, order = o.sort(x, axis=1, descending=True)
    return best, places, rising, falling, order


def narrow(x: Any) -> Any:
    """Products with weights of 4 and of 2 bits, the last block sticking out; one with zeros."""
    rng = np.random.default_rng(0)
    out = []
    for bits, block, zeros in ((4, 16, True), (2, 32, False)):
        parts = -(-x.shape[1] // block)
        tables = [rng.integers(0, 256, (9, parts, block * bits // 8)).astype(np.uint8),
                  rng.random((9, parts), np.float32)]
        tables += [rng.random((9, parts), np.float32)] if zeros else []
        out.append(o.linear_nbits(x, *map(x.builder.constant, tables), bits=bits, block=block))
    return tuple(out)


MODULES: dict[str, Callable[[], Module]] = {
    **{name: (lambda m=m: m) for name, m in SAMPLES.items()},
    "winograd": lambda: module(winograd, "f32[1,32,9,8]"),
    "grouped tiles": lambda: module(grouped_tiles, "f32[1,64,9,8]"),
    "lines": lambda: module(lines, "f32[1,32,12,37]"),
    "depthwise": lambda: module(depthwise, "f32[2,8,7,7]"),
    "pools": lambda: module(pools, "f32[B,7,9,20]"),
    "grouped": lambda: module(grouped, "f32[1,8,5,6]"),
    "product": lambda: module(product, "f32[B,3,5]"),
    "attend": lambda: module(attend, "f32[1,4,6,8]", "f32[1,2,6,8]", "f32[1,2,6,5]"),
    "casts": lambda: module(casts, "f32[3,4]"),
    "cells": lambda: module(cells, "f32[3,2,4]"),
    "cells back": lambda: module(cells_back, "f32[3,2,4]"),
    "narrow": lambda: module(narrow, "f32[3,70]"),
    "ordered": lambda: module(ordered, "f32[5,4]"),
    "reductions": lambda: module(nothing_special, "f32[B,7]"),
}


def lowered(m: Module) -> tuple[Program, dict[str, Any], Module]:
    best = passes.run(m, supply={"target": TARGET})
    return (lower(best, TARGET, name="model"), {w.digest: w for w in collect_all(best.graph)},
            best)


@pytest.mark.part(2)
@pytest.mark.parametrize("name", MODULES)
def test_agrees_with_evaluator_and_c(name: str, tmp_path: Path) -> None:
    m = MODULES[name]()
    program, store, best = lowered(m)
    xs = made_up.random_inputs(m, 0)
    got = loops.run(serial.loads(serial.dumps(program)), xs, store)
    compiled = runtime.load(build(best, tmp_path / "b", target=TARGET, jobs=2)).run(xs)
    for key, want in interp.run(m, xs).items():
        np.testing.assert_allclose(got[key], want, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(got[key], compiled[key], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "kernel"), [
    ("winograd", "winograd"), ("lines", "winograd_line"), ("grouped tiles", "winograd"),
    ("depthwise", "depthwise"),
    ("grouped", "conv_direct"),
    ("pools", "pooled"),
    ("product", "gemm"), ("attend", "attend"), ("cells", "recurrence"),
    ("cells back", "recurrence_grad"),
    ("ordered", "sort"), ("narrow", "linear_f32")])
def test_the_samples_use_the_templates(name: str, kernel: str) -> None:
    program, _, _ = lowered(MODULES[name]())
    used = {s.kernel for k in program.kernels for s in statements(k.body)
            if isinstance(s, Template)}
    assert kernel in used


def test_a_buffer_that_is_too_small_is_noticed() -> None:
    program, store, _ = lowered(MODULES["reductions"]())
    small = tuple(replace(b, size=1) if b.space == "arena" else b for b in program.buffers)
    xs = made_up.random_inputs(MODULES["reductions"](), 0)
    if any(b.space == "arena" for b in small):
        with pytest.raises(InputError) as found:
            loops.run(replace(program, buffers=small), xs, store)
        assert found.value.code == "GT0570"


@pytest.mark.parametrize(("x", "to", "want"), [
    (300.0, "i8", 127), (-300.5, "i8", -128), (float("nan"), "i32", 0), (-1.0, "u8", 0),
    (1e30, "i64", 2**63 - 1), (2.75, "i32", 2), (0.5, "bool", True), (1e-9, "f16", 0.0),
    (300.0, "i4", 7), (-300.0, "i2", -2), (9.9, "u2", 3), (300.0, "f8e4m3fn", 288.0)])
def test_casts(x: float, to: str, want: Any) -> None:
    assert loops.cast(np.float32(x), dtype(to)) == want
