"""Loops that compilers have to vectorise: a short last axis, and constants that are chosen."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import interp, passes
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.ir.serial import loads
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named

# the distance of neighbours in space, and what pulls them together
POINTS = """
input a: f32[32,32,3]
input b: f32[32,32,3]
d: f32[32,32,3] = sub(a, b)
s: f32[32,32,3] = mul(d, d)
n: f32[32,32,1] = reduce_sum(s, axes=(2,))
r: f32[32,32,1] = sqrt(n)
t: f32[32,32,1] = sub(1.0, r)
y: f32[32,32,3] = mul(d, t)
return y
"""
# an approximation by parts, as libraries write the inverse of erf
PARTS = """
input x: f32[1024]
constant @p: f32[] = [2.81]
constant @q: f32[] = [1.5]
c: bool[1024] = lt(x, 5.0)
k: f32[1024] = select(c, @p, @q)
y: f32[1024] = mul(k, x)
return y
"""
TEXTS = {"a short axis": POINTS, "constants": PARTS}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
def test_gcc_vectorises(name: str, march: str, tmp_path: Path) -> None:
    target = named(march)
    program = lower(passes.run(loads(TEXTS[name]), supply={"target": target}), target, name="m")
    for file, text in emit(program).items():
        (tmp_path / file).write_text(text)
    done = subprocess.run(["gcc", "-std=gnu11", "-O3", f"-march={march}", *target.more,
                           "-fno-math-errno", "-fno-thread-jumps", "-fno-trapping-math",
                           "-fopenmp-simd", "-DGT_OPENMP_SIMD", "-fopt-info-vec", "-S", "-o", "m.s",
                           "m_kernels0.c"],
                          cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"vectorized using {4 * target.lanes} byte vectors" in done.stderr, done.stderr


@pytest.mark.parametrize("name", TEXTS)
def test_values_stay(name: str, tmp_path: Path) -> None:
    module = loads(TEXTS[name])
    rng = np.random.default_rng(0)
    inputs = {v.hint: rng.normal(3, 3, v.type.shape).astype(np.float32)
              for v in module.graph.inputs}
    target = named("native")
    model = runtime.load(build(passes.run(module, supply={"target": target}), tmp_path / "b",
                               target=target))
    np.testing.assert_allclose(model.run(inputs)["y"], interp.run(module, inputs)["y"], 1e-5, 1e-5)


def test_a_single_number_is_written_into_the_code() -> None:
    target = named("x86-64-v3")
    program = lower(passes.run(loads(PARTS), supply={"target": target}), target, name="m")
    assert not program.weights and "2.81f" in emit(program)["m_kernels0.c"]
