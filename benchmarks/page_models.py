"""The six models on which the page of view is measured, from 14 to 17,000 nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks import prepare, work

SAMPLES = Path(__file__).parents[1] / "samples"
WIDTH, TIME, HEADS = 32, 16, 4
NODES = 35  # of a layer of the encoder


def digits(folder: Path) -> Path:
    return SAMPLES / "digits.onnx"


def resnet18(folder: Path) -> Path:
    """torchvision's, as torch exports it."""
    if not prepare.ensure("resnet18"):
        raise SystemExit("resnet18 cannot be prepared")
    return work.prepared("resnet18").onnx


def step(folder: Path) -> Path:
    """A training step as ONNX, so that other viewers can read it too."""
    from graphtool.exporters import onnx as exporters
    from graphtool.importers import import_source
    from graphtool.transforms.training import Recipe, training
    module = training(import_source(f"{SAMPLES / 'mlp.py'}:model"),
                      Recipe("cross_entropy", ("params",), "adamw"))
    path = folder / "step.onnx"
    exporters.export_onnx(module, path)
    return path


def stack(layers: int) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / f"encoder{layers}.onnx"
        onnx.save(encoder(layers), path)
        return path
    return write


MODELS: dict[str, Callable[[Path], Path]] = {
    "digits": digits, "resnet18": resnet18, "encoder, 15 layers": stack(15), "training step": step,
    "encoder, 286 layers": stack(286), "encoder, 486 layers": stack(486)}


def encoder(layers: int) -> Any:
    """A transformer encoder with the names that torch's exporter gives, and random weights."""
    random = np.random.default_rng(0)
    nodes: list[Any] = []
    weights: list[Any] = []

    def weight(name: str, value: Any) -> str:
        weights.append(numpy_helper.from_array(value, name))
        return name

    def node(op: str, path: str, *inputs: str, **attrs: Any) -> str:
        name = f"/{path}"
        nodes.append(helper.make_node(op, inputs, [f"{name}_output_0"], name=name, **attrs))
        return f"{name}_output_0"

    def matrix(path: str, *shape: int) -> str:
        return weight(f"{path}.weight".removeprefix("/"),
                      random.normal(0, 0.1, shape).astype(np.float32))

    def linear(path: str, x: str, inside: int, outside: int) -> str:
        y = node("MatMul", f"{path}/MatMul", x, matrix(path.replace("/", "."), inside, outside))
        bias = weight(f"{path.replace('/', '.')}.bias", np.zeros(outside, np.float32))
        return node("Add", f"{path}/Add", y, bias)

    def norm(path: str, x: str) -> str:
        scale = weight(f"{path.replace('/', '.')}.weight", np.ones(WIDTH, np.float32))
        return node("LayerNormalization", f"{path}/LayerNormalization", x, scale)

    heads = weight("heads", np.array([1, TIME, HEADS, WIDTH // HEADS]))
    whole = weight("whole", np.array([1, TIME, WIDTH]))
    two, one, half, root = (weight(f"number_{i}", np.array(value, np.float32))
                            for i, value in enumerate((2 ** 0.5, 1.0, 0.5, 0.35)))
    mask = weight("mask", np.zeros((1, 1, TIME, TIME), np.float32))
    x = "x"
    for i in range(layers):
        at = f"layers.{i}"
        y = norm(f"{at}/norm1", x)
        q, k, v = (node("Transpose", f"{at}/attention/Transpose_{n}", node(
            "Reshape", f"{at}/attention/Reshape_{n}", linear(
                f"{at}/attention/{n}", y, WIDTH, WIDTH), heads), perm=[0, 2, 1, 3])
            for n in ("q", "k", "v"))
        k = node("Transpose", f"{at}/attention/Transpose", k, perm=[0, 1, 3, 2])
        scores = node("Mul", f"{at}/attention/Mul", node(
            "MatMul", f"{at}/attention/MatMul", q, k), root)
        scores = node("Softmax", f"{at}/attention/Softmax", node(
            "Add", f"{at}/attention/Add", scores, mask), axis=-1)
        y = node("MatMul", f"{at}/attention/MatMul_1", scores, v)
        y = node("Reshape", f"{at}/attention/Reshape", node(
            "Transpose", f"{at}/attention/Transpose_1", y, perm=[0, 2, 1, 3]), whole)
        x = node("Add", f"{at}/Add", x, linear(f"{at}/attention/out", y, WIDTH, WIDTH))
        y = linear(f"{at}/mlp/up", norm(f"{at}/norm2", x), WIDTH, 4 * WIDTH)
        gate = node("Erf", f"{at}/mlp/act/Erf", node("Div", f"{at}/mlp/act/Div", y, two))
        gate = node("Mul", f"{at}/mlp/act/Mul", y, node("Add", f"{at}/mlp/act/Add", gate, one))
        y = linear(f"{at}/mlp/down", node("Mul", f"{at}/mlp/act/Mul_1", gate, half),
                   4 * WIDTH, WIDTH)
        x = node("Add", f"{at}/Add_1", x, y)
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, TIME, WIDTH])
             for name in ("x", x)]
    graph = helper.make_graph(nodes, "encoder", kinds[:1], kinds[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
