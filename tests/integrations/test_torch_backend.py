"""`variants`: what torch.compile holds of a function, and why each variant was made."""

from __future__ import annotations

import warnings

import msgspec
import pytest

torch = pytest.importorskip("torch")

import graphtool  # noqa: E402
from graphtool.errors import UsageError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def variants(f):
    return graphtool.torch_backend.variants(f)


def doubled(x, w):
    y = x @ w
    return y * 2 if y.shape[0] > 5 else y


def test_static_then_hybrid_then_a_branch_then_a_type():
    f, w = torch.compile(doubled, backend="graphtool"), torch.ones(4, 4)
    assert variants(f) == []
    for x in (torch.ones(3, 4), torch.ones(3, 4), torch.ones(4, 4), torch.ones(7, 4)):
        f(x, w)
    f(torch.ones(3, 4).double(), w.double())
    found = variants(f)
    assert [v.kind for v in found] == ["static", "hybrid", "hybrid", "hybrid"]
    assert [v.inputs["x"] for v in found] == ["f32[3,4]", "f32[?,4]", "f32[?,4]", "f64[?,4]"]
    assert [v.reason == "" for v in found] == [True, False, False, False]
    assert "size mismatch at index 0. expected 3, actual 4" in found[1].reason
    assert "2 <= x.shape[0] <= 5" in found[2].reason and "dtype mismatch" in found[3].reason
    assert found[2].guards == ["6 <= x.shape[0]"]
    assert [[m.part for m in v.made] for v in found] == [["inference"]] * 4
    assert all(m.nodes and m.kernels for v in found for m in v.made)


def test_an_input_with_all_sizes_open_is_dynamic():
    f = torch.compile(lambda x: x.exp(), backend="graphtool", dynamic=True)
    f(torch.ones(3, 4))
    assert [v.kind for v in variants(f)] == ["dynamic"]


def test_the_parts_of_a_training_step():
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())
    f = torch.compile(model, backend="graphtool")
    f(torch.ones(3, 4)).sum().backward()
    found, = variants(f)
    assert [m.part for m in found.made] == ["forward", "backward"]
    assert found.inputs and all("weight" not in name for name in found.inputs)


def test_a_graph_that_torch_runs_says_why():
    f = torch.compile(torch.fft.fft, backend="graphtool")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(torch.ones(4, dtype=torch.complex64))
    made, = variants(f)[0].made
    assert made.error.startswith("[GT") and "eager" in str(variants(f))


def broken(x):
    y = x.exp()
    print(end="")
    return y + y.sin()


def test_what_goes_on_after_a_graph_break():
    f = torch.compile(broken, backend="graphtool")
    f(torch.ones(3))
    f(torch.ones(4))
    found = variants(f)
    assert [v.name for v in found] == ["0/0", "0/1", "1/0", "1/1"]
    assert [len(v.made) for v in found] == [1] * 4
    line = broken.__code__.co_firstlineno + 2
    assert found[2].reason == f"goes on after the graph break at line {line}"
    assert "size mismatch" in found[3].reason and "y" in found[3].inputs


class Switched(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = "a"

    def forward(self, x):
        return x.exp() if self.mode == "a" else x.sin()


def test_a_reason_is_the_guard_alone():
    """Torch adds a stack trace of several lines, with the file's path."""
    model = Switched()
    f = torch.compile(model, backend="graphtool")
    f(torch.ones(3))
    model.mode = "b"
    f(torch.ones(3))
    assert variants(f)[1].reason == "0/0: self.mode == 'a'"


def test_as_data_and_as_a_table():
    f = torch.compile(doubled, backend="graphtool")
    f(torch.ones(3, 4), torch.ones(4, 4))
    row, = msgspec.to_builtins(list(variants(f)))
    assert row["inputs"] == {"w": "f32[4,4]", "x": "f32[3,4]"} and row["made"][0]["nodes"] == 1
    head, line = str(variants(f)).splitlines()
    assert head.split() == ["variant", "kind", "inputs", "graphs", "why", "it", "was", "made"]
    assert "static" in line and line.endswith("first call")


def test_what_was_not_compiled_is_told():
    with pytest.raises(UsageError, match="GT1122"):
        variants(doubled)
