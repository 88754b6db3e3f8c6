"""Models with open sizes: how each is made, its inputs of a size, and what is open.

`small` ones are the same models with few channels, for tests.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

import graphtool
from benchmarks.models import BATCHES
from benchmarks.models.dense import UNet
from benchmarks.models.extra_graphs import FEATURES, recommender
from benchmarks.models.extra_small import States
from benchmarks.models.open_nets import (
    Attention,
    Conformer,
    Edges,
    Encoder,
    Language,
    Listener,
    Patches,
    classifier,
    perceptron,
    segmenter,
)
from benchmarks.models.small import Tagger
from benchmarks.models.tasks import OWN, TASKS
from benchmarks.models.trained import DATA, NETWORKS
from graphtool.ir.graph import Module
from graphtool.symbolic import bind

SEED = 7
B, T, N, E = Dim("B", max=64), Dim("T", max=512), Dim("N", max=4096), Dim("E", max=32768)
ROWS = Dim("B", max=512)
H, W = 4 * Dim("h", min=2, max=64), 4 * Dim("w", min=2, max=64)
TALL, WIDE = 16 * Dim("h", min=1, max=16), 16 * Dim("w", min=1, max=16)
Inputs = Callable[..., tuple[Tensor, ...]]


@dataclass(frozen=True)
class Open:
    """`make(small)` is the model, `inputs(*size, small)` are those of a size, `dims` the open axes
    of each. With an `optimizer` it is trained: what `inputs` gives behind those of the model are
    the labels of `loss`. `steps`: it has a recurrent layer, which torch.export unrolls."""

    make: Callable[[bool], nn.Module]
    inputs: Inputs
    dims: tuple[dict[int, Any], ...]
    optimizer: str = ""
    precision: str = "default"
    loss: str = "cross_entropy"
    steps: bool = False

    def model(self, small: bool = False) -> nn.Module:
        torch.manual_seed(SEED)
        return self.make(small).eval()

    def given(self, size: tuple[int, ...], small: bool = False) -> tuple[Tensor, ...]:
        """The same numbers in every process."""
        torch.manual_seed(1)
        return self.inputs(*size, small)

    def example(self, small: bool = False) -> tuple[Tensor, ...]:
        """Inputs of the model of some size, none of it 0 or 1: torch fixes those."""
        names = {getattr(d, "root", d).__name__ for dims in self.dims for d in dims.values()}
        return self.given((2, 64, 96)[:len(names)], small)[:len(self.dims)]

    def module(self, small: bool = False) -> Module:
        """The graph with its open sizes; through ONNX where torch would unroll open time."""
        if not self.steps:
            return graphtool.import_model(torch.export.export(
                self.model(small), self.example(small), dynamic_shapes=self.dims))
        with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
            self.to_onnx(Path(folder) / "model.onnx", small)
            return graphtool.import_model(Path(folder) / "model.onnx",
                                          dynamic={"B": (1, 64), "T": (1, 512)})

    def to_onnx(self, path: Path, small: bool = False) -> None:
        """The model as an ONNX file with open sizes."""
        names = [f"in_{i}" for i in range(len(self.dims))]
        model, example = self.model(small), self.example(small)
        if self.steps:
            axes = {n: {axis: d.__name__ for axis, d in dims.items()}
                    for n, dims in zip(names, self.dims, strict=True)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's newer exporter would unroll the layer
                torch.onnx.export(model, example, str(path), dynamo=False, opset_version=17,
                                  input_names=names, dynamic_axes=axes)
        else:
            torch.onnx.export(model, example, str(path), dynamo=True, external_data=False,
                              opset_version=18, verbose=False, input_names=names,
                              dynamic_shapes=self.dims)

    def sizes(self, module: Module, size: tuple[int, ...], small: bool = False) -> dict[str, int]:
        """The values of the module's symbols for inputs of a size."""
        found: dict[str, Any] = {}
        for value, x in zip(module.graph.inputs, self.given(size, small), strict=False):
            bind(zip(value.type.shape, x.shape, strict=True), found)
        return found


def _rows(b: int, t: int, small: bool) -> tuple[Tensor]:
    return torch.randn(b, t, 64 if small else 256),


def _words(b: int, t: int, _: bool) -> tuple[Tensor]:
    return torch.randint(0, 1000, (b, t)),


