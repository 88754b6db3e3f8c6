"""What torch's and scikit-learn's exporters write, at every opset they know: as onnxruntime has it.

Where an exporter or onnxruntime itself refuses, there is nothing to compare.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from graphtool import interp
from graphtool.dtypes import as_strings
from graphtool.importers.onnx import import_model
from graphtool.verify.compare import compare

pytestmark = pytest.mark.slow
X = torch.linspace(-2, 2, 150).sin().reshape(2, 3, 5, 5)


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Any) -> Any:
        return self.fn(x)


def resized(x: Any) -> Any:
    return (F.interpolate(x, scale_factor=2, mode="bilinear"),
            F.interpolate(x, scale_factor=1.5, mode="nearest"),
            F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True))


def picked(x: Any) -> Any:
    rows = torch.zeros(2, 2, 5, 5, dtype=torch.long)
    return (x[:, 1:, ::2], x[..., [0, 2]], torch.where(x > 0, x, -x), x.topk(2, dim=1)[0],
            x.argmax(1), torch.gather(x, 1, rows), x.masked_fill(x > 0.5, 0.0))


def reduced(x: Any) -> Any:
    return (x.mean((2, 3)), x.norm(dim=1), x.std(1), x.prod(1), F.log_softmax(x, 1), x.max(1)[0],
            torch.logsumexp(x, 2), x.softmax(-1), x.cumsum(1))


def moved(x: Any) -> Any:
    b, c, h, w = x.shape
    return (x.view(b, c * h, w).permute(0, 2, 1), x.repeat(1, 2, 1, 1), x.unfold(2, 3, 1),
            x.split(2, 1)[0], torch.stack([x, x]), x.flatten(1), torch.roll(x, 1, 2),
            F.pad(x, (1, 1, 2, 0), mode="reflect"), F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2))


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.m = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6(),
            nn.ConvTranspose2d(8, 4, 3, 2, 1, 1), nn.PReLU(4), nn.Hardswish(), nn.GroupNorm(2, 4),
            nn.InstanceNorm2d(4, affine=True), nn.MaxPool2d(2, ceil_mode=True),
            nn.AvgPool2d(3, 1, 1, count_include_pad=False), nn.Dropout(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(4, 5), nn.LayerNorm(5), nn.GELU(), nn.SiLU(), nn.Softplus(),
            nn.Mish(), nn.ELU(), nn.Hardsigmoid(), nn.LogSigmoid())

    def forward(self, x: Any) -> Any:
        return self.m(x)


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l = nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True)
        self.g, self.r = nn.GRU(5, 4), nn.RNN(5, 4)

    def forward(self, x: Any) -> Any:
        y = x.reshape(6, 5, 5)
        return self.l(y)[0], self.g(y)[0], self.r(y)[0]


class Loops(nn.Module):
    """Loops and a branch that the data decide, kept by scripting."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for i in range(int((x > 0).sum()) % 5):
            y = y * 0.5 + i
        y = y + 1 if bool(y.sum() > 0) else y - 1
        return y


MODULES = {"resized": Calls(resized), "picked": Calls(picked), "reduced": Calls(reduced),
           "moved": Calls(moved), "layers": Layers(), "cells": Cells(), "loops": Loops()}


def written(name: str, opset: int, dynamo: bool) -> onnx.ModelProto | None:
    module = MODULES[name].eval()
    source: Any = torch.jit.script(module) if name == "loops" and not dynamo else module
    file = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(source, (X,), file, opset_version=opset, dynamo=dynamo,
                              input_names=["x"], keep_initializers_as_inputs=opset < 11)
    except Exception:  # the exporter has no word for it there
        return None
    return onnx.load_model_from_string(file.getvalue())


def same(proto: onnx.ModelProto, feed: dict[str, Any]) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    except Exception:  # an old exporter's own fault
        pytest.skip("onnxruntime refuses the model")
    want = [np.asarray([list(r.values()) for r in y]) if isinstance(y, list) else
            as_strings(y) if y.dtype == object else y for y in session.run(None, feed)]
    got = interp.run(import_model(proto), feed)
    assert [r for r in compare(dict(zip(got, want, strict=True)), got, 1e-4, 1e-3)
            if not r.ok] == []


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 20])
def test_torch_by_torchscript(name: str, opset: int) -> None:
    proto = written(name, opset, False)
    if proto is None:
        pytest.skip("the exporter refuses")
    if any(n.op_type == "ConstantFill" for n in proto.graph.node):
        pytest.skip("onnxruntime does not know ConstantFill")
    same(proto, {"x": X.numpy()})


@pytest.mark.parametrize("name", ["resized", "picked", "reduced", "moved", "layers", "cells"])
@pytest.mark.parametrize("opset", [18, 20, 22])
def test_torch_by_dynamo(name: str, opset: int) -> None:
    proto = written(name, opset, True)
    if proto is None:
        pytest.skip("the exporter refuses")
    same(proto, {"x": X.numpy()})


def test_scikit_learn_with_labels_that_are_words() -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn import ensemble, linear_model, naive_bayes, neighbors, neural_network, svm, tree
    from sklearn.datasets import load_iris
    data, numbers = load_iris(return_X_y=True)
    data, words = data.astype(np.float32), np.array(["a", "b", "é"])[numbers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in (linear_model.LogisticRegression(), ensemble.RandomForestClassifier(5),
                      ensemble.GradientBoostingClassifier(n_estimators=3), svm.SVC(),
                      tree.DecisionTreeClassifier(), neighbors.KNeighborsClassifier(),
                      naive_bayes.GaussianNB(), neural_network.MLPClassifier(max_iter=20)):
            for labels in (numbers, words):
                proto = skl2onnx.to_onnx(model.fit(data, labels), data[:1])
                same(proto, {proto.graph.input[0].name: data})
