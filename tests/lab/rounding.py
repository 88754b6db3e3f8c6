"""What rounding does to the first steps of training, on several batches from the same weights.

One batch says little of a deep network of ReLUs: a sum that comes out on the other side of zero
moves gradients by far more than it was off. So errors are averaged, and over classes of kernels.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs, tables, trainers, work
from benchmarks.models.tasks import TASKS
from benchmarks.work import Journal, Row

BATCHES, STEPS = 10, 3
TILES = {"winograd F(2,3)": 2, "direct": 0}  # kernels: the largest tile of Winograd's transforms
SIDES = ("torch", *TILES)
HEADS = ("gradients, median of the parameters", "gradient of the last weights",
         *(f"loss {k + 1}" for k in range(STEPS)))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batches", type=int, default=BATCHES)


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("rounding.jsonl"), lambda row: (row["model"], row["batch"]))
    for model in options.models:
        for batch in range(options.batches):
            if (model, batch) in journal.rows():
                continue
            row = {"model": model, "batch": batch, **work.stamp(),
                   **jobs.run("tests.lab.rounding", "errors", model, batch, timeout=3600)}
            if "error" not in row:
                journal.add(row)
            print(f"{model} {batch}: {row.get('error', 'done')}", flush=True)
    rows = [r for r in journal.rows().values() if r["model"] in options.models]
    text = report(rows, options.command_line)
    work.results("rounding.md").write_text(text)
    print(f"\n{text}\n{work.results('rounding.md')} written")
    return len(options.models) * int(options.batches) - len(rows)


def errors(model: str, batch: int) -> Row:
    """How far each side is from float64: what HEADS says, relative."""
    import torch

    from benchmarks.models.trained import batches
    torch.set_num_threads(1)
    data = batches(model, batch + 1)[batch]
    losses, grads = _torch(model, data, True)
    sides = {"torch": _torch(model, data, False)} | {
        name: _graphtool(model, data, tile) for name, tile in TILES.items()}
    out: dict[str, list[float]] = {}
    for name, (found, own) in sides.items():
        apart = [float(np.linalg.norm(own[n] - g) / np.linalg.norm(g)) for n, g in grads.items()]
        last = next(i for i in reversed(range(len(apart))) if list(grads.values())[i].ndim > 1)
        out[name] = [float(np.median(apart)), apart[last],
                     *(abs(a - b) / abs(b) for a, b in zip(found, losses, strict=True))]
    return {"sides": out}


def _torch(model: str, data: Any, wide: bool) -> tuple[list[float], dict[str, Any]]:
    from benchmarks.models.trained import make
    network, *_ = make(model)
    network = network.double() if wide else network
    optimizer = trainers.torch_optimizer(model, network)
    x, y = data
    x, y = (t.double() if wide and t.is_floating_point() else t for t in (x, y))
    losses, grads = list[float](), dict[str, Any]()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = trainers.torch_loss(model, network, x, y)
        loss.backward()
        losses.append(float(loss.item()))
        grads = grads or {n: p.grad.double().numpy() for n, p in network.named_parameters()}
        optimizer.step()
    return losses, grads


def _graphtool(model: str, data: Any, tile: int) -> tuple[list[float], dict[str, Any]]:
    """The first step's gradients are what momentum holds behind it."""
    from benchmarks.models.trained import make
    from graphtool.kernels.choice.rules import Rules
    from graphtool.train.model import TrainModel
    folder: Path = work.cache("rounding", model) / f"tile{tile}"
    if not folder.exists():
        trainers.train_build(model, *make(model), folder, Rules(winograd=tile))
    compiled = TrainModel(folder, 1)
    names = (*compiled.inputs, "y")[:2]
    batch = {n: a.numpy() for n, a in zip(names, data, strict=True)}
    losses, grads = list[float](), dict[str, Any]()
    for _ in range(STEPS):
        losses.append(compiled.step(batch, TASKS[model].rate))
        grads = grads or {n.removesuffix(".momentum_buffer"): a.astype(np.float64)
                          for n, a in compiled.state.items() if n.endswith(".momentum_buffer")}
    return losses, grads


def report(rows: list[Row], command: str) -> str:
    """Markdown: geometric means over the batches."""
    stamp, body = work.stamp(), []
    for model in dict.fromkeys(r["model"] for r in rows):
        own = [r["sides"] for r in rows if r["model"] == model]
        for side in SIDES:
            found = np.array([sides[side] for sides in own])
            means = np.exp(np.log(np.maximum(found, 1e-12)).mean(0))
            body.append([model, str(len(own)), side, *map(tables.error, means.tolist())])
    return "\n".join([
        "# Rounding in the first steps of training", "",
        f"{stamp['date']}, {stamp['cpu']}; relative errors beside torch in float64, geometric "
        "means over batches, each from the same weights; SGD with momentum. Command: "
        f"`{command}`.", "", tables.markdown(["model", "batches", "side", *HEADS], body)])
