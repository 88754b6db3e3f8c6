"""A function of tensors comes in as a model does; one without arguments makes a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graphtool import interp
from graphtool.importers import import_source
from graphtool.ir.graph import is_parameter
from graphtool.ir.run_sizes import all_nodes
from graphtool.verify.imports import check_import
from tests.importers.torch import pure_functions

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