def _images(side: int) -> Inputs:
    return lambda b, _: (torch.randn(b, 3, side, side),)


def _planes(b: int, h: int, w: int, _: bool) -> tuple[Tensor]:
    return torch.randn(b, 3, h, w),


def _bands(b: int, t: int, _: bool) -> tuple[Tensor]:
    return torch.randn(b, 80, 2 * t),


def _steps(width: int) -> Inputs:
    return lambda b, t, _: (torch.randn(b, t, width),)


def _edges(n: int, e: int, _: bool) -> tuple[Tensor, ...]:
    return torch.randn(n, FEATURES), torch.randint(0, n, (2, e)), torch.rand(e)


def _labelled(inputs: Inputs) -> Inputs:
    def made(*size: Any) -> tuple[Tensor, ...]:
        x, = inputs(*size)
        return x, torch.randint(0, 10, (len(x),))
    return made


def _layers(make: Callable[[int], nn.Module]) -> Callable[[bool], nn.Module]:
    """Four layers of 256, or a small one of 64."""
    return lambda small: nn.Sequential(*(make(64 if small else 256)
                                         for _ in range(1 if small else 4)))


ENCODER = Open(lambda small: Encoder(64, 1) if small else Encoder(256, 4), _rows, ({0: B, 1: T},))
CNN = Open(lambda small: classifier(16 if small else 32), _images(32), ({0: B},))
MODELS: dict[str, Open] = {
    "encoder": ENCODER,
    "encoder_fast": Open(ENCODER.make, _rows, ENCODER.dims, precision="fast"),
    "attention": Open(lambda small: Attention(64 if small else 256), _rows, ENCODER.dims),
    "language": Open(lambda small: Language(64, 1) if small else Language(256, 4), _words,
                     ENCODER.dims),
    "listener": Open(lambda small: Listener(64, 1) if small else Listener(256, 4), _bands,
                     ({0: B, 2: 2 * T},)),
    "conformer": Open(_layers(Conformer), _rows, ENCODER.dims),
    "patches": Open(lambda small: Patches(64, 1) if small else Patches(192, 4), _images(64),
                    CNN.dims),
    "cnn": CNN,
    "segmenter": Open(lambda small: segmenter(16 if small else 32), _planes,
                      ({0: B, 2: H, 3: W},)),
    "unet": Open(lambda small: UNet(4 if small else 16), _planes, ({0: B, 2: TALL, 3: WIDE},)),
    "mlp": Open(lambda small: perceptron(64 if small else 256),
                lambda b, _: (torch.randn(b, 784),), CNN.dims),
    "recommender": Open(lambda _: recommender(1)[0], lambda b, _: recommender(b)[1],
                        ({0: ROWS}, {0: ROWS})),
    "graph": Open(lambda _: Edges(), _edges, ({0: N}, {1: E}, {0: E})),
    "lstm": Open(lambda _: Tagger(), _steps(128), ENCODER.dims, steps=True),
    "gru": Open(lambda _: States(nn.GRU(64, 128, batch_first=True), 128, 10), _steps(64),
                ENCODER.dims, steps=True),
    "train_cnn": Open(CNN.make, _labelled(CNN.inputs), CNN.dims, "sgd{momentum=0.9}"),
    "train_encoder": Open(
        lambda small: Encoder(64, 1, 100) if small else Encoder(128, 2, 1000),
        _labelled(lambda b, _: (torch.randint(0, 100, (b, 64)),)), CNN.dims, "adamw"),
}


# ---- tasks of the training table ---------------------------------------------------------------


def _batch(task: str, b: int, _: bool) -> tuple[Tensor, ...]:
    """So many samples of the task, over and over, each with its labels."""
    x, y = DATA[task]()
    return x[torch.arange(b) % len(x)], y.unflatten(0, (len(x), -1))[
        torch.arange(b) % len(x)].flatten(0, 1)


def _trained(task: str) -> Open:
    own, row = TASKS[task].loss == OWN, TASKS[task]
    return Open(lambda _: NETWORKS[task](), partial(_batch, task), ({0: ROWS},) * (1 + own),
                row.recipe, loss="" if own else row.loss)


MODELS |= {f"train.{task}": _trained(task) for task in BATCHES}
