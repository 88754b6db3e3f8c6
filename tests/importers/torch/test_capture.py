"""Captures of live modules: names, places, dynamic dims, state, and what cannot be captured."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from graphtool import interp, optimize
from graphtool.errors import UnsupportedError, UsageError
from graphtool.importers import import_source
from graphtool.importers.torch import import_torch, read_pt2
from graphtool.ir import listing, serial
from graphtool.ir.verify import verify_module
from tests.importers.torch.agreement import agree, evaluated, normal

HERE = Path(__file__).name


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.relu(self.lin(x))
        return x + y


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 3)

    def forward(self, first, second=None):
        for block in self.blocks:
            first = block(first)
        return self.head(first) if second is None else self.head(first) * second


def ids(module):
    return [n.outputs[0].hint for n in module.graph.nodes if n.op.name != "constant"]


# ---- names and places --------------------------------------------------------------------------

@pytest.mark.parametrize("capture", ["export", "fx"])
def test_names_are_module_path_and_op(capture):
    module = agree(Net().double(), normal(2, 4), capture=capture)
    assert ids(module) == ["blocks.0.lin.linear", "blocks.0.relu", "blocks.0.add",
                           "blocks.1.lin.linear", "blocks.1.relu", "blocks.1.add", "head.linear"]
    assert [v.hint for v in module.graph.inputs] == ["first"]


@pytest.mark.parametrize("capture", ["export", "fx"])
def test_places(capture):
    locations = import_torch(Net(), (torch.ones(2, 4),), capture=capture).locations
    assert list(locations) == ["blocks.0.lin", "blocks.0", "blocks.0#2", "blocks.1.lin", "blocks.1",
                               "blocks.1#2", "head"]
    assert locations["blocks.0"].at.startswith(f"{HERE}:")
    assert locations["blocks.0"].at.endswith(" Block.forward")
    assert locations["blocks.0"].text == "y = torch.relu(self.lin(x))"
    assert locations["blocks.0#2"].text == "return x + y"
    assert locations["head"].at.endswith(" Net.forward")


def test_parameters_keep_their_names_and_ties_are_one():
    net = Net()
    net.blocks[1].lin.weight = net.blocks[0].lin.weight
    module = import_torch(net, (torch.ones(2, 4),))
    names = [n.outputs[0].hint for n in module.graph.nodes if n.op.name == "constant"
             and n.attrs["param"]]
    assert sorted(names) == ["blocks.0.lin.bias", "blocks.0.lin.weight", "blocks.1.lin.bias",
                             "head.bias", "head.weight"]


@dataclass
class Result:
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, torch.Tensor]


torch.utils._pytree.register_dataclass(Result)
OUTPUTS = {
    "one": (lambda x: x + 1, ("output",)),
    "tuple": (lambda x: (x + 1, x * 2), ("output_0", "output_1")),
    "dict": (lambda x: {"a": x + 1, "b": [x * 2, x - 1]}, ("a", "b.0", "b.1")),
    "dataclass": (lambda x: Result(x + 1, (x * 2, x)), ("logits", "hidden.0", "hidden.1")),
    "none": (lambda x: (x + 1, None, 3), ("output_0", "output_2")),
    "same twice": (lambda x: (x + 1,) * 2, ("output_0", "output_1")),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_output_names(name):
    from tests.importers.torch.agreement import Function
    fn, names = OUTPUTS[name]
    module = import_torch(Function(fn), (torch.ones(2),))
    assert module.output_names == names
    verify_module(module)


def test_given_input_names():
    module = import_torch(Net(), (torch.ones(2, 4), torch.ones(3)), names=["a", "b c"])
    assert [v.hint for v in module.graph.inputs] == ["a", "b c"]


def test_equal_imports_give_equal_bytes():
    one, two = (serial.dumps(import_torch(Net().eval(), (torch.ones(2, 4),)), "w")
                for _ in range(2) if torch.manual_seed(0))
    assert one == two


# ---- dynamic dims ------------------------------------------------------------------------------

DYNAMIC = [
    (lambda x: x.reshape(-1, 2) * 2, {"batch": (1, 64)}, "f64[batch,4]", (5, 4)),
    (lambda x: x.sum(0) / x.shape[0], {"n": (2, None)}, "f64[n,4]", (9, 4)),
    (lambda x: torch.cat([x, x])[1:].softmax(-1), {"n": (1, 9)}, "f64[n,4]", (1, 4)),
    (lambda x: x @ x.mT, {"t@x_0.1": (1, 9)}, "f64[3,t]", (3, 7)),
    (lambda x: torch.arange(x.shape[0]) + x[:, 0], {"n": (1, 9)}, "f64[n,4]", (6, 4)),
    (lambda x: x.flatten().unflatten(0, (2, -1)), {"t@x_0.1": (1, 9)}, "f64[4,t]", (4, 5)),
    (lambda x: x.mean(0).expand(x.shape[0] * 2, 4), {"n": (1, 9)}, "f64[n,4]", (3, 4)),
    (lambda x: x.tril() + x.new_zeros(x.shape), {"n": (1, 9)}, "f64[n,4]", (5, 4)),
]


@pytest.mark.parametrize(("fn", "dynamic", "kind", "shape"), DYNAMIC)
def test_dynamic_dims(fn, dynamic, kind, shape):
    """Captured at one size, run at another."""
    from tests.importers.torch.agreement import Function
    sample = (3, shape[1]) if kind.startswith("f64[n") or "batch" in kind else (shape[0], 4)
    module = import_torch(Function(fn), (normal(*sample),), dynamic=dynamic, names=["x_0"])
    verify_module(module)
    assert str(module.graph.inputs[0].type) == kind
    x = normal(*shape, seed=5)
    (got,) = interp.run(module, {"x_0": x.numpy()}).values()
    np.testing.assert_allclose(got, fn(x).numpy(), atol=1e-12)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_batch_of_one_as_the_sample(size):
    module = import_torch(Net().double(), (normal(1, 4),), dynamic={"batch": (1, 8)})
    (s,) = module.symbols.values()
    assert (s.name, s.lo, s.hi) == ("batch", 1, 8)
    assert interp.run(module, {"first": normal(size, 4).numpy()})["output"].shape == (size, 3)


@pytest.mark.parametrize("key", ["no word", "n@", "n@y.0", "n@first", "n@first.7"])
def test_bad_dynamic_keys(key):
    with pytest.raises(UsageError, match="GT1104"):
        import_torch(Net(), (torch.ones(2, 4),), dynamic={key: (1, 4)})


# ---- state -------------------------------------------------------------------------------------

class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4, dtype=torch.float64))

    def forward(self, x):
        self.total += x.sum(0)
        x.mul_(2)
        return x + self.total


def test_mutated_buffers_are_state_in_and_out():
    module = import_torch(Counter(), (normal(2, 4),))
    assert [v.hint for v in module.graph.inputs] == ["x", "total"]
    assert module.output_names == ("output", "total", "x")
    assert module.donations == ((1, 1), (2, 0))
    x, start = normal(2, 4).numpy(), normal(4).numpy()
    out = interp.run(module, {"x": x, "total": start})
    np.testing.assert_allclose(out["total"], start + x.sum(0))
    np.testing.assert_allclose(out["output"], 2 * x + start + x.sum(0))


def test_batch_norm_in_training_moves_its_statistics():
    norm, x = nn.BatchNorm2d(3).double().train(), normal(4, 3, 5, 5)
    module = import_torch(norm, (x,))
    state = {v.hint: np.asarray(dict(norm.named_buffers())[v.hint]) .copy()
             for v in module.graph.inputs[1:]}
    out = interp.run(module, {"input": x.numpy(), **state})
    want = norm(x)
    np.testing.assert_allclose(out["output"], want.detach().numpy(), atol=1e-10)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        np.testing.assert_allclose(out[name], getattr(norm, name).numpy(), atol=1e-12)


# ---- what cannot be captured -------------------------------------------------------------------

class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x


class Loop(nn.Module):
    def forward(self, x):
        for i in range(x.shape[0]):
            x = x + i
        return x


class Broken(nn.Module):
    def forward(self, x):
        return x @ x


FAILURES = [
    (Branch, "export", {}, "if x.sum() > 0:", "torch.cond"),
    (Branch, "fx", {}, "if x.sum() > 0:", "--capture export"),
    (Loop, "fx", {}, "for i in range(x.shape[0]):", "--capture export"),
    (Loop, "export", {"n": (1, 8)}, "", "dynamic"),
    (Broken, "export", {}, "return x @ x", ""),
]


@pytest.mark.parametrize(("model", "capture", "dynamic", "line", "advice"), FAILURES)
def test_failures_name_the_line(model, capture, dynamic, line, advice, capfd):
    with pytest.raises(UnsupportedError) as caught:
        import_torch(model(), (torch.ones(2, 3),), capture=capture, dynamic=dynamic)
    error = caught.value
    assert error.code == "GT1102" and line in error.where and advice in error.hint
    if line:
        assert error.where.startswith(f"{HERE}:")
    assert capfd.readouterr().out == ""


def test_everything_unsupported_at_once():
    class Several(nn.Module):
        def forward(self, x):
            y, airy = torch.fft.fft(x).prod().abs(), torch.special.airy_ai
            return y + torch.linalg.eigvals(x @ x.mT).abs().sum(), airy(x), airy(x + 1)
    with pytest.raises(UnsupportedError) as caught:
        import_torch(Several(), (torch.ones(2, 3),))
    items = {i.name: i for i in caught.value.items}
    assert {"aten.prod.default", "aten.special_airy_ai.default"} <= set(items)
    assert len(items["aten.special_airy_ai.default"].places) == 2
    assert items["aten.special_airy_ai.default"].places[0].startswith(f"{HERE}:")
    assert "2 × aten.special_airy_ai.default" in str(caught.value)


class Named(nn.Module):
    def forward(self, x, mask=None, *, scale=1.0, bias=None, **more):
        y = x if mask is None else x.masked_fill(mask, 0)
        return {"y": y * scale if bias is None else y * scale + bias, **more}


def test_inputs_by_name():
    x, bias = torch.randn(3, 4), torch.randn(4)
    module = import_torch(Named(), (x,), kwargs={"bias": bias, "mask": x > 0, "scale": 2.0},
                          dynamic={"n@x.0,mask.0": (2, None)})
    assert [v.hint for v in module.graph.inputs] == ["x", "mask", "bias"]
    y = torch.randn(5, 4)
    got = evaluated(module, (y, torch.zeros(5, 4, dtype=torch.bool), bias))
    np.testing.assert_allclose(got[0], y * 2 + bias, rtol=1e-6)


def test_inputs_that_forward_has_no_name_for():
    x, extra = torch.randn(3, 4), torch.randn(3)
    module = import_torch(Named(), (x,), kwargs={"extra": extra})
    assert module.output_names == ("y", "extra")
    np.testing.assert_array_equal(evaluated(module, (x, extra))[1], extra)


def test_fx_takes_no_inputs_that_only_have_a_name():
    with pytest.raises(UsageError, match="GT1104"):
        import_torch(Named(), (torch.ones(2),), kwargs={"bias": torch.ones(2)}, capture="fx")


@pytest.mark.parametrize("strict", [False, True])
def test_a_program_that_was_exported_already(strict):
    x, n = torch.randn(3, 4), torch.export.Dim("n")
    program = torch.export.export(Named(), (x,), {"bias": torch.ones(4)}, strict=strict,
                                  dynamic_shapes={"x": {0: n}, "bias": None})
    module = import_torch(program, ())
    y = torch.randn(6, 4)
    np.testing.assert_allclose(evaluated(module, (y, torch.ones(4)))[0], y + 1, rtol=1e-6)
    with pytest.raises(UsageError, match="dynamic_shapes"):
        import_torch(program, (), dynamic={"batch": (1, None)})


@pytest.mark.parametrize(("model", "capture"), [(Net(), "jit"), (len, "export")])
def test_usage(model, capture):
    with pytest.raises(UsageError, match="GT1104"):
        import_torch(model, (torch.ones(2, 4),), capture=capture)


def test_the_package_imports_without_torch():
    code = ("import sys, graphtool.importers, graphtool.importers.torch as t\n"
            "assert not any(m.partition('.')[0] in ('torch', 'onnx') for m in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


WRITES = ["view += 1", "view -= x", "view *= 3", "view /= 2", "view //= 2", "view %= 3",
          "view **= 2", "y.T.mul_(2)", "view[1:] += 4", "y[0], y[1] = y[1], y[0]", "y[x > 3] = 0",
          "y.T[0] = 7", "y.real[1] = 5", "y.real += 1", "y.real = x + 2",
          "z = y; y = y + 1; z *= 2"]


class Writing(nn.Module):
    """What it returns was written through a view."""

    def __init__(self, statement: str) -> None:
        super().__init__()
        self.text = compile(statement, "<written>", "exec")

    def forward(self, x):
        y = x.clone()
        scope = {"x": x, "y": y, "view": y.t(), "torch": torch}
        exec(self.text, scope)
        return scope["y"], y


@pytest.mark.parametrize("capture", ["export", "fx"])
@pytest.mark.parametrize("statement", WRITES)
def test_writes_through_views(statement: str, capture: str) -> None:
    agree(Writing(statement), (torch.arange(9.0, dtype=torch.float64) + 1).reshape(3, 3),
          capture=capture)


@pytest.mark.parametrize("statement", ["view <<= 1", "view >>= 1", "view |= 1", "view &= 6",
                                       "view ^= 5"])
def test_writes_of_bits_through_views(statement: str) -> None:
    agree(Writing(statement), torch.arange(9).reshape(3, 3), capture="fx")


STRIDED = ["x.view(-1)[::3].as_strided((3,), (2,), 1)", "x.t().as_strided((3,), (2,))",
           "x[1:].as_strided((3,), (2,))", "x[1:].as_strided((3,), (2,), 1)",
           "x[1:, 1:].as_strided((2, 2), (6, 1))", "x[:2].as_strided((4, 2), (6, 1))",
           "(x * 2)[2:].as_strided((2, 3), (3, 1), 13)", "x.expand(2, 4, 6).as_strided((3,), (2,))",
           "torch.as_strided_scatter(x[1:], x[0, :3], (3,), (2,))"]


class Strided(nn.Module):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.code = compile(text, "<strided>", "eval")

    def forward(self, x):
        return eval(self.code, {"torch": torch, "x": x})


@pytest.mark.parametrize("text", STRIDED)
def test_as_strided_reads_the_memory_of_a_view(text: str, tmp_path: Path) -> None:
    x = torch.arange(24.0, dtype=torch.float64).reshape(4, 6)
    agree(Strided(text), x)
    torch.export.save(torch.export.export(Strided(text), (x,)), tmp_path / "m.pt2")
    module = read_pt2(tmp_path / "m.pt2")
    (got,) = interp.run(module, {module.graph.inputs[0].hint: x.numpy()}).values()
    np.testing.assert_array_equal(got, Strided(text)(x).numpy())


def test_as_strided_in_another_order_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="memory in another order"):
        import_torch(Strided("(x.t() + 1).as_strided((3,), (2,))"), (torch.ones(3, 4),))


@pytest.mark.parametrize("capture", ["export", "fx"])
def test_replaced_data_is_refused(capture: str) -> None:
    with pytest.raises(UnsupportedError, match="data is replaced in forward"):
        import_torch(Writing("y.data = x * 2"), (torch.ones(3, 3),), capture=capture)


def test_colours_for_a_terminal_stay_out_of_errors() -> None:
    from graphtool.importers.torch.driver.provenance import failure
    error = failure(RuntimeError("\x1b[96mstep\x1b[0m 3"), "torch.onnx", "/nowhere/")
    assert "RuntimeError: step 3" in error.message


CLASSES = {"blocks.0": "Block", "blocks.0.lin": "Linear", "blocks.1": "Block",
           "blocks.1.lin": "Linear", "head": "Linear"}


@pytest.mark.filterwarnings("ignore")  # torch's own: TorchScript is deprecated
@pytest.mark.parametrize("capture", ["export", "fx", "pt2", "script"])
def test_the_class_of_each_module_is_kept(capture, tmp_path) -> None:
    net, x, path = Net().eval(), torch.ones(2, 4), tmp_path / "net.pt2"
    if capture == "pt2":
        torch.export.save(torch.export.export(net, (x,)), path)
        module = import_source(str(path))
    elif capture == "script":
        torch.jit.trace(net, (x,)).save(path.with_suffix(".pt"))
        module = import_source(str(path.with_suffix(".pt")), inputs=["first:f32[2,4]"])
    else:
        module = import_torch(net, (x,), capture=capture)
    assert {k: v for k, v in module.modules.items() if k in CLASSES} == CLASSES
    for written in (serial.dumps(module, embed=True), listing.dumps(module, embed=True)):
        assert serial.loads(written).modules == module.modules
    assert optimize(module).modules == module.modules
