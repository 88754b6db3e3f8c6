"""Gradients of branches and loops from the command line: an ONNX model, a graph written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import torch

import graphtool
from graphtool.io import npz
from tests.cli.conftest import Cli

# until the sum is large a layer at each iteration, then one of two ways out
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
m (float[4] x) => (float[4] z) <float[4, 4] w, float[4] scale> {
  most = Constant <value_int = 9> ()
  small = Constant <value_float = 20.0> ()
  zero = Constant <value_float = 0.0> ()
  sum0 = ReduceSum <keepdims = 0> (x)
  yes = Less (sum0, small)
  y = Loop (most, yes, x) <body = turn (int64 i, bool c, float[4] h) => (bool again, float[4] g) {
    m = MatMul (w, h)
    t = Tanh (m)
    g = Add (t, h)
    a = Abs (g)
    s = ReduceSum <keepdims = 0> (a)
    again = Less (s, small)
  }>
  total = ReduceSum <keepdims = 0> (y)
  up = Greater (total, zero)
  z = If (up) <then_branch = up () => (float[4] u) {
    u1 = Mul (y, scale)
    u2 = Exp (y)
    u3 = Neg (u2)
    u4 = Sigmoid (u3)
    u = Mul (u4, u1)
  }, else_branch = down () => (float[4] d) {
    d1 = Mul (y, y)
    d2 = Mul (d1, scale)
    d3 = Sin (d2)
    d = Sub (d3, y)
  }>
}
"""
W = (np.arange(16).reshape(4, 4) % 5 - 1.4).astype(np.float32) * 0.5
SCALE = np.array([1, -2, 0.5, 3], np.float32)


def in_torch(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    done, again = 0, bool(x.sum() < 20)
    while again and done < 9:
        x = torch.tanh(w @ x) + x
        done, again = done + 1, bool(x.abs().sum() < 20)
    if x.sum() > 0:
        return torch.sigmoid(-x.exp()) * (x * scale)
    return torch.sin(x * x * scale) - x


def test_an_onnx_model_with_if_and_loop(gt: Cli, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer.extend([onnx.numpy_helper.from_array(W, "w"),
                                    onnx.numpy_helper.from_array(SCALE, "scale")])
    del model.graph.input[1:]
    onnx.save(model, tmp_path / "m.onnx")
    source, joint, build = (tmp_path / n for n in ("m.graph.json", "g.graph.json", "b"))
    assert gt("import", tmp_path / "m.onnx", "-o", source).code == 0
    assert gt("grad", source, "--loss", "mse", "-o", joint).code == 0
    assert gt("build", joint, "-o", build).code == 0
    for sign in (1, -1):
        x = np.array([0.1, -0.3, 0.2, 0.6], np.float32) * sign
        npz.save({"x": x, "y": SCALE}, tmp_path / "in.npz")
        leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True)
                  for a in (x, W, SCALE)]
        loss = (in_torch(*leaves) - torch.tensor(SCALE)).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        for verb, subject in (("eval", joint), ("run", build)):
            assert gt(verb, subject, "--inputs", tmp_path / "in.npz", "-o",
                      tmp_path / "out.npz").code == 0
            out = npz.load(tmp_path / "out.npz")
            np.testing.assert_allclose(out["loss"], loss.item(), rtol=1e-5)
            for name, leaf in (("w", leaves[1]), ("scale", leaves[2])):
                np.testing.assert_allclose(out[f"grad.{name}"], leaf.grad, rtol=1e-4, atol=1e-5)


BY_HAND = """{"format": "graphtool/graph",
"version": 1,
"meta": {},
"weights": "",
"symbols": {},
"inputs": [
 {"id": "x", "type": "f32[3]"},
 {"id": "k", "type": "i64[]"}
],
"params": [],
"nodes": [
 {"id": ["loop", "turns"], "op": "while", "in": ["x", "k"], "attrs": {"cond": "more", "body": "turn", "carries": 2}, "type": ["f32[3]", "i64[]"]},
 {"id": "sum", "op": "reduce_sum", "in": ["loop"], "attrs": {"axes": [0]}, "type": "f32[1]"}
],
"outputs": [
 {"name": "sum", "value": "sum"}
],
"regions": [
 {"id": "more", "inputs": [{"id": "x", "type": "f32[3]"}, {"id": "k", "type": "i64[]"}], "params": [], "nodes": [{"id": "lt", "op": "lt", "in": ["k", 5], "type": "bool[]"}], "outputs": ["lt"]},
 {"id": "turn", "inputs": [{"id": "x", "type": "f32[3]"}, {"id": "k", "type": "i64[]"}], "params": [], "nodes": [{"id": "sin", "op": "sin", "in": ["x"], "type": "f32[3]"}, {"id": "mul", "op": "mul", "in": ["sin", 2.0], "type": "f32[3]"}, {"id": "add", "op": "add", "in": ["k", 1], "type": "i64[]"}], "outputs": ["mul", "add"]}
],
"groups": [],
"locations": []
}
"""  # noqa: E501  (a line a region)


