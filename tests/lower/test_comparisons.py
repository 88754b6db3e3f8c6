"""Comparisons that their operands or types decide: right, and nothing for a compiler to warn of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import interp, passes
from graphtool.api.arguments import rules
from graphtool.dtypes import dtype
from graphtool.emit.c import emit
from graphtool.ir.serial import loads
from graphtool.loops import interp as programs
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.target import named

SIGNS = ("lt", "le", "eq", "ne", "gt", "ge")


@pytest.mark.parametrize("kind", ["i8", "u4", "u8", "u16", "i32", "u32", "i64", "u64", "f32"])
def test_what_types_decide(kind: str, tmp_path: Path) -> None:
    t = dtype(kind)
    ends = [str(n) for n in (t.low, t.high)] if t.is_integer else ["0"]
    made = [f"{sign}(x, {b})" for sign in SIGNS for b in ("x", *ends)]
    made += [f"{sign}({b}, x)" for sign in SIGNS for b in ends]
    module = loads("\n".join([f"input x: {kind}[3]", *(
        f"y{i}: bool[3] = {text}" for i, text in enumerate(made)),
        "return " + ", ".join(f"y{i}" for i in range(len(made)))]))
    x = np.array([int(ends[0]), 3, int(ends[-1])] if t.is_integer else [0, 1, np.nan], t.numpy)
    want = interp.run(module, {"x": x})
    program = lower(module, named("x86-64"), name="m")
    for name, got in programs.run(program, {"x": x}, {}).items():
        np.testing.assert_array_equal(got, want[name], made[int(name[1:])])
    assert warnings(program, tmp_path) == ""


def test_a_product_that_nothing_depends_on(tmp_path: Path) -> None:
    """A row of the product is compared with itself: its sums are never read."""
    module = loads("""
input a: f32[2,8,1,3]
input b: f32[3,1]
c: f32[2,8,1,1] = matmul(a, b)
d: f32[2,8,1] = reshape(c, shape=(2, 8, 1))
e: bool[2,8,1] = lt(d, d)
return e
""")
    goal = named("x86-64-v3")
    module = passes.run(module, supply={
        "target": goal, "rules": rules("strict", "generated", None)})
    program = lower(module, goal, name="m")
    assert any("const float *restrict acc" in text for text in emit(program).values())
    assert warnings(program, tmp_path) == ""


def warnings(program: Program, folder: Path) -> str:
    """What gcc says of the program's kernels."""
    for file, text in emit(program).items():
        (folder / file).write_text(text)
    done = subprocess.run(["gcc", "-std=gnu11", "-mavx2", "-mfma", "-Wall", "-Wextra", "-Werror",
                           "-fsyntax-only", *(map(str, sorted(folder.glob("m_kernels*.c"))))],
                          capture_output=True, text=True, check=False)
    return done.stderr
