"""Gradients of branches and loops against torch's of the unrolled program; in compiled C too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphtool import dtypes, transforms
from graphtool import ops as o
from graphtool.errors import UnsupportedError
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import trace
from graphtool.ir.verify import verify
from tests.evaluating import run
from tests.lower.compiling import compiled, optimised

F64, Row = dtypes.float64, tuple[Any, ...]
COUNT, FLAG = TensorType(dtypes.int64, ()), TensorType(dtypes.bool_, ())


def f64(*shape: int) -> TensorType:
    return TensorType(F64, shape)


def row(x: Any) -> Any:
    return o.reshape(x, shape=(1, 4))


def step(h: Any, x: Any, w: Any) -> Any:
    return o.tanh(o.reshape(o.matmul(row(h), w), shape=(4,)) + x)


def total(x: Any) -> Any:
    return o.reshape(o.reduce_sum(x, axes=(0,)), shape=())


# ---- programs, and the same unrolled in torch --------------------------------------------------

def branch() -> Graph:
    types = [f64(4), f64(4), f64(4, 4)]
    then = trace(lambda x, y, w: (step(x, y, w), o.exp(x)), types)
    orelse = trace(lambda x, y, w: (x * 2.0, o.log(y * y + 1.0)), types)
    return trace(lambda p, x, y, w: o.cond(p, x, y, w, then=then, orelse=orelse),
                 [FLAG, *types])


def branch_torch(p: Any, x: Any, y: Any, w: Any) -> Any:
    return (torch.tanh(x @ w + y), x.exp()) if p else (x * 2, torch.log(y * y + 1))


def recurrent(reverse: bool) -> Graph:
    types = [f64(4), f64(4), f64(4, 4)]

    def cell(h: Any, x: Any, w: Any) -> Any:
        new = step(h, x, w)
        return new, o.reshape(new * x, shape=(2, 2))
    return trace(lambda h, xs, w: o.scan(h, xs, w, body=trace(cell, types), carries=1, xs=1,
                                         length=5, reverse=reverse), [f64(4), f64(5, 4), f64(4, 4)])


def recurrent_torch(reverse: bool) -> Callable[..., Any]:
    def fn(h: Any, xs: Any, w: Any) -> Any:
        ys: list[Any] = []
        for x in reversed(xs) if reverse else xs:
            h = torch.tanh(h @ w + x)
            ys.append((h * x).reshape(2, 2))
        return h, torch.stack(ys[::-1] if reverse else ys)
    return fn


def growing(bound: int | None) -> Graph:
    """Until the sum is large: the trip count depends on the data."""
    types = [f64(4), COUNT, f64(4)]
    cond = trace(lambda x, k, s: o.lt(total(o.abs(x)), 40.0), types)
    body = trace(lambda x, k, s: (x * s + o.sin(x), k + 1), types)
    return trace(lambda x, k, s: o.while_(x, k, s, cond=cond, body=body, carries=2, bound=bound),
                 types)


def growing_torch(x: Any, k: Any, s: Any) -> Any:
    while x.abs().sum() < 40:
        x, k = x * s + torch.sin(x), k + 1
    return x, k


def nested() -> Graph:
    """Each iteration of a scan branches; one side is a loop that reads what stands outside."""
    types = [COUNT, f64(4), f64(4, 4)]
    cond = trace(lambda k, x, w: o.lt(k, 3), types)
    more = trace(lambda k, x, w: (k + 1, step(x, x, w)), types)
    side = [f64(4), COUNT, f64(4, 4)]
    then = trace(lambda h, k, w: o.while_(k, h, w, cond=cond, body=more, carries=2, bound=4)[1],
                 side)
    orelse = trace(lambda h, k, w: o.neg(h), side)

    def cell(h: Any, x: Any, k: Any, w: Any) -> Any:
        (new,) = o.cond(o.gt(total(x), 0.0), h + x, k, w, then=then, orelse=orelse)
        return new, new * x
    body = trace(cell, [f64(4), f64(4), COUNT, f64(4, 4)])
    return trace(lambda h, xs, k, w: o.scan(h, xs, k, w, body=body, carries=1, xs=1, length=5),
                 [f64(4), f64(5, 4), COUNT, f64(4, 4)])


def nested_torch(h: Any, xs: Any, k: Any, w: Any) -> Any:
    ys = []
    for x in xs:
        h = h + x
        if x.sum() > 0:
            for _ in range(int(k), 3):
                h = torch.tanh(h @ w + h)
        else:
            h = -h
        ys.append(h * x)
    return h, torch.stack(ys)


def number(k: Any) -> Any:
    return np.asarray(k)


X, W = np.linspace(-1, 1, 20).reshape(5, 4) ** 3, np.linspace(-0.5, 0.7, 16).reshape(4, 4)
MIXED = X[:, ::-1] * np.array([1, -1, 1, -1, 1])[:, None] + 0.2
PROGRAMS: dict[str, tuple[Graph, Callable[..., Any], Row]] = {
    "then": (branch(), branch_torch, (number(True), X[1], X[0], W)),
    "else": (branch(), branch_torch, (number(False), X[1], X[0], W)),
    "scan": (recurrent(False), recurrent_torch(False), (X[0], X, W)),
    "scan reversed": (recurrent(True), recurrent_torch(True), (X[0], X, W)),
    "while": (growing(32), growing_torch, (X[4], number(0), X[4] + 1.5)),
    "while of no iteration": (growing(3), growing_torch, (X[4] + 90, number(0), X[4] + 1.5)),
    "nested": (nested(), nested_torch, (X[0], MIXED, number(1), W)),
}
every_program = pytest.mark.parametrize("name", PROGRAMS)


def floats(values: Any) -> list[int]:
    return [i for i, v in enumerate(values) if v.type.dtype is F64]


def expected(name: str, order: int) -> tuple[Graph, list[Any], list[Any]]:
    """The graph of gradients (of gradients), what it is run on, and torch's answer."""
    graph, fn, given = PROGRAMS[name]
    rng, arrays, at = np.random.default_rng(3), list(given), floats(graph.inputs)
    leaves = [torch.tensor(x, requires_grad=i in at) for i, x in enumerate(given)]
    wanted = [t for t in fn(*leaves) if t.requires_grad or t.dtype is torch.float64]
    for _ in range(order):
        joint = transforms.vjp(graph, [graph.inputs[i] for i in at])
        verify(joint)
        count = len(graph.outputs)
        cotangents = [rng.normal(size=v.type.shape) for v in joint.inputs[len(arrays):]]
        graph = Graph(joint.inputs, joint.nodes, joint.outputs[count:])
        arrays += cotangents
        found = torch.autograd.grad(
            [t for t in wanted if t.requires_grad], [leaves[i] for i in at],
            [torch.tensor(c) for c, t in zip(cotangents, wanted, strict=True) if t.requires_grad],
            create_graph=True, allow_unused=True)
        wanted = [torch.zeros_like(leaves[i]) if g is None else g
                  for i, g in zip(at, found, strict=True)]
    return graph, arrays, [w.detach().numpy() for w in wanted]