def test_a_graph_written_by_hand(gt: Cli, tmp_path: Path) -> None:
    source, joint, build = (tmp_path / n for n in ("m.graph.json", "g.graph.json", "b"))
    source.write_text(BY_HAND)
    call = ("grad", source, "--loss", "sum", "--wrt", "inputs", "-o", joint)
    refused = gt(*call)
    assert refused.code == 4
    assert "GT0619" in refused.err and "loop" in refused.err and "--bound" in refused.err
    assert gt(*call, "--bound", 8).code == 0
    assert gt("build", joint, "-o", build).code == 0
    x = np.array([0.3, -1.0, 2.0], np.float32)
    for k in (0, 3, 7):
        npz.save({"x": x, "k": np.asarray(k)}, tmp_path / "in.npz")
        value, leaf = (t := torch.tensor(x, requires_grad=True)), t
        for _ in range(k, 5):
            value = value.sin() * 2
        value.sum().backward()  # type: ignore[no-untyped-call]
        for verb, subject in (("eval", joint), ("run", build)):
            assert gt(verb, subject, "--inputs", tmp_path / "in.npz", "-o",
                      tmp_path / "out.npz").code == 0
            np.testing.assert_allclose(npz.load(tmp_path / "out.npz")["grad.x"], leaf.grad,
                                       rtol=1e-5)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(5, 7), torch.nn.Linear(7, 1)
        self.norm = torch.nn.LayerNorm(7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.gelu(self.norm(self.up(x)))).exp().sum()


def in_file(path: Path) -> tuple[Net, Path]:
    torch.manual_seed(1)
    net = Net()
    graphtool.write(graphtool.import_model(net, (torch.zeros(4, 5),)), path / "net.graph.json")
    return net, path / "net.graph.json"


