"""What tests of compiled code share: many cases in one module, built, run and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from graphtool import dtypes, passes
from graphtool.compile.as_is import build
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.op import OPS, complete_attrs
from graphtool.loops.program import Program
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import Target
from tests.cases import Case, arrays

Array = np.ndarray[Any, Any]


def merged(cases: Sequence[Case], seed: int = 0,
           params: bool = False) -> tuple[Module, dict[str, Array]]:
    """One graph with the node of every case side by side, and its inputs.

    With `params`, all operands of a case but the first are constants of the graph.
    """
    inputs: dict[str, Array] = {}
    values: list[Value] = []
    nodes: list[Node] = []
    names: list[str] = []
    for case in cases:
        operands: list[Any] = []
        for n, x in enumerate(arrays(case, seed)):
            if isinstance(x, np.ndarray) and params and n:
                nodes.append(constant(x, f"{case.name}:{n}"))
                x = nodes[-1].outputs[0]
            elif isinstance(x, np.ndarray):
                v = Value(TensorType(dtypes.of_numpy(x.dtype), x.shape), f"{case.name}:{n}")
                inputs[v.hint] = x
                values.append(v)
                x = v
            operands.append(x)
        attrs = complete_attrs(case.op, case.attrs)
        out = case.op.infer(*(x.type if isinstance(x, Value) else x for x in operands), **attrs)
        outs = tuple(Value(t, f"{case.name}={n}")
                     for n, t in enumerate(out if isinstance(out, tuple) else (out,)))
        nodes.append(Node(case.op, tuple(operands), attrs, outs, case.name))
        names += [v.hint for v in outs]
    outputs = tuple(v for n in nodes for v in n.outputs if n.op.name != "constant")
    return Module(Graph(tuple(values), tuple(nodes), outputs), tuple(names)), inputs


def constant(x: Array, hint: str) -> Node:
    w = weight(np.asarray(x, order="C"))
    op = OPS["constant"]
    return Node(op, (), complete_attrs(op, {"data": w}),
                (Value(TensorType(w.dtype, w.shape), hint),))


def compiled(module: Module, path: Path, *, eager: bool = False, **options: Any) -> runtime.Model:
    """The module, as it is, built under `path` and loaded; its program is one that a file can hold.

    With `eager`, threads share even the smallest work, so that a missing barrier shows, and in
    as many pieces as there can be.
    """
    with ExitStack() as stack:
        stack.enter_context(patch("graphtool.compile.lowering.lower", _verified))
        if eager:
            stack.enter_context(patch("graphtool.lower.kernel.SERIAL_BELOW", 1))
            stack.enter_context(patch("graphtool.emit.driver.parallel_work", lambda _: (1000, 1)))
            stack.enter_context(patch("graphtool.emit.shares.LEAST_WORK", 1))
        return runtime.load(build(module, path, jobs=2, **options))


def _verified(*args: Any, **options: Any) -> Program:
    program = lower(*args, **options)
    verify(program)
    return program


def optimised(module: Module, target: Target | None = None) -> Module:
    """After the default passes, with kernels chosen for the target."""
    march = target.march if target else "native"
    return passes.run(module, None, supply={"march": march})


def faults(got: Mapping[str, Array], want: Mapping[str, Array], rtol: float = 2e-5,
           atol: float = 2e-5) -> list[str]:
    """The outputs that differ, each with how much; NaN equals NaN."""
    out = []
    for name, w in want.items():
        g = got[name]
        if g.dtype != w.dtype or g.shape != w.shape:
            out.append(f"{name}: {g.dtype}{g.shape}, {w.dtype}{w.shape} expected")
            continue
        d = dtypes.of_numpy(w.dtype)
        if not d.is_float:
            bad = g != w
        else:
            a, b = g.astype(np.float64), w.astype(np.float64)
            scale = {64: 1e-9, 32: 1.0}.get(d.bits, 500.0)
            with np.errstate(all="ignore"):
                bad = ~np.isclose(a, b, rtol=rtol * scale, atol=atol * scale, equal_nan=True)
        if np.any(bad):
            at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(bad)))
            out.append(f"{name} at {at}: {np.atleast_1d(g)[at]}, {np.atleast_1d(w)[at]} expected")
    return out
