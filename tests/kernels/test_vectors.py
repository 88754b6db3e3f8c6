"""Every elementwise op becomes vector instructions: what falls through is slower by a factor."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphtool import ops as o
from graphtool import passes
from graphtool.dtypes import float32
from graphtool.emit.c import emit
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.native.compiler import find
from graphtool.scalars.table import TABLE
from graphtool.target import named

LIBM = "the C library computes it, with branches"
SERIES = "a series of our own, whose length depends on the number"
SCALAR = {
    "rem": LIBM + ": each step of the exact remainder depends on the one before",
    "mod": LIBM + ": each step of the exact remainder depends on the one before",
    "atan2": LIBM, "erfc": LIBM, "lgamma": LIBM, "next_after": LIBM,
    "erf_inv": SERIES, "digamma": SERIES, "polygamma": SERIES, "igamma": SERIES,
    "igammac": SERIES, "i0e": SERIES, "i1e": SERIES,
}
WORDS = ["celu", "elu", "gelu", "leaky_relu", "mish", "relu", "selu", "silu", "softplus"]
FLOAT = {row.name: row.arity for row in TABLE if "float" in row.kinds and row.arity < 3}
ARITY = FLOAT | dict.fromkeys(WORDS, 1)
PACKED = re.compile(r"\bv\w+p[sd] .*%[yz]mm|\bvp\w+ .*%[yz]mm|\bvmov\w+ .*%[yz]mm")

pytestmark = pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is missing")


def _source(fn: Callable[..., Any], arity: int, name: str, march: str) -> dict[str, str]:
    """The C of an op over two vectors of 4096 floats."""
    graph = trace(fn, [TensorType(float32, (4096,))] * arity)
    target = named(march, 1)
    module = passes.run(Module(graph, ("y",)), supply={"target": target}, verify=False)
    return emit(lower(module, target, name=name))


def _vectors(files: dict[str, str], folder: Path, march: str) -> int:
    """How many vector instructions the kernels have, by the compiler and flags of a build."""
    compiler = find(None, named(march))
    for file, text in files.items():
        (folder / file).write_text(text)
    kernels = [f for f in files if re.search(r"_kernels\d+\.c$", f)]
    subprocess.run([*compiler.command, *compiler.flags, "-c", *kernels], cwd=folder, check=True,
                   capture_output=True)
    objects = [f.replace(".c", ".o") for f in kernels]
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *objects], cwd=folder,
                          capture_output=True, text=True, check=True).stdout
    return len(PACKED.findall(text))


@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", sorted(ARITY))
def test_an_elementwise_op_is_vectorised(name: str, march: str, tmp_path: Path) -> None:
    files = _source(lambda *x: getattr(o, name)(*x), ARITY[name], name, march)
    assert (_vectors(files, tmp_path, march) > 0) != (name in SCALAR)


def test_the_exceptions_are_ops() -> None:
    assert SCALAR.keys() <= FLOAT.keys()
