"""gcc makes vectors of every loop in epilogues of bytes.

One that it cannot is ten times slower, which no other test would notice.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from tests.passes.test_integer import again, weights

RNG = np.random.default_rng(2)
WIDE = RNG.integers(-127, 128, (64, 64), dtype=np.int8)
FILTERS = RNG.integers(-127, 128, (64, 64, 1, 1), dtype=np.int8)
ROWS, IMAGE = TensorType(dtypes.float32, (128, 64)), TensorType(dtypes.float32, (1, 64, 14, 14))


def dense(x: Any) -> Any:
    return o.linear(x, weights(x, WIDE, 0.01), x.builder.constant(
        RNG.normal(size=64).astype(np.float32)))


def pointwise(x: Any) -> Any:
    return o.conv(x, weights(x, FILTERS, 0.01))


def residual(product: Any) -> Any:
    """A sum of two quantised numbers, as residual networks have it."""
    def block(x: Any) -> Any:
        x = again(product(again(x)), 0.05, 120)
        return again(o.relu(again(product(x), 0.05, 139) + x), 0.04, 0)
    return block


def activated(x: Any) -> Any:
    y = again(dense(again(x)), 0.05, 128)
    return again(y * again(o.sigmoid(y), 1 / 255, 0), 0.03, 9)


def normalised(x: Any) -> Any:
    x = again(x)
    return again(o.layer_norm(again(dense(x), 0.05, 101) + x, None, None, axes=(1,)), 0.02, 121)


@pytest.mark.part(3)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4", "sapphirerapids"])
@pytest.mark.parametrize("block", [
    (residual(dense), ROWS), (residual(pointwise), IMAGE), (activated, ROWS), (normalised, ROWS)],
    ids=["residual", "pointwise", "activated", "normalised"])
def test_loops_are_vectors(block: tuple[Any, TensorType], march: str, tmp_path: Path) -> None:
    function, kind = block
    module = passes.run(Module(trace(function, [kind], ["x"]), ("y",)), supply={"march": march})
    build(module, tmp_path / "b", target=march)
    loops = 0
    for source in (tmp_path / "b").glob("*_kernels*.c"):
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-O3", f"-march={march}", "-fno-math-errno", "-fopenmp",
             "-fopt-info-vec", "-c", source.name, "-o", "/dev/null"], cwd=source.parent,
            capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made = {int(n) for n in re.findall(
            rf"^{source.name}:(\d+):\d+: optimized: loop vectorized", done.stderr, re.MULTILINE)}
        inside = False
        lines = source.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            inside = "_epilogue(" in line or (inside and line != "}")
            copies = inside and lines[number + 1].endswith("= acc[j0];")  # by memcpy
            if inside and line.strip() == "GT_SIMD" and not copies:
                loops += 1
                assert made & set(range(number, number + 4)), f"{source.name}:{number}"
    assert loops
