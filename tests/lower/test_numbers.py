"""Kernels that differ in numbers only are one; what the structure needs stays a literal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.emit.c import emit
from graphtool.ir.graph import Module
from graphtool.loops import interp as loops
from graphtool.loops import serial
from graphtool.loops.program import runs
from graphtool.lower import lower
from graphtool.target import named
from tests.lower.compiling import compiled
from tests.passes.pass_samples import module

SCALES = (0.3, 0.7, 0.011, 1.9)


def steps(x: Any, scale: float, zero: int) -> Any:
    """x in steps of a scale, as a quantised model writes them."""
    q = o.cast(o.round(x / scale) + float(zero), dtype=dtypes.uint8)
    return o.cast(o.cast(q, dtype=dtypes.int32) - zero, dtype=dtypes.float32) * scale


def layers(*each: tuple[float, int], size: int = 37) -> Module:
    """Layers of one shape, each with its input, its scale and its zero point."""
    def whole(*xs: Any) -> Any:
        return tuple(steps(x, *how) for x, how in zip(xs, each, strict=True))
    return passes.run(module(whole, *[f"f32[3,{size}]"] * len(each)),
                      supply={"target": named("x86-64", 2)})


def test_layers_share_a_kernel() -> None:
    p = lower(layers(*((s, 10 * i + 1) for i, s in enumerate(SCALES))), named("x86-64", 2))
    (kernel,) = p.kernels
    given = {r.numbers for r in runs(p.steps)}
    assert [r.kernel for r in runs(p.steps)] == ["k0"] * 4
    assert len(given) == 4 and {len(g) for g in given} == {len(kernel.numbers)} == {3}
    assert serial.dumps(serial.loads(serial.dumps(p))) == serial.dumps(p)


@pytest.mark.parametrize(("each", "kernels", "numbers"), [
    (((0.3, 128), (0.7, 128)), 1, 1),  # the zero point is a literal, one scale is passed once
    (((0.3, 0), (0.7, 0)), 1, 1),
    (((0.3, 7), (0.3, 7)), 1, 0),
    (((0.3, 128), (0.7, 0)), 2, 0),  # nothing is added to the second
    (((0.3, 128), (0.25, 128), (0.7, 128)), 2, 1),  # 1/4 divides exactly, in another way
])
def test_what_is_passed(each: tuple[tuple[float, int], ...], kernels: int, numbers: int) -> None:
    p = lower(layers(*each), named("x86-64", 2))
    assert (len(p.kernels), max(len(k.numbers) for k in p.kernels)) == (kernels, numbers)


def test_forms_are_those_of_literals() -> None:
    """A number divides by means of its inverse, and its zero point makes no integer."""
    p = lower(layers((0.3, 128), (0.7, 3)), named("x86-64", 2), name="m")
    files = emit(p)
    kernels, driver = files["m_kernels0.c"], files["m.c"]
    assert re.search(r"gt_steps_u8\(gt_over_f32\(.*, num0, over_num0\), -num1\) \* num0", kernels)
    assert "0.3f, 128.0f, 3.3333333f" in driver and "0.7f, 3.0f, 1.4285715f" in driver


def test_other_languages_have_literals() -> None:
    p = lower(layers((0.3, 128), (0.7, 3)), named("cuda", 1))
    assert len(p.kernels) == 2 and not any(k.numbers for k in p.kernels)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "native"])
def test_bits_are_those_of_the_evaluator(target: str, tmp_path: Path) -> None:
    m = layers(*((s, 30 * i + 1) for i, s in enumerate(SCALES)), size=131)
    given = made_up.random_inputs(m, 1)
    for x in given.values():
        x.flat[:4] = np.nan, np.inf, -np.inf, 1e-42
    wanted = interp.run(m, given)
    model = compiled(m, tmp_path / "m", eager=True, target=target)
    results = [loops.run(lower(m, named(target)), given, {})]
    for model.threads in (1, 2):
        results.append(model.run(given))
    for got in results:
        for name, want in wanted.items():
            np.testing.assert_array_equal(got[name], want)
