"""A U-Net and a feature pyramid with open height and width, from the file to compiled code."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from graphtool import interp, passes
from graphtool.cli.faults import run as cli
from graphtool.errors import InputError
from graphtool.exporters.onnx import export_onnx
from graphtool.importers.onnx import import_onnx
from graphtool.ir import listing
from graphtool.report.diff import diff
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import compiled

WIDTHS = (8, 12, 16, 24)


class Net:
    """Nodes and weights of a model under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {"twice": np.array([1, 1, 2, 2], np.float32)}

    def op(self, kind: str, *inputs: str, **attrs: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(f"{name} = {kind}({', '.join(inputs)})", **attrs))
        return name

    def conv(self, x: str, c: int, o: int, k: int = 3, stride: int = 1) -> str:
        w, b = f"w{len(self.nodes)}", f"b{len(self.nodes)}"
        self.weights[w] = random(o, c, k, k, seed=len(self.nodes)) / (c * k * k) ** 0.5
        self.weights[b] = random(o, seed=len(self.nodes) + 1)
        y = self.op("Conv", x, w, b, strides=[stride] * 2, pads=[k // 2] * 4)
        return self.op("Relu", y)

    def up(self, x: str) -> str:
        return self.op("Resize", x, "", "twice", mode="nearest", nearest_mode="floor",
                       coordinate_transformation_mode="asymmetric")

    def model(self, *outputs: str) -> Any:
        names = [f"y{i}" for i in range(len(outputs))]
        ends = [node(f"{n} = Identity({o})") for n, o in zip(names, outputs, strict=True)]
        return model([*self.nodes, *ends], ["x f32 N 3 H W"], [f"{n} f32 ? ? ? ?" for n in names],
                     self.weights, opset=17)


def u_net() -> Any:
    """Four levels; each joins what was pooled away to what is doubled again."""
    net, x, skips, c = Net(), "x", [], 3
    for width in WIDTHS:
        x = net.conv(net.conv(x, c, width), width, width)
        skips.append((x, width))
        x, c = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), width
    x = net.conv(x, c, 2 * c)
    c *= 2
    for skip, width in reversed(skips):
        x = net.conv(net.op("Concat", net.up(x), skip, axis=1), c + width, width)
        c = width
    return net.model(net.conv(x, c, 2, 1))


def pyramid() -> Any:
    """Convolutions of stride 2 upward, additions downward; one result a level."""
    net, x, levels, c = Net(), "x", [], 3
    for width in WIDTHS:
        x, c = net.conv(x, c, width, stride=2), width
        levels.append(net.conv(x, width, 8, 1))
    outputs = [levels[-1]]
    for level in reversed(levels[:-1]):
        outputs.append(net.op("Add", net.up(outputs[-1]), level))
    return net.model(*(net.conv(y, 8, 8) for y in outputs))


MODELS = {"u-net": (u_net, [f"{d} % 16 == 0" for d in "HW"], (24, 16)),
          # 16·n and 16·n − 1 give the same levels, so that no step can say the condition
          "pyramid": (pyramid, [f"((({d} + 1)//2)%8) == 0" for d in "HW"], (18, 16))}


@pytest.mark.part(2)
@pytest.mark.parametrize("march", ["x86-64", "native"])
@pytest.mark.parametrize("name", MODELS)
def test_open_images(name: str, march: str, tmp_path: Path) -> None:
    make, rules, bad = MODELS[name]
    proto = make()
    module = checked(proto)
    assert listing.required(module) == rules
    ready = passes.run(module, None, supply={"march": march})
    built = compiled(ready, tmp_path, target=march) if march != "native" else compiled(
        ready, tmp_path)
    for n, h, w in ((1, 16, 32), (2, 48, 16), (1, 64, 64)):
        x = random(n, 3, h, w)
        got = built.run({"x": x})
        for g, want in zip(got.values(), oracle(proto, {"x": x}), strict=True):
            np.testing.assert_allclose(g, want, rtol=1e-3, atol=1e-4)
    for run in (lambda x: interp.run(module, x), built.run):
        with pytest.raises(InputError, match="does not hold"):
            run({"x": random(1, 3, *bad)})


def test_diff_names_the_conditions() -> None:
    proto = model(["y = Add(a, b)"], ["a f32 N 3", "b f32 M 3"], ["y f32 ? ?"])
    found = diff(checked(proto), checked(proto, dynamic={"M": (1, 1)}))
    assert ("removed", "M == N or M == 1 or N == 1", "require") in [
        (c.kind, c.name, c.op) for c in found.changes]


@pytest.mark.parametrize("count", [0, 3])
def test_an_empty_batch_runs(count: int, tmp_path: Path) -> None:
    proto = model([node("c = Conv(x, w)", pads=[1] * 4), "r = Relu(c)",
                   node("p = GlobalAveragePool(r)"), node("f = Flatten(p)"), "m = MatMul(f, v)",
                   node("y = Softmax(m)", axis=-1)], ["x f32 N 3 8 8"], ["y f32 ? ?"],
                  {"w": random(4, 3, 3, 3), "v": random(4, 5)}, opset=17)
    module = checked(proto, dynamic={"N": (0, 64)})
    built = compiled(passes.run(module, None), tmp_path)
    feed = {"x": random(count, 3, 8, 8)}
    for got in (interp.run(module, feed)["y"], built.run(feed)["y"]):
        np.testing.assert_allclose(got, oracle(proto, feed)[0], rtol=1e-4, atol=1e-5)


def test_exported_again(tmp_path: Path) -> None:
    module = checked(u_net())
    export_onnx(module, tmp_path / "again.onnx")
    x = random(1, 3, 32, 16)
    want, = oracle(u_net(), {"x": x})
    again = import_onnx(tmp_path / "again.onnx")
    np.testing.assert_allclose(interp.run(again, {"x": x})["y0"], want, rtol=1e-3, atol=1e-4)
    assert listing.required(again) == listing.required(module)


@pytest.mark.parametrize("make", [u_net, pyramid])
def test_an_import_says_how_to_state_its_conditions(make: Any, tmp_path: Path, capsys: Any) -> None:
    onnx.save(make(), tmp_path / "m.onnx")
    args = ["import", str(tmp_path / "m.onnx"), "--no-check", "-o", str(tmp_path / "m.graph.json")]
    assert cli(args) == 0
    said = capsys.readouterr().err
    options = shlex.split(said.partition("sizes that satisfy this: ")[2])
    assert options == ["--dynamic", "H=16.. step 16", "--dynamic", "W=16.. step 16"]
    assert cli([*args, *options]) == 0
    assert "required of every run: H % 16 == 0, W % 16 == 0" in (again := capsys.readouterr().err)
    assert "satisfy" not in again


def test_an_export_names_the_conditions_that_it_leaves_out(tmp_path: Path, capsys: Any) -> None:
    graph = tmp_path / "m.graph.json"
    onnx.save(u_net(), tmp_path / "m.onnx")
    assert cli(["import", str(tmp_path / "m.onnx"), "--no-check", "-o", str(graph)]) == 0
    capsys.readouterr()
    assert cli(["export", str(graph), "-o", str(tmp_path / "again.onnx")]) == 0
    assert "cannot state it of sizes: H % 16 == 0, W % 16 == 0" in capsys.readouterr().err
