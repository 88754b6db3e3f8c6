"""A function of tensors comes in as a model does; one without arguments makes a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphtool import interp
from graphtool.errors import UnsupportedError
from graphtool.importers import import_source
from graphtool.ir.graph import is_parameter
from graphtool.ir.run_sizes import all_nodes
from graphtool.verify.imports import check_import
from tests.importers.torch import pure_functions
from tests.importers.torch.agreement import agree

SOURCE = Path(pure_functions.__file__)
WEIGHTS = ["w:f32[4,3]", "b:f32[3]", "x:f32[5,4]", "y:i64[5]"]
FUNCTIONS = {"loss_fn": (WEIGHTS, "log_softmax"), "clipped": (["x:f32[4]"], "cond"),
             "root": (["a:f32[]"], "while"), "dropped": (["x:f32[4]"], "uniform"),
             "smoothed": (["xs:f32[6,3]", "decay:f32[]"], "scan"),
             "sgd": (["w:f32[4,3]", "m:f32[4,3]", *WEIGHTS[1:], "lr:f32[]"], "matmul")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_a_model(name: str) -> None:
    inputs, op = FUNCTIONS[name]
    source = f"{SOURCE}:{name}"
    module = import_source(source, inputs=inputs)
    assert [v.hint for v in module.graph.inputs][:len(inputs)] == [
        i.partition(":")[0] for i in inputs]
    assert op in {n.op.name for n in all_nodes(module.graph)}
    assert not any(map(is_parameter, module.graph.nodes))
    assert check_import(source, module, inputs).ok


def test_the_key_goes_in_and_out() -> None:
    module = import_source(f"{SOURCE}:dropped", inputs=["x:f32[64]"])
    assert module.output_names[-1] == "rng"
    run = lambda key: interp.run(module, {"x": np.ones(64, np.float32), "rng": key})  # noqa: E731
    first, again, other = (run(np.array(k, np.uint64)) for k in ([1, 2], [1, 2], [3, 4]))
    np.testing.assert_array_equal(first["output"], again["output"])
    assert not np.array_equal(first["output"], other["output"])
    assert not np.array_equal(first["output"], run(first["rng"])["output"])


def test_steps_are_those_of_torchs_optimizer() -> None:
    inputs, _ = FUNCTIONS["sgd"]
    step = import_source(f"{SOURCE}:sgd", inputs=inputs)
    rng = np.random.default_rng(0)
    state = {"w": rng.standard_normal((4, 3)), "m": np.zeros((4, 3)), "b": np.zeros(3),
             "x": rng.standard_normal((5, 4)), "lr": np.array(0.1)}
    state = {k: v.astype(np.float32) for k, v in state.items()} | {"y": np.array([0, 1, 2, 1, 0])}
    w = torch.nn.Parameter(torch.from_numpy(state["w"].copy()))
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        pure_functions.loss_fn(w, *(torch.from_numpy(state[k]) for k in "bxy")).backward()
        optimizer.step()
        state["w"], state["m"], _ = interp.run(step, state).values()
    np.testing.assert_allclose(state["w"], w.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_without_required_arguments_it_makes_a_model(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import torch\ndef make(n=4):\n    return torch.nn.Linear(n, 2)\n")
    module = import_source(f"{tmp_path / 'm.py'}:make", inputs=["x:f32[1,4]"])
    assert sum(map(is_parameter, module.graph.nodes)) == 2


def per_sample(x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda z: torch.vmap(product)(z).sum())(x)


def hessian_by_rows(x: torch.Tensor) -> torch.Tensor:
    rows = [torch.func.grad(lambda z, i=i: torch.func.grad(product)(z)[i])(x)
            for i in range(x.shape[0])]
    return torch.stack(rows)


def product(x: torch.Tensor) -> torch.Tensor:
    return (x ** 3).sum() + x.prod()


def along(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]


@pytest.mark.parametrize("fn", [
    torch.vmap(torch.func.hessian(product)), torch.vmap(torch.func.grad(product)),
    torch.vmap(lambda x: torch.func.grad(product)(x)), torch.func.jacrev(torch.sin),
    lambda x: along(along(torch.sin))(x), lambda x: along(torch.func.grad(torch.sum))(x)])
def test_a_transform_of_a_gradient_is_refused(fn: Callable[..., Any]) -> None:
    """With what can be captured; torch's own transforms work on."""
    with pytest.raises(UnsupportedError, match="a gradient inside forward") as found:
        agree(fn, torch.randn(2, 4))
    assert found.value.code == "GT1102" and "torch.func.grad can be nested" in str(
        found.value.hint)
    agree(along(lambda x: x.sin() * x), torch.randn(2, 4))


def test_what_its_hint_says_can_be_captured() -> None:
    agree(per_sample, torch.randn(2, 4, dtype=torch.float64))
    agree(hessian_by_rows, torch.randn(4, dtype=torch.float64))
