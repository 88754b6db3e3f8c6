"""Small modules whose C is looked at: as text, under strict compilers, under sanitizers."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Symbol, symbol
from tests.cases import CASES
from tests.lower.compiling import merged
from tests.lower.test_graphs import STATIC, SYMBOLIC, side_by_side

B = symbol("B", 1, 64)


def module(fn: Any, *shapes: Any, names: list[str] | None = None, march: str = "x86-64-v3",
           dtype: Any = dtypes.float32) -> Module:
    graph = trace(fn, [TensorType(dtype, s) for s in shapes], names)
    outputs = tuple(f"y{i}" for i in range(len(graph.outputs)))
    symbols = {"B": Symbol("B", 1, 64)} if any(B in s for s in shapes) else {}
    return passes.run(Module(graph, outputs, symbols), None, supply={"march": march})


def weights(x: Any, *shape: int) -> Any:
    return x.builder.constant(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def softmax(march: str = "x86-64-v3") -> Module:
    return module(lambda x: o.softmax(x * 0.5, axis=1), (B, 1000), march=march)


def layer(march: str = "x86-64-v3") -> Module:
    return module(lambda x: o.gelu(o.linear(x, weights(x, 24, 16), weights(x, 24))), (B, 16),
                  march=march)


def moves(march: str = "x86-64-v3") -> Module:
    def fn(x: Any, y: Any) -> Any:
        both = o.concat(o.tanh(x), o.transpose(y, perm=(1, 0)), axis=0)
        return both, o.reduce_sum(o.pad(x, lo=(1, 0), hi=(0, 2), value=1.0), axes=(0,))
    return module(fn, (3, 40), (40, 2), march=march)


def mixture(march: str = "native", step: int = 9, start: int = 0, each: int = 1
            ) -> tuple[Module, Any]:
    """A share of the op cases in one module, after the default passes, with its inputs.

    All ops with a kernel of their own are in it: with every `each`-th of their cases.
    """
    whole = [c for c in CASES if c.op.lowering is Lowering.STATEMENTS]
    some = whole[::each]
    some += [c for c in whole if c.op not in {s.op for s in some}]
    m, inputs = merged([*(c for c in CASES[start::step] if c not in whole), *some])
    return passes.run(m, None, supply={"march": march}), inputs


def awkward(march: str = "native", symbolic: bool = False) -> Module:
    m = side_by_side(SYMBOLIC if symbolic else STATIC)
    return passes.run(m, None, supply={"march": march})


GOLDEN = {"softmax": softmax, "layer": layer, "moves": moves}
