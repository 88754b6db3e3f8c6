"""Gradients are those that the author wrote: beside torch's own, in float64."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from graphtool import interp, transforms  # noqa: E402
from graphtool.errors import InputError, UnsupportedError  # noqa: E402
from graphtool.importers.torch import import_torch, read_pt2  # noqa: E402
from graphtool.ir.graph import Module  # noqa: E402
from graphtool.ir.text import value_names  # noqa: E402
from graphtool.transforms.training import Recipe, training  # noqa: E402
from graphtool.transforms.training.wrt import selected  # noqa: E402
from tests.closeness import assert_close  # noqa: E402
from tests.importers.torch import stopped_models as models  # noqa: E402

Array = np.ndarray[Any, Any]


def built(kind: type[Any]) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return kind().double(), torch.randn(4, 3, dtype=torch.float64)


def gradients(module: Module, x: Array) -> dict[str, Array]:
    names = value_names(module.graph)
    wrt = selected(module.graph, names, ["params"])
    graph = transforms.grad(module.graph, 0, wrt)
    count = len(module.graph.outputs)
    joint = replace(module, graph=graph, output_names=tuple(map(str, range(len(graph.outputs)))))
    state = {v.hint: np.zeros(v.type.shape, v.type.dtype.numpy) for v in graph.inputs[1:]}
    out = list(interp.run(joint, {graph.inputs[0].hint: x, **state}).values())
    return {names[v].lstrip("@"): g for v, g in zip(wrt, out[count:], strict=True)}


def agree(module: Module, model: Any, x: Any) -> None:
    found = gradients(module, x.numpy())
    model(x.clone()).backward()
    want = {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
    assert set(found) == set(want)
    for name, g in found.items():
        w = torch.zeros_like(torch.from_numpy(g)) if want[name] is None else want[name]
        assert_close(g, w.numpy(), [x.numpy()], tolerance=1e-11)


@pytest.mark.parametrize("capture", ["export", "fx"])
@pytest.mark.parametrize("kind", [*models.STOPPED, *models.INSIDE], ids=lambda k: k.__name__)
def test_gradients_stop_where_torch_stops_them(kind: type[Any], capture: str) -> None:
    model, x = built(kind)
    agree(import_torch(model, (x,), capture=capture), model, x)


@pytest.mark.filterwarnings("ignore")  # torch compiles its own cond
@pytest.mark.parametrize("kind", [models.EmaBuffer, models.InBranch, *models.RULES],
                         ids=lambda k: k.__name__)
def test_by_export_alone(kind: type[Any]) -> None:
    model, x = built(kind)
    agree(import_torch(model, (x,)), model, x)


def test_statistics_are_plain_averages() -> None:
    model, x = built(models.AveragedStatistics)
    module = import_torch(model, (x,))
    state = {v.hint: np.zeros(v.type.shape, v.type.dtype.numpy) for v in module.graph.inputs[1:]}
    state = {n: np.ones_like(v) if n.endswith("var") else v for n, v in state.items()}
    for _ in range(3):
        out = interp.run(module, {module.graph.inputs[0].hint: x.numpy(), **state})
        model(x)
        state = {n: out[n] for n in state}
    for name, value in state.items():
        assert_close(value, model.get_buffer(name).numpy())


def test_the_callers_mode_does_not_count() -> None:
    model, x = built(models.Detach)
    with torch.no_grad():
        module = import_torch(model, (x,))
    agree(module, model, x)


@pytest.mark.parametrize("kind", models.REFUSED, ids=lambda k: k.__name__)
def test_what_capture_cannot_see_is_refused_by_name(kind: type[Any]) -> None:
    model, x = built(kind)
    with pytest.raises(UnsupportedError) as error:
        import_torch(model, (x,))
    assert error.value.code == "GT1102" and error.value.items


@pytest.mark.parametrize("capture", ["export", "fx"])
def test_a_backward_of_its_own_is_fine_in_inference(capture: str) -> None:
    model, x = built(models.OwnBackward)
    module = import_torch(model, (x,), capture=capture)
    y, = interp.run(module, {module.graph.inputs[0].hint: x.numpy()}).values()
    assert y == model(x).item()
    with pytest.raises(UnsupportedError, match="could not see") as error:
        gradients(module, x.numpy())
    assert "Sign" in error.value.items[0].reason


@pytest.mark.parametrize("capture", ["export", "fx"])
def test_gradients_scaled_by_counts_are_refused(capture: str) -> None:
    model, x = built(models.CountedEmbedding)
    module = import_torch(model, (x,), capture=capture)
    y, = interp.run(module, {module.graph.inputs[0].hint: x.numpy()}).values()
    assert_close(y, model(x).detach().numpy(), [x.numpy()], tolerance=1e-12)
    with pytest.raises(UnsupportedError, match="scale_grad_by_freq"):
        gradients(module, x.numpy())


def test_a_module_with_a_backward_hook_is_not_differentiated() -> None:
    model, x = built(models.Base)
    model.a.register_full_backward_hook(lambda *_: None)
    module = import_torch(model, (x,))
    with pytest.raises(UnsupportedError) as error:
        training(module, Recipe("output"))
    assert error.value.code == "GT0612" and error.value.items[0].name == "a"


@pytest.mark.parametrize("kind", models.STOPPED, ids=lambda k: k.__name__)
def test_archives_know_where_gradients_stop(kind: type[Any], tmp_path: Path) -> None:
    """inference_mode and x.data leave no trace in what torch itself exports."""
    if kind in (models.InferenceMode, models.Data, models.DataOfParameter):
        pytest.skip("torch.export writes nothing of it")
    model, x = built(kind)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "m.pt2")
    agree(read_pt2(tmp_path / "m.pt2"), model, x)


@pytest.mark.filterwarnings("ignore")  # torch warns of its own trees
def test_a_decomposed_archive_is_ambiguous(tmp_path: Path) -> None:
    model, x = built(models.Detach)
    program = torch.export.export(model, (x,)).run_decompositions()
    torch.export.save(program, tmp_path / "m.pt2")
    for module in (read_pt2(tmp_path / "m.pt2"), import_torch(program, ())):
        assert module.meta["decomposed"] is True
        with pytest.raises(UnsupportedError) as error:
            gradients(module, x.numpy())
        assert "run_decompositions" in error.value.items[0].reason


def test_patterns_of_names() -> None:
    model, x = built(models.Frozen)
    graph = import_torch(model, (x,)).graph
    names = value_names(graph)

    def chosen(*wrt: str) -> list[str]:
        return [names[v].lstrip("@") for v in selected(graph, names, wrt)]
    assert chosen("params") == ["a.weight", "a.bias"]
    assert chosen("!*.bias") == ["a.weight"]
    assert chosen("b.*") == ["b.weight", "b.bias"]
    assert chosen("*.weight", "!a.*") == ["b.weight"]
    assert chosen("params", "b.bias", "!a.bias") == ["a.weight", "b.bias"]
    for wrong in (["c.*"], ["!c.*"], ["a.*", "!a.*"]):
        with pytest.raises(InputError) as error:
            chosen(*wrong)
        assert error.value.code == "GT0611"
