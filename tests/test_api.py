"""The Python interface: the same as the command line, imported when it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import graphtool
from graphtool.io import npz

SAMPLES = Path(__file__).parents[1] / "samples"


def test_all_names_are_there() -> None:
    assert all(getattr(graphtool, name) for name in graphtool.__all__)
    assert set(graphtool.__all__) <= set(dir(graphtool))
    with pytest.raises(AttributeError):
        _ = graphtool.nothing


def test_the_package_itself_imports_nothing() -> None:
    code = "import sys, graphtool; assert not {'numpy', 'onnx', 'typer'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_build_stays_the_function() -> None:
    code = "import graphtool.native.build; assert callable(graphtool.build)"
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


def test_a_live_torch_module() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2).eval()
    module = graphtool.import_model(model, (torch.ones(4, 3),))
    (y,) = graphtool.evaluate(module, {"input": np.ones((4, 3), np.float32)}).values()
    np.testing.assert_allclose(y, model(torch.ones(4, 3)).detach().numpy(), rtol=1e-6)


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
