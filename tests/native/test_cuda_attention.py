"""Attention on a device: in tiles by the matrix unit, and of a few queries; against float64."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.symbolic import Dim, Symbol, evaluate, symbol

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
              pytest.mark.usefixtures("device")]
RNG = np.random.default_rng(23)
F32, F16, BF16 = dtypes.float32, dtypes.float16, dtypes.bfloat16
S, T = symbol("S", 0, 90), symbol("T", 0, 150)


def attend(dtype: DType = F32, mask: str = "", **how: Any) -> Any:
    """Attention with a product behind it; keys and values may be stored in 16 bits."""
    def fn(q: Any, k: Any, v: Any, *masks: Any) -> Any:
        k, v = (o.cast(x, dtype=F32) if x.dtype is not F32 else x for x in (k, v))
        if dtype is dtypes.int8:
            k, v = (x * masks[0] for x in (k, v))
            masks = ()
        return o.attention(q, k, v, *masks, **{"scale": 0.2, **how}) * 2.0
    fn.dtype, fn.mask = dtype, mask  # type: ignore[attr-defined]
    return fn


# what is computed; heads of queries and of keys, queries, keys, length of keys and of values
CASES: dict[str, tuple[Any, tuple[Dim, ...]]] = {
    "plain": (attend(), (1, 1, 66, 40, 12, 9)), "causal": (attend(causal=True),
                                                           (2, 1, 34, 34, 16, 7)),
    "open": (attend(causal=True), (1, 1, S, T, 24, 16)), "grouped": (attend(), (4, 2, 9, 20, 8, 8)),
    "one_open": (attend(), (2, 1, 1, T, 40, 33)), "few": (attend(causal=True, softcap=3.0),
                                                         (2, 1, 3, 50, 16, 16)),
    "bf16": (attend(BF16), (1, 1, 20, 40, 16, 16)), "f16_one": (attend(F16), (2, 1, 1, 70, 64, 16)),
    "bytes": (attend(dtypes.int8), (2, 1, 9, 40, 16, 16)),
    "masked": (attend(mask="add", softcap=2.0), (1, 1, 20, 40, 16, 16)),
    "hidden": (attend(mask="bool"), (1, 1, 20, 40, 16, 16)),
    "hidden_one": (attend(mask="bool"), (2, 2, 2, 40, 16, 16))}


def operands(name: str) -> list[tuple[str, TensorType]]:
    fn, (heads, shared, s, t, d, dv) = CASES[name]
    shapes: list[tuple[str, DType, tuple[Dim, ...]]] = [
        ("q", F32, (heads, s, d)), ("k", fn.dtype, (shared, t, d)),
        ("v", fn.dtype, (shared, t, dv))]
    if fn.dtype is dtypes.int8:
        shapes.append(("f", F32, (shared, t, 1)))
    if fn.mask:
        shapes.append(("m", dtypes.bool_ if fn.mask == "bool" else F32, (heads, s, t)))
    return [(f"{name}_{letter}", TensorType(dtype, shape)) for letter, dtype, shape in shapes]


def values(m: Module, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    out = {}
    for v in m.graph.inputs:
        x = RNG.standard_normal([evaluate(d, sizes) for d in v.type.shape]).astype(np.float32)
        out[v.hint] = x > 0 if v.type.dtype is dtypes.bool_ else x.astype(v.type.dtype.numpy)
        if v.type.dtype is dtypes.bool_:
            out[v.hint][0, 1] = False  # a query that sees nothing
    return out


def test_attention(tmp_path: Path) -> None:
    """Every case in one library, at sizes of which some are open; all runs give the same bits."""
    ports = [port for name in CASES for port in operands(name)]

    def all_of(*xs: Any) -> list[Any]:
        given = iter(xs)
        return [fn(*(next(given) for _ in operands(name))) for name, (fn, _) in CASES.items()]
    graph = trace(all_of, [t for _, t in ports], [n for n, _ in ports])
    m = Module(graph, tuple(CASES), {"S": Symbol("S", 0, 90), "T": Symbol("T", 0, 150)})
    work = graphtool.build(m, tmp_path / "b", target="sm_90")
    text = (work / "model_kernels0.cu").read_text()
    assert text.count('include "attend_cuda.h"') == len(CASES)
    model = runtime.load(work)
    for sizes in ({"S": 70, "T": 90}, {"S": 1, "T": 1}, {"S": 0, "T": 5}):
        xs = values(m, sizes)
        got, want = {n: y.copy() for n, y in model(**xs).items()}, interp.run(m, xs)
        again = model(**xs)
        for name, y in want.items():
            if CASES[name][0].mask == "bool":
                y[0, 1] = got[name][0, 1]  # by the definition NaN or a mean, here 0
            error = np.linalg.norm(got[name] - y) / max(np.linalg.norm(y.astype(np.float64)), 1e-9)
            assert error < 2e-6, (name, error)
            np.testing.assert_array_equal(got[name], again[name])


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(("queries", "instructions"), [
    (512, ("mma.sync.aligned.m16n8k8", "shfl.sync")), (1, ("fma.rn.f32", "shfl.sync"))])
def test_nothing_is_spilled(queries: int, instructions: tuple[str, ...], tmp_path: Path) -> None:
    """Heads of 128, the longest ones, have their queries and sums in registers."""
    types = [TensorType(F32, (8, n, 128)) for n in (queries, 512, 512)]
    m = Module(trace(attend(), types, list("qkv")), ("y",), {})
    work = graphtool.build(m, tmp_path / "b", target="sm_90")
    subprocess.run(["nvcc", "-ptx", "-arch=compute_80", "model_kernels0.cu", "-o", "m.ptx"],
                   cwd=work, check=True, capture_output=True)
    text = (work / "m.ptx").read_text()
    assert all(word in text for word in instructions) and ".local" not in text
    said = subprocess.run(["nvcc", "-cubin", "-arch=sm_90", "-Xptxas", "-v", "model_kernels0.cu",
                           "-o", "m.cubin"], cwd=work, check=True, capture_output=True,
                          text=True).stderr
    assert {int(n) for n in re.findall(r"(\d+) bytes spill", said)} == {0}
