"""Rebuilds a network that was exported to ONNX as calls of TensorFlow.js, for which there is no
converter: steps that web.mjs takes, and weights laid out as it wants them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
PLAIN = {"Add": "add", "Mul": "mul", "Relu": "relu", "Softmax": "softmax", "HardSwish": "hardSwish",
         "HardSigmoid": "hardSigmoid", "Reshape": "flat", "ReduceMean": "mean"}
WEIGHED = ("Conv", "Gemm")


class Rebuilt:
    """The steps of a graph, each with what it reads, and the weights. An activation behind a
    convolution or a product becomes part of it, as in the graphs that TensorFlow.js loads."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.known = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.graph, self.same = graph, dict[str, str]()
        self.weights, self.steps = list[Array](), list[dict[str, Any]]()
        self.readers = {v: [n for n in graph.node if v in n.input]
                        for v in {i for n in graph.node for i in n.input}}

    def run(self) -> bool:
        """Whether there is a step for each node."""
        return all(self.step(n) for n in self.graph.node)

    def step(self, n: onnx.NodeProto) -> bool:
        """Add what a node is; False if there is nothing for it."""
        if n.output[0] in self.same:
            return True
        a = {x.name: helper.get_attribute_value(x) for x in n.attribute}
        reads = [self.same.get(v, v) for v in n.input if v not in self.known]
        step: dict[str, Any] = {"inputs": reads, "output": n.output[0]}
        if n.op_type in WEIGHED and self.has_counterpart(n, a):
            step |= self.weighed(n, a)
        elif n.op_type in PLAIN:
            step |= {"op": PLAIN[n.op_type], "keep": bool(a.get("keepdims", 1))}
        else:
            return False
        self.steps.append(step)
        return True

    def has_counterpart(self, n: onnx.NodeProto, a: Mapping[str, Any]) -> bool:
        """Whether the weights are known, and a convolution is one of images, plain or depthwise,
        in which nothing is dilated."""
        if any(v not in self.known for v in n.input[1:]):
            return False
        shape, group = self.known[n.input[1]].shape, a.get("group", 1)
        return n.op_type != "Conv" or (
            len(shape) == 4 and (group == 1 or shape[:2] == (group, 1))
            and set(a.get("dilations", [1])) == {1})

    def weighed(self, n: onnx.NodeProto, a: Mapping[str, Any]) -> dict[str, Any]:
        """A convolution or a product, with what follows it."""
        w, *bias = (self.known[v] for v in n.input[1:])
        about: dict[str, Any] = {"op": "dense"}
        if n.op_type == "Conv":
            depthwise = a["group"] > 1
            w = w.transpose(2, 3, 0, 1) if depthwise else w.transpose(2, 3, 1, 0)
            top, left, bottom, right = a["pads"]
            about = {"op": "depthwise" if depthwise else "conv", "strides": list(a["strides"]),
                     "pad": [[0, 0], [top, bottom], [left, right], [0, 0]]}
        elif a.get("transB"):
            w = w.T
        return about | {"weights": [self.weight(v) for v in (w, *bias)],
                        "activation": self.activation(n.output[0])}

    def activation(self, value: str) -> str:
        """What alone reads a value and can be part of the step that computes it."""
        after = self.readers.get(value, [])
        word = "linear"
        if len(after) == 1 and after[0].op_type in ("Relu", "Clip"):
            ends = [self.known[v].item() for v in after[0].input[1:]]
            if ends in ([], [0, 6]):  # another clip has no counterpart
                word = "relu6" if ends else "relu"
                self.same[after[0].output[0]] = value
        return word

    def weight(self, w: Array) -> dict[str, Any]:
        """Where it lies in the file, in elements, and its shape."""
        at = sum(x.size for x in self.weights)
        self.weights.append(np.ascontiguousarray(w, np.float32))
        return {"at": at, "shape": list(w.shape)}


def rebuilt(path: Path, inputs: Mapping[str, Array]) -> Path | None:
    """The file of the steps, beside which the weights and the inputs lie, images with channels
    last; None if a node of the network has no simple counterpart."""
    made = Rebuilt(onnx.load(path).graph)
    if not made.run():
        return None
    folder = path.parent / "tfjs"
    folder.mkdir(exist_ok=True)
    (folder / "weights.bin").write_bytes(b"".join(w.tobytes() for w in made.weights))
    rows = list(_inputs(folder, inputs))
    result = made.graph.output[0].name
    (folder / "model.json").write_text(json.dumps({
        "inputs": rows, "steps": made.steps, "output": made.same.get(result, result)}))
    return folder / "model.json"


def _inputs(folder: Path, inputs: Mapping[str, Array]) -> Iterator[dict[str, Any]]:
    for name, x in inputs.items():
        last = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x
        (folder / f"{name}.bin").write_bytes(np.ascontiguousarray(last, np.float32).tobytes())
        yield {"name": name, "file": f"{name}.bin", "shape": list(last.shape)}
