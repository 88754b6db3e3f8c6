"""Python source as a model: files and modules, sample inputs, a clear error for each fault."""

from __future__ import annotations

import os
import textwrap

import numpy as np
import pytest

from graphtool import interp
from graphtool.analysis import made_up
from graphtool.errors import GraphtoolError
from graphtool.importers import import_source, what
from graphtool.importers.python_source import module_of
from graphtool.importers.torch.driver.call_arguments import read_spec, sample
from graphtool.importers.torch.driver.exprs import read
from graphtool.io.release import install
from graphtool.symbolic import symbol, text

GOOD = """
    import torch
    from torch import nn

    class M(nn.Module):
        def __init__(self, n=3):
            super().__init__()
            self.l = nn.Linear(4, n)
        def forward(self, x):
            return self.l(x)

    net = M().eval()
    def make(): return M().eval()
    def fails(): return M(n="x")
    def wrong(): return 7
    def inputs(): return (torch.ones(2, 4),)
"""


@pytest.fixture()
def good(tmp_path):
    return written(tmp_path, GOOD)


def written(folder, source):
    path = folder / "user_model.py"
    path.write_text(textwrap.dedent(source))
    return path


@pytest.mark.parametrize("name", ["net", "make", "M"])
def test_instance_factory_and_class(name, good):
    module = import_source(f"{good}:{name}")
    assert [str(v.type) for v in module.graph.inputs] == ["f32[2,4]"]
    assert module.locations["l"].at == "user_model.py:10 M.forward"


@pytest.mark.parametrize("value", ["(torch.ones(2, 4),)", "torch.ones(2, 4)",
                                   '{"x": torch.ones(2, 4)}'])
def test_inputs_may_be_a_value(value, tmp_path):
    text = GOOD.replace("def inputs(): return (torch.ones(2, 4),)", f"inputs = {value}")
    module = import_source(f"{written(tmp_path, text)}:net")
    assert [str(v.type) for v in module.graph.inputs] == ["f32[2,4]"]


def test_input_specs_replace_the_samples(good):
    module = import_source(f"{good}:net", inputs=["data:f32[5,4]"], dynamic={"b": (1, 9)})
    assert [f"{v.hint}: {v.type}" for v in module.graph.inputs] == ["data: f32[b,4]"]


def test_a_spec_of_a_type_that_numpy_lacks(tmp_path):
    path = written(tmp_path, GOOD + "    low = M().bfloat16()\n")
    module = import_source(f"{path}:low", inputs=["x:bf16[2,4]"])
    assert [str(v.type) for v in module.graph.inputs] == ["bf16[2,4]"]


def test_samples_of_the_repository():
    for name in ("mlp", "transformer"):
        module = import_source(f"samples/{name}.py:model")
        assert interp.run(module, made_up.random_inputs(module))


def test_a_file_changed_within_a_second_is_read_anew(tmp_path):
    path = written(tmp_path, GOOD + "    word = 1\n")
    first = module_of(str(path))
    when = path.stat().st_mtime_ns
    written(tmp_path, GOOD + "    word = 2\n")
    os.utime(path, ns=(when, when))
    assert (first.word, module_of(str(path)).word) == (1, 2)
    assert not list(tmp_path.glob("__pycache__"))


