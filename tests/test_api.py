"""The Python interface: the same as the command line, imported when it is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import graphtool
from graphtool.io import npz

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.mark.torch
def test_the_names_are_those_of_all() -> None:
    assert sorted(dir(graphtool)) == sorted(graphtool.__all__)
    assert all(getattr(graphtool, name) for name in graphtool.__all__)
    with pytest.raises(AttributeError):
        _ = graphtool.nothing  # type: ignore[attr-defined]


def test_no_package_hides_a_function() -> None:
    """Importing `graphtool.x` makes x an attribute of graphtool: no function may be called so."""
    inside = {p.stem for p in (SAMPLES.parent / "graphtool").iterdir()}
    assert not inside & set(graphtool.__all__)


def test_the_package_itself_imports_nothing() -> None:
    code = "import sys, graphtool; assert not {'numpy', 'onnx', 'typer'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_from_model_to_numbers(tmp_path: Path) -> None:
    module = graphtool.import_model(SAMPLES / "digits.onnx")
    image = npz.load(SAMPLES / "digits_test.npz")["image"][:5]
    model = graphtool.load(graphtool.build(module, tmp_path / "b", name="digits"), threads=1)
    expected = graphtool.evaluate(module, {"image": image})["logits"]
    outputs = model(image=image)
    np.testing.assert_allclose(outputs["logits"], expected, rtol=1e-4, atol=1e-4)
    again = model.run({"image": image[::-1]}, out=outputs)
    assert again["logits"] is outputs["logits"]


def test_graphs_are_written_and_read(tmp_path: Path) -> None:
    module = graphtool.optimize(graphtool.import_model(str(SAMPLES / "digits.onnx")), "fold,dce")
    graphtool.write(module, tmp_path / "m.graph.json")
    image = np.ones((1, 1, 8, 8), np.float32)
    a, b = (graphtool.evaluate(m, {"image": image})["logits"]
            for m in (module, graphtool.read(tmp_path / "m.graph.json")))
    assert np.array_equal(a, b)


def exported(work: dict[str, Any]) -> bool:
    """Both formats are read back as the same numbers; an ending of another format is refused."""
    feed, same = {"image": work["image"]}, []
    for name in ("again.onnx", "again.mlir"):
        graphtool.export(work["module"], work["folder"] / name)
        again = graphtool.import_model(work["folder"] / name)
        numbers = graphtool.evaluate(again, dict(zip(again.inputs, feed.values(), strict=True)))
        want = graphtool.evaluate(work["module"], feed)
        same.append(np.allclose(*map(list, (numbers.values(), want.values())), atol=1e-5))
    for function, name in ((graphtool.write, "m.onnx"), (graphtool.export, "m.graph.json")):
        with pytest.raises(graphtool.UsageError) as refused:
            function(work["module"], work["folder"] / "other" / name)
        same.append(refused.value.code == "GT3172")
    return all(same)


def test_a_live_torch_module() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2).eval()
    module = graphtool.import_model(model, (torch.ones(4, 3),))
    (y,) = graphtool.evaluate(module, {"input": np.ones((4, 3), np.float32)}).values()
    np.testing.assert_allclose(y, model(torch.ones(4, 3)).detach().numpy(), rtol=1e-6)


@pytest.mark.compiled
@pytest.mark.parametrize("mode", ["eval", "c"])
def test_the_onnx_backend(mode: str) -> None:
    model = onnx.load(SAMPLES / "digits.onnx")
    image = np.ones((2, 1, 8, 8), np.float32)
    backend = graphtool.onnx_backend.prepare(model, device="CPU", mode=mode)
    (a,), (b,) = backend.run([image]), backend.run({"image": image})
    assert a.shape == (2, 10) and np.array_equal(a, b)


def test_the_onnx_backend_refuses() -> None:
    model = onnx.load(SAMPLES / "digits.onnx")
    for options in ({"device": "CUDA"}, {"mode": "fast"}):
        with pytest.raises(graphtool.GraphtoolError):
            graphtool.onnx_backend.prepare(model, **options)


@pytest.mark.compiled
def test_the_onnx_backend_takes_and_gives_sequences() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (seq(float[2]) s, int64 at) => (seq(float[2]) out, int64 n) {
      one = Constant<value = int64 {1}>()
      x = SequenceAt(s, one) y = Neg(x) out = SequenceInsert(s, y) n = SequenceLength(out) }"""
    model = onnx.parser.parse_model(text)
    a, b = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    for mode in ("eval", "c"):
        rep = graphtool.onnx_backend.prepare(model, mode=mode)
        out, n = rep.run([[a, b], np.asarray(0)])
        assert int(n) == 3 and np.array_equal(out, [a, b, -b])
        assert len(rep.run([[a, b, a], np.asarray(0)])[0]) == 4


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the functions are called with: one small model, its graph, build and numbers."""
    folder = tmp_path_factory.mktemp("api")
    module = graphtool.import_model(SAMPLES / "digits.onnx")
    graphtool.write(module, folder / "m.graph.json")
    image = npz.load(SAMPLES / "digits_test.npz")["image"][:5]
    recipe = graphtool.Recipe("cross_entropy", optimizer="adam")
    return {"folder": folder, "module": module, "image": image,
            "built": graphtool.build(module, folder / "b"),
            "step": graphtool.build(graphtool.grad(module, recipe), folder / "step")}


CALLS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "bench": lambda w: graphtool.bench(w["built"], seconds=0.01).timings[0].median_ms > 0,
    "build": lambda w: (w["built"] / "build.json").exists(),
    "bound": lambda w: graphtool.bound(
        w["module"], {"image": (0.0, 1.0)}, samples=1).held,
    "check": lambda w: graphtool.check(w["module"], w["built"]).ok and graphtool.check(
        SAMPLES / "digits.onnx", w["built"]).ok,
    "diff": lambda w: not graphtool.diff(
        w["module"], graphtool.vmap(w["module"])).equal,
    "draw": lambda w: "conv" in graphtool.draw(w["module"], "mermaid"),
    "emit_c": lambda w: "digits.c" in graphtool.emit_c(graphtool.lower_model(
        graphtool.optimize(w["module"]), name="digits")),
    "evaluate": lambda w: graphtool.evaluate(
        w["module"], {"image": w["image"]}, dtype="float64")["logits"].dtype == np.float64,
    "export": exported,
    "grad": lambda w: "loss" in graphtool.grad(
        w["module"], graphtool.Recipe("cross_entropy")).output_names,
    "import_model": lambda w: len(w["module"].graph.nodes) > 0,
    "vjp": lambda w: "cotangent.image" in graphtool.vjp(w["module"]).output_names,
    "jacobian": lambda w: "jacobian.logits.image" in graphtool.jacobian(
        graphtool.optimize(w["module"], "specialize{batch=1}")).output_names,
    "jvp": lambda w: "tangent.logits" in graphtool.jvp(w["module"]).output_names,
    "load": lambda w: graphtool.load(w["built"])(image=w["image"])["logits"].shape == (5, 10),
    "lower_model": lambda w: len(graphtool.lower_model(
        graphtool.optimize(w["module"], target="generic"), target="generic").kernels) > 0,
    "optimize": lambda w: len(graphtool.optimize(w["module"], precision="strict").graph.groups) > 0,
    "profile": lambda w: graphtool.profile(w["built"], runs=2).total_us > 0,
    "quantise": lambda w: not graphtool.diff(
        w["module"], graphtool.quantise(w["module"])).equal,
    "read": lambda w: graphtool.diff(
        w["module"], graphtool.read(w["folder"] / "m.graph.json")).equal,
    "read_tokenizer": lambda w: graphtool.read_tokenizer(
        SAMPLES / "language_tokens.json").size == 512,
    "show": lambda w: graphtool.show(w["module"]).endswith("return logits"),
    "train_model": lambda w: graphtool.train_model(
        w["step"], {"image": w["image"], "y": np.arange(5)},
        graphtool.Plan(epochs=1, batch=5))[1].finished,
    "train_tokenizer": lambda w: graphtool.train_tokenizer("so so so", 258).merges == ((115, 111),),
    "tune_model": lambda w: len(graphtool.tune_model(
        w["module"], w["folder"] / "t.jsonl", budget=0.001, seconds=0.01).sites) == 1,
    "vmap": lambda w: graphtool.vmap(w["module"], size=3).graph.inputs[0].type.shape[0] == 3,
    "write": lambda w: (w["folder"] / "m.graph.json").exists(),
    "write_tokenizer": lambda w: graphtool.write_tokenizer(
        graphtool.Tokenizer(), w["folder"] / "t.json") is None and graphtool.read_tokenizer(
            w["folder"] / "t.json").size == 257,
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_each_function_does_what_it_says(name: str, work: dict[str, Any]) -> None:
    assert CALLS[name](work)


@pytest.mark.torch
def test_no_function_is_left_out() -> None:
    functions = {n for n in graphtool.__all__ if n.islower() and n not in (  # tests of their own
        "generate", "load_plugin", "onnx_backend", "torch_backend", "view")}
    assert functions == set(CALLS)
    assert all(getattr(graphtool, n).__doc__ for n in graphtool.__all__)


def test_what_is_printed_of_objects_is_short(work: dict[str, Any]) -> None:
    module, model = work["module"], graphtool.load(work["built"])
    assert repr(module).startswith("<Module of ") and "input image: f32[batch,1" in repr(module)
    assert repr(model) == "<Model model: (image: f32[batch,1,8,8]) -> (logits: f32[batch,10])>"


def test_a_users_script_is_typed() -> None:
    """Under mypy --strict, and nothing in it is Any."""
    script = Path(__file__).parent / "user_script.py"
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--disallow-any-expr",
                           "--no-incremental", "--follow-imports=silent", str(script)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
