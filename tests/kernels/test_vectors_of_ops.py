"""The loops of ops and of their gradients become vector instructions: reductions, windows, gathers,
scatters, products, norms, losses. What falls through is slower by a factor.

All cases are compiled as one text. A kernel has vectors if it, or what it calls, has an instruction
on a whole vector, or calls memcpy. Kernels that compute nothing are left out, but in cases of ops
that move elements: they write zeros around images, or copy elements that lie apart.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphtool import ops as o
from graphtool import passes, transforms
from graphtool.dtypes import dtype
from graphtool.emit.c import emit
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops.ir import Apply, Const, Expr, Load, Store
from graphtool.loops.program import Kernel, Program
from graphtool.loops.walk import statements
from graphtool.lower import lower
from graphtool.native.compiler import find
from graphtool.target import Target, named
from tests.kernels.test_vectors import PACKED

ROWS, BLOCK = "f32[64,96]", "f32[8,32,24]"
IMAGE, FIRST = "f32[2,16,16,32]", "f32[2,32,16,16]"  # channels last, channels first
LABELS, INDICES = "i64[64]", "i64[64,1]"
Case = tuple[Callable[..., Any], tuple[str, ...]]


def each(*names: str, **attrs: Any) -> dict[str, Case]:
    """A case for each op over rows, with these attributes."""
    return {name: (lambda x, name=name: getattr(o, name)(x, **attrs), (ROWS,)) for name in names}


def along(name: str, axes: dict[str, tuple[int, ...]], shape: str) -> dict[str, Case]:
    """A reduction along each of several axes."""
    return {f"{name}_{k}": (lambda x, a=a: getattr(o, name)(x, axes=a), (shape,))
            for k, a in axes.items()}


def pool(kind: str, size: int) -> Case:
    """Windows over every second pixel, channels last."""
    edge = ((0, 0), ((size - 1) // 2,) * 2, ((size - 1) // 2,) * 2, (0, 0))
    return lambda x: o.reduce_window(x, kind=kind, window=(1, size, size, 1), padding=edge,
                                     strides=(1, 2, 2, 1)), (IMAGE,)


def convolution(x: str, w: str, **attrs: Any) -> Case:
    return lambda x, w: o.conv(x, w, **attrs), (x, w)


PAIR, BOTH = ((1, 1), (1, 1)), {"last": (1,), "first": (0,)}
LOOPS: dict[str, Case] = {
    **along("reduce_sum", {**BOTH, "all": (0, 1)}, ROWS),
    **along("reduce_sum", {"middle": (1,), "outer": (0, 2)}, BLOCK),
    **along("reduce_sum", {"pixels": (0, 1, 2), "image": (1, 2)}, IMAGE),
    **along("reduce_max", BOTH, ROWS), **along("reduce_min", BOTH, ROWS),
    **along("reduce_prod", BOTH, ROWS), **along("reduce_var", BOTH, ROWS),
    **along("logsumexp", BOTH, ROWS), **along("norm", BOTH, ROWS),
    **each("softmax", "log_softmax", axis=1),
    "softmax_first": (lambda x: o.softmax(x, axis=0), (ROWS,)),
    **each("relu", "silu", "softplus", "elu", "selu", "leaky_relu", "hard_swish", "hard_sigmoid",
           "hardtanh", "mish"),
    "clamp": (lambda x: o.clamp(x, 0.0, 6.0), (ROWS,)),
    "gelu": (lambda x: o.gelu(x, approximate="tanh"), (ROWS,)),
    "layer_norm": (lambda x, w, b: o.layer_norm(x, w, b, axes=(1,)),
                   (ROWS, "f32[96]", "f32[96]")),
    "rms_norm": (lambda x, w: o.rms_norm(x, w, axes=(1,)), (ROWS, "f32[96]")),
    "group_norm": (lambda x: o.group_norm(x, groups=4), (FIRST,)),
    "batch_norm": (lambda x, w, b: o.batch_norm_training(x, w, b)[0],
                   (FIRST, "f32[32]", "f32[32]")),
    "max_pool": pool("max", 2), "overlapping": pool("max", 3), "sum_pool": pool("sum", 2),
    "embedding": (o.embedding, (ROWS, LABELS)),
    "gather_rows": (lambda x, i: o.gather(x, i, axes=(0,)), (ROWS, INDICES)),
    "gather_columns": (lambda x, i: o.gather(x, i, axes=(1,)), (ROWS, INDICES)),
    "cross_entropy": (o.cross_entropy, (ROWS, LABELS)),
    "mse_loss": (o.mse_loss, (ROWS, ROWS)),
    "cumulative_first": (lambda x: o.cumulative(x, kind="sum", axis=0), (ROWS,)),
    "cumulative_last": (lambda x: o.cumulative(x, kind="sum", axis=1), (ROWS,)),
    "arg_max_first": (lambda x: o.arg_reduce(x, kind="max", axis=0), (ROWS,)),
    "arg_max_last": (lambda x: o.arg_reduce(x, kind="max", axis=1), (ROWS,)),
    "transposition": (lambda x: o.transpose(x, perm=(1, 0)), (ROWS,)),
    "reverse": (lambda x: o.reverse(x, axes=(1,)), (ROWS,)),
    "slice": (lambda x: o.slice(x, start=(1, 1), limit=(60, 90), strides=(1, 1)), (ROWS,)),
    "concat": (lambda a, b: o.concat(a, b, axis=1), (ROWS, ROWS)),
    "halves": (lambda x: o.cast(o.exp(o.cast(x, dtype=dtype("f16"))), dtype=dtype("f32")),
               (ROWS,)),
}
PRODUCTS: dict[str, Case] = {
    "conv": convolution(FIRST, "f32[32,32,3,3]", padding=PAIR),
    "strided": convolution(FIRST, "f32[32,32,3,3]", padding=PAIR, strides=(2, 2)),
    "grouped": convolution(FIRST, "f32[32,8,3,3]", padding=PAIR, groups=4),
    "depthwise": convolution(FIRST, "f32[32,1,3,3]", padding=PAIR, groups=32),
    "line": convolution("f32[2,32,64]", "f32[32,32,5]", padding=((2, 2),)),
    "line_of_each": convolution("f32[2,32,64]", "f32[32,1,4]", padding=((3, 0),), groups=32),
    "volume": convolution("f32[2,8,8,8,8]", "f32[16,8,3,3,3]"),
    "transposed": convolution(FIRST, "f32[32,32,4,4]", lhs_dilation=(2, 2), absent=True,
                              padding=((2, 2), (2, 2))),
    "matmul": (o.matmul, (ROWS, "f32[96,64]")),
    "batched": (o.matmul, ("f32[4,16,24]", "f32[4,24,32]")),
    "row": (o.matmul, ("f32[1,96]", "f32[96,64]")),
    "linear": (o.linear, (ROWS, "f32[48,96]", "f32[48]")),
    "attention": (o.attention, ("f32[1,2,32,16]",) * 3),
}
MOVING = {"embedding", "gather_rows", "slice", "concat"}
ORDER = "each element needs the one before it"
SCALAR = {
    "cumulative_last": ORDER,
    "reduce_prod_last": ORDER + ": products of all elements but one, from both ends",
    "reduce_prod_first": ORDER + ": products of all elements but one, from both ends",
    "cross_entropy": "the mean over rows of one gathered element each",
}
FUNCTION = re.compile(r"^[0-9a-f]+ <([\w.]+)>:$", re.M)
CALLED = re.compile(r"\b(?:call|jmp) +[0-9a-f]+ <([\w.]+)[+>]")
COPIES = re.compile(r"R_X86_64_PL\w+\s+mem(cpy|move)")

SLOW = pytest.mark.slow
pytestmark = pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is missing")


def typed(text: str) -> TensorType:
    short, _, shape = text.rstrip("]").partition("[")
    return TensorType(dtype(short), tuple(map(int, shape.split(","))))


def program(name: str, case: Case, target: Target) -> Program:
    """The case and the gradients of all its floats, lowered."""
    function, types = case
    graph = trace(function, [typed(t) for t in types])
    floats = [v for v in graph.inputs if v.type.dtype.is_float]
    if graph.outputs[0].type.dtype.is_float:
        graph = transforms.vjp(graph, floats)
    module = Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))))
    return lower(passes.run(module, supply={"target": target}, verify=False), target,
                 name=f"of_{name}")


def moved(e: Expr) -> bool:
    """Whether it is an element of an operand, or what fills up a row."""
    match e:
        case Apply("select", (_, x, y)):
            return moved(x) and moved(y)
    return isinstance(e, Load | Const)


def judged(case: str, p: Program) -> set[str]:
    """The functions of kernels that compute something; of all that read, if the op moves."""
    def counts(k: Kernel) -> bool:
        stored = [s.value for s in statements(k.body) if isinstance(s, Store)]
        moves = bool(stored) and all(map(moved, stored))
        return any(x.const for x in k.params) and (case in MOVING or not moves)
    return {f"{p.name}_{k.name}" for k in p.kernels if counts(k)}


def with_vectors(texts: list[str], folder: Path, target: Target) -> set[str]:
    """The functions that have vector instructions, or call one that has."""
    (folder / "all.c").write_text("".join(f'#include "{name}"\n' for name in texts))
    compiler = find(None, target)
    subprocess.run([*compiler.command, *compiler.flags, "-c", "all.c"], cwd=folder, check=True,
                   capture_output=True)
    dump = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", "all.o"], cwd=folder,
                          capture_output=True, text=True, check=True).stdout
    _, *parts = FUNCTION.split(dump)
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    found = {k for k, body in bodies.items() if PACKED.search(body) or COPIES.search(body)}
    callers = {k: set(CALLED.findall(body)) for k, body in bodies.items()}
    while more := {k for k, called in callers.items() if called & found} - found:
        found |= more
    return found


@pytest.mark.parametrize(("cases", "march"), [
    pytest.param(cases, march, marks=[] if (name, march) == ("loops", "x86-64-v3") else SLOW,
                 id=f"{name}-{march}")
    for name, cases in (("loops", LOOPS), ("products", PRODUCTS))
    for march in ("x86-64-v3", "x86-64-v4")])
def test_ops_and_their_gradients_are_vectorised(cases: dict[str, Case], march: str,
                                                tmp_path: Path) -> None:
    target, kernels, texts = named(march, 1), dict[str, str](), []
    for name, case in cases.items():
        p = program(name, case, target)
        kernels |= dict.fromkeys(judged(name, p), name)
        for file, text in emit(p).items():
            (tmp_path / file).write_text(text)
            texts += [file] if re.search(r"_kernels\d+\.c$", file) else []
    found = with_vectors(texts, tmp_path, target)
    scalar = {case: kernel for kernel, case in kernels.items() if kernel not in found}
    assert len(kernels) > len(cases) and scalar.keys() == SCALAR.keys() & cases.keys(), scalar


def test_the_exceptions_are_cases() -> None:
    assert SCALAR.keys() | MOVING <= LOOPS.keys() | PRODUCTS.keys()
