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
AMP = ("torch", "autocast", "bfloat16", "float16")  # the last two are the pass `amp`
AMP_PAIRS = tuple((side, "torch") for side in AMP[1:])
PAIRS = (("graphtool", "torch"), ("torch", "torch64"), ("graphtool", "torch64"))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--redo", action="store_true", help="train again what is in the journal")
    parser.add_argument("--amp", action="store_true",
                        help="mixed precision beside torch's autocast: amp.md")
    parser.add_argument("--only", choices=tuple(dict.fromkeys((*SIDES, *AMP))),
                        help="with --redo: no other side again")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("parity.jsonl"),
                      lambda row: (row["model"], row["side"], row["steps"]))
    models = [m for m in options.models if not TASKS[m].overhead]
    sides = AMP if options.amp else SIDES
    for model in models:
        for side in sides:
            known = (model, side, options.steps) in journal.rows()
            if known and not (options.redo and options.only in (None, side)):
                continue
            row = {"model": model, "side": side, "steps": options.steps, **work.stamp(),
                   **jobs.run("tests.lab.parity", "curve", model, side, options.steps,
                              timeout=3600)}
            if "error" not in row:
                journal.add(row)
            print(f"{model} {side}: {row.get('error', 'done')}", flush=True)
    curves = {(m, s): np.array(row["losses"]) for (m, s, n), row in journal.rows().items()
              if n == options.steps and m in models}
    whole = [m for m in models if all((m, s) in curves for s in sides)]
    text = (amp_report if options.amp else report)(
        {m: {s: curves[m, s] for s in sides} for m in whole}, options)
    if missing := [m for m in models if m not in whole]:
        text += f"\nNot measured: {', '.join(missing)}.\n"
    file = work.results("amp.md" if options.amp else "parity.md")
    file.write_text(text)
    print(f"\n{text}\n{file} written")
    return len(models) - len(whole)


# ---- the curves ---------------------------------------------------------------------------------


def curve(model: str, side: str, steps: int) -> Row:
    """The losses of one side, each before its step."""
    start = time.perf_counter()
    batches = _batches(model)
    order = np.random.default_rng(SEED).integers(0, BATCHES, steps)
    run = _torch(model, side) if side in ("torch", "torch64", "autocast") else _graphtool(
        model, "" if side == "graphtool" else side)
    losses = [run(*batches[i]) for i in order]
    return {"losses": losses, "seconds": time.perf_counter() - start}


def _batches(model: str) -> list[Any]:
    from benchmarks.models.trained import batches
    return batches(model, BATCHES)


def _torch(model: str, side: str) -> Any:
    import torch

    from benchmarks.models.trained import make
    torch.set_num_threads(THREADS)
    network, *_ = make(model)
    wide = side == "torch64"
    network = network.double() if wide else network
    optimizer = trainers.torch_optimizer(model, network)

    def step(x: Any, y: Any) -> float:
        optimizer.zero_grad(set_to_none=True)
        x, y = (t.double() if wide and t.is_floating_point() else t for t in (x, y))
        with torch.autocast("cpu", torch.bfloat16, enabled=side == "autocast"):
            loss = trainers.torch_loss(model, network, x, y)
        loss.backward()
        optimizer.step()
        return float(loss.item())
    return step


def _graphtool(model: str, dtype: str) -> Any:
    from benchmarks.models.trained import make
    from graphtool.train.model import TrainModel
    folder: Path = work.cache("parity", model) / f"build{dtype}"
    trainers.train_build(model, *make(model), folder,
                         first=f"amp{{dtype={dtype}}}" if dtype else "")
    compiled, rate = TrainModel(folder, THREADS), TASKS[model].rate
    names = (*compiled.inputs, "y")[:2]
    return lambda *xy: compiled.step({n: a.numpy() for n, a in zip(names, xy, strict=True)}, rate)


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


def amp_report(curves: dict[str, dict[str, Any]], options: argparse.Namespace) -> str:
    """Markdown: how far the losses in mixed precision are from torch's in float32, on average over
    the steps and at most, and where they end."""
    body = []
    for model, sides in curves.items():
        for a, b in AMP_PAIRS:
            apart = np.abs(sides[a] - sides[b])
            body.append([model, a, tables.number(float(sides[b][0])),
                         tables.number(float(np.mean(sides[b][-10:]))),
                         tables.number(float(np.mean(sides[a][-10:]))),
                         tables.error(float(apart.mean())), tables.error(float(apart.max()))])
    stamp = work.stamp()
    return "\n".join([
        f"# {options.steps} steps of training in mixed precision", "",
        f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores, one thread; the same initial "
        f"weights, {BATCHES} random batches in one random order, the same optimizer. bfloat16 and "
        "float16 are graphtool's pass `amp`, float16 with its loss scale; autocast is torch's on "
        "the CPU in bfloat16. Differences are of the loss, from torch's in float32. "
        f"Command: `{options.command_line}`.", "",
        tables.markdown(["model", "side", "first loss", "float32's last 10", "own last 10",
                         "mean difference", "largest"], body)])


def distance(a: Any, b: Any) -> float:
    return float(np.max(np.abs(a - b) / np.abs(b)))


def verdict(apart: float, torch_drift: float, drift: float) -> str:
    """Whether the curves agree, and if not, whether torch's own agrees with float64."""
    if apart <= BOUND:
        return "yes"
    if torch_drift > BOUND:
        return f"torch's float32 is not either; ours {drift / torch_drift:.2f} times as far"
    return "no"