FAULTS = {
    "no such file": ("", "{folder}/none.py:x", "GT1111"),
    "no such name": (GOOD, "{file}:nope", "GT1112"),
    "not a module": (GOOD, "{file}:wrong", "GT1113"),
    "no inputs": ("from torch import nn\nm = nn.ReLU()", "{file}:m", "GT1114"),
    "no name": (GOOD, "{file}", "GT1110"),
    "unknown form": ("", "model.tflite", "GT1110"),
    "no such package": ("", "no_such_package_here.models:m", "GT1111"),
    "exit": ("import sys\nsys.exit(3)", "{file}:m", "GT1111"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name, tmp_path):
    source, spec, code = FAULTS[name]
    path = written(tmp_path, source)
    with pytest.raises(GraphtoolError) as caught:
        import_source(spec.format(file=path, folder=tmp_path))
    assert caught.value.code == code


@pytest.mark.parametrize(("source", "line"), [
    ("import torch\nx = 1 / 0\n", "user_model.py:2 "),
    ("def f(:\n", "user_model.py:1"),
    ("def m():\n    return undefined\n", "user_model.py:2 m"),
    ("import torch\ndef m():\n    return torch.nn.Linear(3)\n", "user_model.py:3 m"),
])
def test_faults_in_the_users_file_name_the_line(source, line, tmp_path):
    with pytest.raises(GraphtoolError) as caught:
        import_source(f"{written(tmp_path, source)}:m")
    assert caught.value.code == "GT1111" and caught.value.where.startswith(line)


def test_a_missing_torch_says_what_to_install(monkeypatch, good):
    monkeypatch.setattr("graphtool.importers.torch.find_spec", lambda name: None)
    with pytest.raises(GraphtoolError) as caught:
        import_source(f"{good}:net")
    assert caught.value.code == "GT1100" and install("torch") == caught.value.hint


@pytest.mark.parametrize(("source", "kind"), [
    ("a/m.onnx", "onnx"), ("m.pt2", "pt2"), ("m.graph.json", "graph"), ("m.py:f", "torch"),
    ("a.b:c.d", "torch"), ("m.mlir:f", "stablehlo"), ("m.pt", "torchscript"), ("m", "missing")])
def test_forms(source, kind):
    assert what(source).name == kind


# ---- specs and sizes ---------------------------------------------------------------------------

@pytest.mark.parametrize(("spec", "name", "shape"), [
    ("x:f32[1,3]", "x", (1, 3)), ("f64[]", "", ()), ("a b : int64[2, 5]", "a b", (2, 5)),
    ("x:bool[0]", "x", (0,))])
def test_specs(spec, name, shape):
    read_one = read_spec(spec)
    (x,) = sample([read_one])
    assert (read_one.name, x.shape, x.dtype) == (name, shape, read_one.dtype.numpy)
    np.testing.assert_array_equal(x, sample([read_one])[0])


@pytest.mark.parametrize("spec", ["x", "x:f32", "x:f32[1,", "x:f32[a]", "x:f32[-1]", "x:f99[1]",
                                  "x:f32[1,,2]", "x:f32[9999999,9999999]"])
def test_bad_specs(spec):
    with pytest.raises(GraphtoolError):
        read_spec(spec)


B, T = symbol("b", 1, 64), symbol("t", 1)
SIZES = [
    ("Symbol('b', positive=True, integer=True)", "b"), ("Integer(7)", "7"),
    ("Add(Mul(Integer(2), Symbol('b')), Integer(-1))", "2*b - 1"), ("2*b + t", "2*b + t"),
    ("(b//2)", "(b//2)"), ("FloorDiv(b, 2)", "(b//2)"), ("Mod(b, 4)", "(b%4)"),
    ("PythonMod(b, 4)", "(b%4)"), ("Max(1, b)", "b"), ("Min(b, t)", "min(b, t)"),
    ("b**2", "b*b"), ("Pow(Symbol('b'), Integer(2))", "b*b"), ("-b + 3", "-b + 3"),
    ("CeilDiv(b, 8)", "((b + 7)//8)"), ("S.One", "1"),
]


@pytest.mark.parametrize(("source", "want"), SIZES)
def test_sizes(source, want):
    assert text(read(source, {"b": B, "t": T})) == want


@pytest.mark.parametrize("source", [
    "c", "b.__class__", "open('x')", "b if b else t", "[b]", "b / 2", "b < t", "True", "1.5", "'b'",
    "Symbol(b)", "Symbol('c')", "b // 0", "Mod(b, 0)", "b ** 99", "b(1)", "Add(x=1)", "", "b;t",
    "lambda: b", "Integer(Symbol)", "S.__class__", "b := 1"])
def test_sizes_outside_the_whitelist(source):
    with pytest.raises(GraphtoolError, match="GT1210"):
        read(source, {"b": B, "t": T})




def test_sample_inputs_by_name(tmp_path):
    source = written(tmp_path, """
        import torch
        class M(torch.nn.Module):
            def forward(self, x, mask=None, scale=None, *, bias=None):
                return x * scale + bias
        def inputs(): return {"bias": torch.ones(3), "x": torch.ones(2, 3), "scale": torch.ones(1)}
        program = torch.export.export(M(), (torch.ones(2, 3),),
                                      {"scale": torch.ones(1), "bias": torch.ones(3)})
    """)
    for name in ("M", "program"):
        module = import_source(f"{source}:{name}")
        assert [v.hint for v in module.graph.inputs] == ["x", "scale", "bias"]
