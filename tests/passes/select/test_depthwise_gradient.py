"""Gradients of depthwise filters by their kernel: values of the evaluator and of torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphtool import dtypes, interp, passes, transforms
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import rules_of
from graphtool.symbolic import Symbol, symbol_of
from graphtool.target import named
from tests.lower.compiling import compiled

CASES = [  # x, window, strides, padding, dilation: more and fewer channels than lanes, edges
    ((2, 33, 9, 10), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    ((3, 5, 12, 11), (5, 3), (2, 2), ((2, 2), (1, 1)), (1, 1)),
    ((1, 70, 14, 15), (7, 7), (1, 2), ((3, 3), (0, 6)), (1, 1)),
    ((2, 16, 20, 17), (3, 3), (1, 1), ((2, 2), (2, 2)), (2, 2)),
    ((2, 40, 8, 8), (2, 29), (3, 1), ((0, 0), (14, 14)), (1, 1)),
    ((2, 48, 7, 7), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((1, 2, 70, 3), (3, 1), (1, 1), ((1, 1), (0, 0)), (1, 1)),
]


def gradients(kind: Any = dtypes.float32, cases: Any = None) -> Module:
    """The gradients w0, w1 … of Σ y·g by the filters of all cases, one beside the other."""
    cases, types = CASES if cases is None else cases, []
    for x, window, *how in cases:
        w = TensorType(kind, (x[1], 1, *window))
        y = trace(lambda x, w, how=how: convolution(x, w, *how), [TensorType(kind, x), w])
        types += [TensorType(kind, x), w, y.outputs[0].type]

    def fn(*xs: Any) -> Any:
        return sum(o.reduce_sum(convolution(x, w, *how) * g, axes=(0, 1, 2, 3))
                   for x, w, g, (_, _, *how) in zip(xs[::3], xs[1::3], xs[2::3], cases,
                                                    strict=True))
    graph = trace(fn, types, [f"{'xwg'[i % 3]}{i // 3}" for i in range(len(types))])
    joint = transforms.vjp(graph, graph.inputs[1::3])
    return Module(joint, ("y", *(f"w{i}" for i in range(len(cases)))))


def convolution(x: Any, w: Any, strides: Any, padding: Any, dilation: Any) -> Any:
    return o.conv(x, w, strides=strides, padding=padding, rhs_dilation=dilation, groups=w.shape[0])


def numbers(module: Module) -> dict[str, Any]:
    """Random numbers; 1 is the gradient of the sum."""
    rng, types = np.random.default_rng(0), {v.hint: v.type for v in module.graph.inputs}
    one = module.graph.inputs[-1].hint
    return {name: (np.ones if name == one else rng.standard_normal)(
        list(map(int, t.shape))).astype(t.dtype.numpy) for name, t in types.items()}


@pytest.mark.parametrize("march", [pytest.param("x86-64", marks=pytest.mark.slow), "x86-64-v3",
                                   "native"])
def test_as_the_evaluator_and_the_same_bits_by_any_threads(march: str, tmp_path: Path) -> None:
    module, target = gradients(), named(march, 3)
    ready = passes.run(module, supply={"target": target})
    names = [n.op.name for n in ready.graph.nodes]
    assert names.count("depthwise_grad") == len(CASES) and "conv" not in names
    xs = numbers(module)
    xs["g6"][0, 0, 5], xs["x5"][0, 9, 0], xs["x0"][:, 7] = np.inf, np.nan, 1e-40
    model = compiled(ready, tmp_path / "b", eager=True, target=target)
    want, found = interp.run(module, xs), {}
    for model.threads in (1, 2, 3):
        ys = model.run(xs)
        found = found or ys
        assert all(ys[k].tobytes() == found[k].tobytes() for k in ys)
    for k in list(want)[1:]:
        np.testing.assert_allclose(found[k], want[k], rtol=2e-5, atol=2e-4, err_msg=k)


@pytest.mark.part(4)
@pytest.mark.parametrize(("kind", "eps"), [
    pytest.param("float32", 1e-5, marks=pytest.mark.slow), ("bfloat16", 2**-8),
    pytest.param("float16", 2**-11, marks=pytest.mark.slow)])
def test_as_torch(kind: str, eps: float, tmp_path: Path) -> None:
    module = gradients(dtypes.dtype(kind))
    xs = numbers(module)
    found = compiled(passes.run(module), tmp_path / "b").run(xs)
    for i, case in enumerate(CASES):
        _, (kh, kw), strides, ((top, bottom), (left, right)), dilation = case
        x, w, g = (torch.from_numpy(xs[f"{v}{i}"].astype(np.float64)) for v in "xwg")
        w.requires_grad_()
        y = torch.nn.functional.conv2d(torch.nn.functional.pad(x, (left, right, top, bottom)), w,
                                       stride=strides, dilation=dilation, groups=x.shape[1])
        y.backward(g)  # type: ignore[no-untyped-call]
        assert w.grad is not None and w.grad.shape[2:] == (kh, kw)
        np.testing.assert_allclose(found[f"w{i}"].astype(np.float64), w.grad.numpy(), rtol=2 * eps,
                                   atol=20 * min(eps, 1e-3))


def test_what_it_leaves_to_loops() -> None:
    """Sums in order, and float64, whose products no kernel makes."""
    strict = passes.run(gradients(), supply={"rules": rules_of("strict")})
    wide = passes.run(gradients(dtypes.float64))
    assert all("depthwise_grad" not in [n.op.name for n in m.graph.nodes] for m in (strict, wide))


def test_the_batch_may_be_open() -> None:
    batch = Symbol("B", 1, None)
    (_, *image), *how = CASES[0]
    module = passes.run(Module(gradients(cases=[((symbol_of(batch), *image), *how)]).graph,
                               ("y", "w0"), {"B": batch}))
    names = [n.op.name for n in module.graph.nodes]
    assert "conv" not in names and names.count("depthwise_grad") == 1