def results(gt: Cli, path: Path, graph: Path,
            given: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """What the evaluator gives, and the compiled graph."""
    npz.save(given, path / "in.npz")
    found = []
    assert gt("opt", graph, "-o", path / "o.graph.json").code == 0
    assert gt("build", path / "o.graph.json", "-o", path / "b").code == 0
    for verb, subject in (("eval", graph), ("run", path / "b")):
        assert gt(verb, subject, "--inputs", path / "in.npz", "-o", path / "o.npz").code == 0
        found.append(npz.load(path / "o.npz"))
    return found


X = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
DX = np.cos(7 * X)


def test_jvp_is_torchs(gt: Cli, tmp_path: Path) -> None:
    net, source = in_file(tmp_path)
    assert gt("jvp", source, "--wrt", "inputs", "-o", tmp_path / "j.graph.json").code == 0
    y, dy = torch.func.jvp(net, (torch.tensor(X),), (torch.tensor(DX),))
    for out in results(gt, tmp_path, tmp_path / "j.graph.json", {"x": X, "x.tangent": DX}):
        value, tangent = out.values()
        np.testing.assert_allclose(value, y.detach(), rtol=1e-5)
        np.testing.assert_allclose(tangent, dy.detach(), rtol=1e-4)


def test_vjp_and_jacobian_are_torchs(gt: Cli, tmp_path: Path) -> None:
    """Also the Jacobian of a vjp, which is the Hessian; the fixed sizes make 1 row and 20."""
    net, source = in_file(tmp_path)
    name, x = graphtool.read(source).output_names[0], torch.tensor(X)
    adjoint, files = tmp_path / "adj.graph.json", [tmp_path / f"{n}.graph.json" for n in "jh"]
    assert gt("vjp", source, "--of", name, "-o", adjoint).code == 0
    assert gt("jacobian", source, "-o", files[0]).code == 0
    assert gt("jacobian", adjoint, "--wrt", "x", "--of", "cotangent.x", "-o", files[1]).code == 0
    net.requires_grad_(False)
    dx = torch.func.grad(net)(x)
    weight = {"x": X, f"{name}.cotangent": np.float32(2)}
    for out in results(gt, tmp_path, adjoint, weight):
        np.testing.assert_allclose(out["cotangent.x"], 2 * dx, rtol=1e-4, atol=1e-6)
    for out in results(gt, tmp_path, files[0], {"x": X}):
        np.testing.assert_allclose(out[f"jacobian.{name}.x"], dx, rtol=1e-4, atol=1e-6)
    for out in results(gt, tmp_path, files[1], weight):
        np.testing.assert_allclose(out["jacobian.cotangent.x.x"],
                                   2 * torch.func.hessian(net)(x), rtol=5e-4, atol=1e-5)


def test_a_wrong_output_is_named(gt: Cli, tmp_path: Path) -> None:
    _, source = in_file(tmp_path)
    name = graphtool.read(source).output_names[0]
    for verb in ("vjp", "jacobian"):
        done = gt(verb, source, "--of", name + "x", "-o", tmp_path / "o.graph.json")
        assert (done.code, "GT3037" in done.err, name in done.err) == (2, True, True)
    assert not (tmp_path / "o.graph.json").exists()


def test_hessian_times_vector_is_torchs(gt: Cli, tmp_path: Path) -> None:
    """jvp of a graph of gradients, by inputs and by parameters."""
    net, source = in_file(tmp_path)
    (name,) = [v["name"] for v in json.loads(source.read_text())["outputs"]]
    joint, forward = tmp_path / "g.graph.json", tmp_path / "h.graph.json"
    assert gt("grad", source, "--loss", name, "--wrt", "inputs,up.weight", "-o", joint).code == 0
    assert gt("jvp", joint, "--wrt", "x,up.weight", "-o", forward).code == 0
    w = net.up.weight.detach()
    dw = torch.sin(5 * w)

    def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(net, {"up.weight": w}, (x,))
    _, (hx, hw) = torch.autograd.functional.hvp(loss, (torch.tensor(X), w),
                                                (torch.tensor(DX), dw))
    given = {"x": X, "x.tangent": DX, "up.weight.tangent": dw.numpy()}
    for out in results(gt, tmp_path, forward, given):
        np.testing.assert_allclose(out["tangent.grad.x"], hx, rtol=2e-4, atol=1e-5)
        np.testing.assert_allclose(out["tangent.grad.up.weight"], hw, rtol=2e-4, atol=1e-5)


def test_vmap_of_gradients_is_torchs(gt: Cli, tmp_path: Path) -> None:
    """A gradient per example; the axis of examples stands in the middle, and may be open."""
    net, source = in_file(tmp_path)
    (name,) = [v["name"] for v in json.loads(source.read_text())["outputs"]]
    joint, wide = tmp_path / "g.graph.json", tmp_path / "v.graph.json"
    assert gt("grad", source, "--loss", name, "-o", joint).code == 0
    x = np.stack([X, DX, X * DX], 1)

    def loss(params: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(net, params, (x,))
    params = {k: p.detach() for k, p in net.named_parameters()}
    want = torch.func.vmap(torch.func.grad(loss), (None, 1))(params, torch.tensor(x))
    for size in ("3", "n"):
        assert gt("vmap", joint, "--in-axes", "x=1", "--size", size, "-o", wide).code == 0
        for out in results(gt, tmp_path, wide, {"x": x}):
            for k, g in want.items():
                np.testing.assert_allclose(out[f"grad.{k}"], g, rtol=2e-4, atol=1e-5)


def test_what_vmap_refuses(gt: Cli, tmp_path: Path) -> None:
    _, source = in_file(tmp_path)
    for axes, size, code, name in (("x=5", "3", 3, "GT0622"), ("x=none", "3", 3, "GT0622"),
                                   ("z=0", "3", 2, "GT3037"), ("x", "3", 2, "GT3037"),
                                   ("x=0", "-3", 2, "GT3037")):
        refused = gt("vmap", source, "--in-axes", axes, f"--size={size}")
        assert (refused.code, name in refused.err) == (code, True)
