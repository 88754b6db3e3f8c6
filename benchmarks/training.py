"""Times training steps, forward to optimizer, on graphtool and what else is installed; a table."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from benchmarks import tables, trainers, work, zoo
from benchmarks.models.tasks import TASKS
from benchmarks.trainers import PEERS
from benchmarks.work import Row


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)


def main(options: argparse.Namespace) -> int:
    rows = zoo.timed(options, "training", PEERS, "trainers", trainers.ensure)
    text = report(rows, options.command_line, options.models)
    work.results("training.md").write_text(text)
    print(f"\n{text}\n{work.results('training.md')} written")
    return zoo.failed(rows, options.models)


def report(rows: list[Row], command: str, models: Iterable[str] = ()) -> str:
    """Markdown: times and ratios, what a call costs, losses against float64, memory."""
    if not rows:
        return "Nothing was timed.\n"
    timed = [row for row in rows if not TASKS[row["model"]].overhead]
    names = list(dict.fromkeys(n for row in rows for n in row["contestants"]))
    last = rows[-1]
    return "\n".join([
        "# Time of one training step beside torch and JAX", "",
        f"{last['date']}, {last['cpu']}, {last['cores']} cores; float32; a step is forward, "
        "backward and optimizer (SGD with momentum, or Adam) on a batch that is there, until the "
        f"loss is a number in Python; contestants in turns, {last['rounds']} rounds of "
        f"{last['seconds']} s, medians of all steps. eager is torch 2 as it comes, fused with its "
        "fused optimizer, compile is torch.compile with that too, jax a jitted step with donated "
        "state. The ratio is the best peer's time over graphtool's, the spread how far apart the "
        f"medians of the rounds lie at most. Command: `{command}`.", "",
        *zoo.standing(timed, names), *_overhead(rows, names),
        "## Losses of the first 8 steps (3 of resnet18) against float64, largest relative error",
        "", zoo.facts(timed, names, "loss_error", tables.error),
        "## Peak resident memory of the process, MB", "",
        zoo.facts(timed, names, "peak_mb", lambda x: tables.number(x, 4)),
        *zoo.failures(rows, models)])


def _overhead(rows: list[Row], names: list[str]) -> list[str]:
    """The time of a step that computes next to nothing."""
    body = [[row["model"], str(row["threads"]), *(
        tables.number(1e3 * t if (t := zoo.medians(row).get(n)) else None) for n in names)]
        for row in rows if TASKS[row["model"]].overhead]
    return ["## What a call costs: a step of a layer of 4×2 weights, microseconds", "",
            tables.markdown(["model", "threads", *names], body)] if body else []
