"""Trains `digits.py` on scikit-learn's handwritten digits; writes `digits.onnx`, the data.

Run from anywhere: `python samples/train_digits.py`. Every random number comes from one seed and
torch computes on one thread, so a second run on the same machine writes the same bytes.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import digits
import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnxscript import ir, optimizer, rewriter
from onnxscript.rewriter.rules import common
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.nn import functional as F

SAMPLES = Path(__file__).resolve().parent
ROOT = SAMPLES.parent
SEED, EPOCHS, BATCH, RATE = 0, 60, 64, 5e-3
FRAME = re.compile(r'^ *File "([^"]+)", line \d+, in .*\n(?:(?! *File ").*\n?)*', re.MULTILINE)


def split() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images float32 [N, 1, 8, 8] in 0..1 and classes int64 [N]: 1437 to train on, 360 to test."""
    image, y = load_digits(return_X_y=True)
    image, y = (image / 16).astype(np.float32).reshape(-1, 1, 8, 8), y.astype(np.int64)
    parts = train_test_split(image, y, test_size=0.2, random_state=SEED, stratify=y)
    train, test, train_y, test_y = (torch.from_numpy(part) for part in parts)
    return train, train_y, test, test_y


def shift(image: Tensor) -> Tensor:
    """Moves each image by -1, 0 or 1 pixel along both axes; what comes in is blank."""
    count, _, height, width = image.shape
    dy, dx = torch.randint(3, (2, count, 1))
    rows = (dy + torch.arange(height))[:, :, None]
    columns = (dx + torch.arange(width))[:, None, :]
    padded = F.pad(image[:, 0], (1, 1, 1, 1))
    return padded[torch.arange(count)[:, None, None], rows, columns][:, None]


def train(model: digits.Digits, image: Tensor, y: Tensor) -> None:
    """AdamW under a one-cycle learning rate; leaves the model in eval mode."""
    steps = EPOCHS * -(-len(y) // BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=1e-2)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    model.train()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(BATCH):
            loss = F.cross_entropy(model(shift(image[rows])), y[rows], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rate.step()
    model.eval()


def project_frames(trace: str) -> str:
    """The frames of a stack trace that lie in this project, with paths relative to its root."""
    frames = [m for m in FRAME.finditer(trace) if Path(m[1]).is_relative_to(ROOT)]
    names = [Path(m[1]).relative_to(ROOT).as_posix() for m in frames]
    return "".join(m[0].replace(m[1], name) for m, name in zip(frames, names, strict=True)).strip()


def export(model: digits.Digits) -> onnx.ModelProto:
    """ONNX of opset 18 with the batch norms kept as nodes and no path outside the project.

    The exporter's own optimiser would fold the batch norms into the convolutions and drop the
    source lines of both, so constants and the shape of the flatten are folded here instead.
    """
    example = torch.cat(digits.inputs() * 2)  # a batch of 1 would be taken for a constant
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # from within torch.export
        program = torch.onnx.export(
            model,
            (example,),
            dynamo=True,
            opset_version=18,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=["image"],
            output_names=["logits"],
            optimize=False,
            verbose=False,
        )
    assert program is not None
    graph = program.model
    optimizer.fold_constants(graph, onnx_shape_inference=True)
    rules = [common.materialize_reshape_shape_rule, common.remove_optional_bias_from_conv_rule]
    graph = rewriter.rewrite(graph, pattern_rewrite_rules=rules)
    for node in graph.graph:
        key = "pkg.torch.onnx.stack_trace"
        node.metadata_props[key] = project_frames(node.metadata_props[key])
    proto = ir.to_proto(graph)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def accuracy(logits: NDArray[np.float32], y: Tensor) -> float:
    return float((logits.argmax(1) == y.numpy()).mean())


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    image, y, test, test_y = split()
    model = digits.model()
    train(model, image, y)

    data = export(model).SerializeToString(deterministic=True)
    (SAMPLES / "digits.onnx").write_bytes(data)
    np.savez_compressed(SAMPLES / "digits_train.npz", image=image.numpy(), y=y.numpy())
    np.savez_compressed(SAMPLES / "digits_test.npz", image=test.numpy(), y=test_y.numpy())

    with torch.no_grad():
        expected = model(test).numpy()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    got = session.run(["logits"], {"image": test.numpy()})[0]
    print(f"test accuracy  torch {accuracy(expected, test_y):.4f}", end="  ")
    print(f"onnxruntime {accuracy(got, test_y):.4f}  of {len(test_y)} images")
    print(f"largest difference of logits  {np.abs(got - expected).max():.1e}")


if __name__ == "__main__":
    main()
