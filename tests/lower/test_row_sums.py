"""Means of images are taken in two steps, the first in the kernel that makes the image."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.loops import interp as loops
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named
from tests.passes.pass_samples import module, values


def squeezed(c: int, strides: tuple[int, int], axes: tuple[int, ...], last: bool) -> Any:
    def fn(x: Any) -> Any:
        w = values(x, c, 1, 3, 3)
        y = o.silu(o.conv(x, w, groups=c, strides=strides, padding=((1, 1), (1, 1)),
                          channels_last=last))
        g = o.sigmoid(o.reduce_mean(y, axes=axes))
        return y * g
    return fn


CASES = {  # channels, strides, type of the input, whether channels are last
    "many": (37, (1, 1), "f32[2,9,30,37]", True),
    "few": (5, (2, 2), "f32[1,7,8,5]", True),
    "open": (32, (1, 1), "f32[B,5,6,32]", True),
    "first": (48, (2, 1), "f32[1,48,60,61]", False),
}


def sample(name: str) -> Module:
    c, strides, given, last = CASES[name]
    return module(squeezed(c, strides, (1, 2) if last else (2, 3), last), given)


@pytest.mark.part(4)
@pytest.mark.parametrize("march", ["native", "x86-64-v3", "x86-64", "generic"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_evaluator(name: str, march: str, tmp_path: Path) -> None:
    m = sample(name)
    xs = made_up.random_inputs(m, 0)
    target = named(march, 2)
    built = build(passes.run(m, supply={"target": target}), tmp_path / "b", target=target)
    for key, want in interp.run(m, xs).items():
        one, two = (runtime.load(built, threads=n).run(xs)[key] for n in (1, 2))
        np.testing.assert_allclose(one, want, rtol=2e-4, atol=2e-5)
        np.testing.assert_array_equal(one, two)


@pytest.mark.long
@pytest.mark.parametrize("name", ["many", "first"])
def test_the_interpreter_sums_rows_too(name: str) -> None:
    m = sample(name)
    best = passes.run(m, supply={"target": named("x86-64-v3", 1)})
    program = lower(best, named("x86-64-v3", 1), name="model")
    assert any("SUMS" in str(s) for k in program.kernels for s in k.body)
    xs = made_up.random_inputs(m, 0)
    got = loops.run(program, xs, {w.digest: w for w in collect_all(best.graph)})
    for key, want in interp.run(m, xs).items():
        np.testing.assert_allclose(got[key], want, rtol=2e-4, atol=2e-5)


def test_what_is_not_stored_is_summed_by_itself() -> None:
    m = module(lambda x: o.reduce_mean(o.conv(x, values(x, 8, 1, 3, 3), groups=8,
                                              channels_last=True), axes=(1, 2)), "f32[1,9,9,8]")
    best = passes.run(m)
    assert all(n.op.name != "reduce_sum" for g in best.graph.groups if g.kind == "template"
               for n in g.members)


@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("channels", "stride", "size"), [(32, 1, 112), (96, 2, 112), (144, 2, 56)])
def test_gcc_has_nothing_to_say(channels: int, stride: int, size: int, march: str,
                                tmp_path: Path) -> None:
    """At -O3, without the flags of a build: the sizes are those of efficientnet_b0."""
    target = named(march, 2)
    made = module(squeezed(channels, (stride, stride), (1, 2), True),
                  f"f32[1,{size},{size},{channels}]")
    ready = passes.run(made, None, supply={"target": target})
    for file, text in emit(lower(ready, target, name="m")).items():
        (tmp_path / file).write_text(text)
    for source in sorted(p.name for p in tmp_path.glob("m_kernels*.c")):
        done = subprocess.run(["gcc", "-O3", "-std=gnu11", "-Wall", "-Wextra", "-fopenmp",
                               f"-march={march}", "-S", source, "-o", "out.s"], cwd=tmp_path,
                              capture_output=True, text=True, check=False)
        assert done.stderr == ""