@every_program
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_torchs(name: str, order: int) -> None:
    graph, arrays, wanted = expected(name, order)
    for a, b in zip(run(graph, arrays), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_gradients_in_compiled_code(tmp_path: Path) -> None:
    """All programs side by side in one module, first and second order."""
    inputs, outputs, nodes, given, wanted = [], [], [], {}, []
    for name in PROGRAMS:
        for order in (1, 2) if name in ("scan", "while", "nested") else (1,):
            graph, arrays, answer = expected(name, order)
            tag = f"{name}.{order}".replace(" ", "_")
            renamed = trace(lambda *xs, g=graph: inlined(g, xs), [v.type for v in graph.inputs],
                            [f"{tag}.{i}" for i in range(len(arrays))])
            inputs += renamed.inputs
            outputs += renamed.outputs
            nodes += renamed.nodes
            given |= {v.hint: x for v, x in zip(renamed.inputs, arrays, strict=True)}
            wanted += answer
    module = Module(Graph(tuple(inputs), tuple(nodes), tuple(outputs)),
                    tuple(f"y{i}" for i in range(len(outputs))))
    got = compiled(optimised(module), tmp_path / "b")(**given)
    for a, b in zip(got.values(), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def inlined(graph: Graph, xs: Any) -> Any:
    from graphtool.ir.replay import inline
    return inline(xs[0].builder, graph, xs)


def test_loops_stay_loops() -> None:
    graph = recurrent(False)
    joint = transforms.vjp(graph, graph.inputs)
    assert [n.op.name for n in joint.nodes].count("scan") == 2
    assert len(joint.nodes) < 8


def test_a_scan_that_gives_its_carries_is_not_made_larger() -> None:
    body = trace(lambda h, x: (o.tanh(h * x), h), [f64(4), f64(4)])
    graph = trace(lambda h, xs: o.scan(h, xs, body=body, carries=1, xs=1, length=5),
                  [f64(4), f64(5, 4)])
    assert transforms.expand(graph, graph.inputs) is graph


def test_only_carries_that_are_needed_are_kept() -> None:
    """A sum needs nothing of its carry to go back."""
    body = trace(lambda h, k, x: (h + x, k + 1), [f64(4), COUNT, f64(4)])
    graph = trace(lambda h, k, xs: o.scan(h, k, xs, body=body, carries=2, xs=1, length=5),
                  [f64(4), COUNT, f64(5, 4)])
    assert transforms.expand(graph, [graph.inputs[0], graph.inputs[2]]) is graph


def test_a_bound_ends_a_loop() -> None:
    x, s = X[4], X[4] + 1.5
    assert run(growing(2), [x, number(0), s])[1] == 2
    scanned = transforms.expand(growing(2), growing(2).inputs[:0])
    assert scanned.nodes[-1].op.name == "while"  # nothing is differentiated


def test_a_bound_ends_a_compiled_loop(tmp_path: Path) -> None:
    module = Module(growing(2), ("x", "k"))
    model = compiled(optimised(module), tmp_path / "b")
    given = {"x0": X[4], "x1": number(0), "x2": X[4] + 1.5}
    assert model(**given)["k"] == 2


def test_a_loop_without_a_bound_is_named() -> None:
    graph = growing(None)
    with pytest.raises(UnsupportedError, match="--bound") as error:
        transforms.grad(graph, 0, graph.inputs[:1])
    assert error.value.code == "GT0619" and "1 × while" in str(error.value)
    transforms.grad(bounded := transforms.bounded(graph, 8), 0, bounded.inputs[:1])


def test_parameters_inside_regions_are_lifted() -> None:
    def cell(h: Any, x: Any) -> Any:
        w = h.builder.constant(W, "w", param=True)
        return step(h, x, w), h
    body = trace(cell, [f64(4), f64(4)])
    graph = trace(lambda h, xs: o.scan(h, xs, body=body, carries=1, xs=1, length=5),
                  [f64(4), f64(5, 4)])
    flat = transforms.lifted(graph)
    (w,) = [n.outputs[0] for n in flat.nodes if n.op.name == "constant"]
    verify(flat)
    assert w.hint == "w"
    wanted = recurrent_torch(False)(*map(torch.tensor, (X[0], X)), t := torch.tensor(
        W, requires_grad=True))[0].sum()
    wanted.backward()
    got = run(transforms.grad(flat, 0, [w]), [X[0], X])[-1]
    np.testing.assert_allclose(got, t.grad.numpy(), rtol=1e-12)
