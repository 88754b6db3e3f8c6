"""Loss curves of compiled training beside torch's: same weights, same batches, same optimizer.

Where float32 in torch itself leaves float64 by more than the bound, two float32 runs cannot agree
to it; the table therefore has the distance of both from float64.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs, tables, trainers, work
from benchmarks.models.tasks import TASKS
from benchmarks.work import Journal, Row

STEPS, BATCHES, BOUND, SEED, THREADS = 200, 10, 1e-4, 11, 1
SIDES = ("torch64", "torch", "graphtool")
PAIRS = (("graphtool", "torch"), ("torch", "torch64"), ("graphtool", "torch64"))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--redo", action="store_true", help="train again what is in the journal")
    parser.add_argument("--only", choices=SIDES, help="with --redo: no other side again")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("parity.jsonl"),
                      lambda row: (row["model"], row["side"], row["steps"]))
    models = [m for m in options.models if not TASKS[m].overhead]
    for model in models:
        for side in SIDES:
            known = (model, side, options.steps) in journal.rows()
            if known and not (options.redo and options.only in (None, side)):
                continue
            row = {"model": model, "side": side, "steps": options.steps, **work.stamp(),
                   **jobs.run("parity", "curve", model, side, options.steps, timeout=3600)}
            if "error" not in row:
                journal.add(row)
            print(f"{model} {side}: {row.get('error', 'done')}", flush=True)
    curves = {(m, s): np.array(row["losses"]) for (m, s, n), row in journal.rows().items()
              if n == options.steps and m in models}
    whole = [m for m in models if all((m, s) in curves for s in SIDES)]
    text = report({m: {s: curves[m, s] for s in SIDES} for m in whole}, options)
    if missing := [m for m in models if m not in whole]:
        text += f"\nNot measured: {', '.join(missing)}.\n"
    work.results("parity.md").write_text(text)
    print(f"\n{text}\n{work.results('parity.md')} written")
    return len(models) - len(whole)


# ---- the curves ---------------------------------------------------------------------------------


def curve(model: str, side: str, steps: int) -> Row:
    """The losses of one side, each before its step."""
    start = time.perf_counter()
    batches = _batches(model)
    order = np.random.default_rng(SEED).integers(0, BATCHES, steps)
    run = _graphtool(model) if side == "graphtool" else _torch(model, side == "torch64")
    losses = [run(*batches[i]) for i in order]
    return {"losses": losses, "seconds": time.perf_counter() - start}


def _batches(model: str) -> list[Any]:
    from benchmarks.models.trained import batches
    return batches(model, BATCHES)


def _torch(model: str, wide: bool) -> Any:
    import torch

    from benchmarks.models.trained import make
    torch.set_num_threads(THREADS)
    network, *_ = make(model)
    network = network.double() if wide else network
    optimizer = trainers.torch_optimizer(model, network)

    def step(x: Any, y: Any) -> float:
        optimizer.zero_grad(set_to_none=True)
        x = x.double() if wide and x.is_floating_point() else x
        loss = torch.nn.functional.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())
    return step


def _graphtool(model: str) -> Any:
    from benchmarks.models.trained import make
    from graphtool.train.model import TrainModel
    network, x, _ = make(model)
    folder: Path = work.cache("parity", model) / "build"
    trainers.train_build(model, network, x, folder)
    compiled, rate = TrainModel(folder, THREADS), TASKS[model].rate
    name = compiled.inputs[0]
    return lambda x, y: compiled.step({name: x.numpy(), "y": y.numpy()}, rate)


# ---- the report ---------------------------------------------------------------------------------


def report(curves: dict[str, dict[str, Any]], options: argparse.Namespace) -> str:
    """Markdown: the largest relative difference of two curves, for each pair of sides."""
    body = []
    for model, sides in curves.items():
        apart = {pair: distance(sides[pair[0]], sides[pair[1]]) for pair in PAIRS}
        losses = sides["torch64"]
        body.append([model, TASKS[model].optimizer, tables.number(float(losses[0])),
                     tables.number(float(losses[-1])), *(tables.error(d) for d in apart.values()),
                     verdict(*apart.values())])
    stamp = work.stamp()
    return "\n".join([
        f"# {options.steps} steps of training in compiled C and in torch", "",
        f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores, one thread; the same "
        f"initial weights, {BATCHES} random batches in one random order, the same optimizer. "
        "Figures are the largest relative difference of two loss curves over all steps. "
        f"Command: `{options.command_line}`.", "",
        tables.markdown(["model", "optimizer", "first loss", "last loss",
                         *(f"{a} to {b}" for a, b in PAIRS), f"within {BOUND:.0e}"], body),
        "torch64 is torch in float64. Where torch in float32 is itself farther than the bound "
        "from it, the rounding of one step grows with every further one, and no two orders of "
        "summation stay together; then the two distances from float64 are to be compared.", ""])


def distance(a: Any, b: Any) -> float:
    return float(np.max(np.abs(a - b) / np.abs(b)))


def verdict(apart: float, torch_drift: float, drift: float) -> str:
    """Whether the curves agree, and if not, whether torch's own agrees with float64."""
    if apart <= BOUND:
        return "yes"
    if torch_drift > BOUND:
        return f"torch's float32 is not either; ours {drift / torch_drift:.2f} times as far"
    return "no"
