"""A build whose inputs, outputs and sizes have names that no language takes, and its results."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import graphtool
from graphtool.native import runtime

HOSTILE = 'class"; */ """ \\\n ${x} `x` <script>'
N = 3


@dataclass(frozen=True)
class Sample:
    """The build, the values of its two inputs, and its results in the order of the outputs."""

    build: Path
    x: Any
    scale: Any
    results: tuple[Any, ...]


def hostile_model(path: Path) -> Path:
    """y = relu(x @ w) * scale and the sum of its rows."""
    rng = np.random.default_rng(0)
    w = onnx.numpy_helper.from_array(rng.standard_normal((4, 5)).astype(np.float32), "w")
    axes = onnx.numpy_helper.from_array(np.array([1], np.int64), "axes")
    nodes = [helper.make_node("MatMul", [HOSTILE, "w"], ["a"]),
             helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Mul", ["b", "fn"], ["return"]),
             helper.make_node("ReduceSum", ["return", "axes"], [HOSTILE + "2"], keepdims=0)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(HOSTILE, TensorProto.FLOAT, ["for", 4]),
                     helper.make_tensor_value_info("fn", TensorProto.FLOAT, [5])],
        [helper.make_tensor_value_info("return", TensorProto.FLOAT, ["for", 5]),
         helper.make_tensor_value_info(HOSTILE + "2", TensorProto.FLOAT, ["for"])], [w, axes])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=9), path)
    return path


def sample_in(folder: Path) -> Sample:
    """The build of `hostile_model` in a folder."""
    build = graphtool.build(graphtool.import_model(hostile_model(folder / "m.onnx")),
                            folder / "build", name="small", target="x86-64-v3")
    x = np.arange(N * 4, dtype=np.float32).reshape(N, 4) / 8
    scale = np.arange(5, dtype=np.float32)
    results = runtime.load(build, 1).run({HOSTILE: x, "fn": scale})
    return Sample(build, x, scale, tuple(results.values()))


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample_in(tmp_path_factory.mktemp("packaged"))


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """What a command prints, in an environment in which this checkout cannot be imported."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH",)}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**kept, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers(text: str) -> Any:
    """All numbers of a text, in order."""
    return np.array([float(word) for word in text.split()])


def expected(sample: Sample) -> Any:
    """The numbers that each program prints: both results, flat."""
    return np.concatenate([np.ravel(r) for r in sample.results])
