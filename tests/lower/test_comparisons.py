"""Comparisons that their operands or types decide: right, and nothing for a compiler to warn of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import interp
from graphtool.dtypes import dtype
from graphtool.emit.c import emit
from graphtool.ir.serial import loads
from graphtool.loops import interp as programs
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
    for file, text in emit(program).items():
        (tmp_path / file).write_text(text)
    done = subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           *(str(p) for p in sorted(tmp_path.glob("m_kernels*.c")))],
                          capture_output=True, text=True, check=False)
    assert done.stderr == ""
