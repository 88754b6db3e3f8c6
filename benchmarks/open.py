"""Times builds with open sizes beside builds of the same model for one size, in turns.

The open build is `graphtool`, so that a ratio is the fixed build's time over its own: 1 is as fast.
A contest is a model at a size, `NAME@4x128`.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from benchmarks import stats, tables, work, zoo
from benchmarks.league import Case, Loaded, Peer
from benchmarks.models import OPEN
from benchmarks.work import Prepared, Row

GOAL = 1.1  # the most that an open build may take, in times of the fixed one's
FIXED = "fixed"


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)


def main(options: argparse.Namespace) -> int:
    options.models = [f"{name}@{'x'.join(map(str, size))}" for name in options.models
                      for size in OPEN[name]]
    rows = zoo.timed(options, "open", PEERS, "open", lambda model: True)
    text = report(rows, options.command_line)
    work.results("open.md").write_text(text)
    print(f"\n{text}\n{work.results('open.md')} written")
    return sum("error" in row["contestants"].get(stats.OURS, {}) for row in rows)


# ---- what builds and runs -----------------------------------------------------------------------


def case(model: str, peer: str, threads: int) -> Case:
    """The open build of a model is one for all its sizes."""
    name = model.partition("@")[0] if peer == stats.OURS else model
    return Case(Prepared(model, work.root() / "open" / model), threads,
                work.cache(f"open_{peer}", name))


def facts(case: Case, loaded: Loaded, result: Any) -> Row:
    """The greatest difference from torch over the greatest result; nothing for training steps."""
    import torch
    found, x = _input(case.model.name)
    if found.optimizer:
        return {}
    with torch.no_grad():
        want = found.model()(x).numpy()
    return {"error32": work.error_of(loaded.outputs(result), [want])}


def _parts(model: str) -> tuple[Any, tuple[int, ...]]:
    """The model's row, and the size of the contest."""
    from benchmarks.models.open_sizes import MODELS
    name, _, size = model.partition("@")
    return MODELS[name], tuple(map(int, size.split("x")))


def _input(model: str) -> tuple[Any, Any]:
    import torch
    found, size = _parts(model)
    torch.manual_seed(1)
    return found, found.input(*size, False)


def _build(case: Case, fixed: bool) -> None:
    import graphtool
    from graphtool.compile import as_is
    from graphtool.transforms.training import Recipe, training
    found, size = _parts(case.model.name)
    module = graphtool.import_model(found.program(size if fixed else None))
    if found.optimizer:
        as_is.build(training(module, Recipe("cross_entropy", optimizer=found.optimizer)),
                    case.cache / "build")
    else:
        graphtool.build(module, case.cache / "build", precision=found.precision)


def _load(case: Case) -> Loaded:
    from graphtool.native import runtime
    from graphtool.train.model import TrainModel
    found, x = _input(case.model.name)
    if found.optimizer:
        trained = TrainModel(case.cache / "build", case.threads)
        labels = np.random.default_rng(0).integers(0, 10, len(x))
        batch = dict(zip((*trained.inputs, "y"), (x.numpy(), labels), strict=False))
        return Loaded(lambda: trained.step(batch, 1e-6))
    model = runtime.load(case.cache / "build", case.threads)
    results = model.run({model.inputs[0].name: x.numpy()})
    return Loaded(model.call, lambda _: list(results.values()))


PEERS: dict[str, Peer] = {
    stats.OURS: Peer(stats.OURS, ("torch",), _load, partial(_build, fixed=False)),
    FIXED: Peer(FIXED, ("torch",), _load, partial(_build, fixed=True))}


# ---- the table ----------------------------------------------------------------------------------


def report(rows: list[Row], command: str = "") -> str:
    """Markdown: for each number of threads the time of each model at each size, open over fixed."""
    if not rows:
        return "Nothing was timed.\n"
    last = rows[-1]
    out = ["# Time with open sizes beside fixed ones", "",
           f"{last['date']}, {last['cpu']}, {last['cores']} cores; one build with open sizes and "
           f"a build for each size, in turns, {last['rounds']} rounds of {last['seconds']} s, "
           f"medians of all calls in milliseconds; the goal is open/fixed ≤ {GOAL}."
           + (f" Command: `{command}`." if command else ""), ""]
    for threads in sorted({row["threads"] for row in rows}):
        here = [row for row in rows if row["threads"] == threads]
        out += [f"## {threads} thread{'s' if threads > 1 else ''}", "", _table(here), _told(here),
                ""]
    out += ["## Largest difference from torch, over the largest output", "",
            zoo.facts(rows, [stats.OURS, FIXED], "error32", tables.error)]
    return "\n".join([*out, *zoo.failures(rows)])


def _ratio(row: Row) -> float | None:
    times = zoo.medians(row)
    return times[stats.OURS] / times[FIXED] if {stats.OURS, FIXED} <= times.keys() else None


def _table(rows: list[Row]) -> str:
    body = []
    for row in rows:
        times, name = zoo.medians(row), row["model"]
        spread = max((row["contestants"][n]["spread"] for n in times), default=0.0)
        body.append([*name.split("@"), *(tables.number(times.get(n)) for n in (stats.OURS, FIXED)),
                     tables.number(_ratio(row)), f"{100 * spread:.0f} %"])
    return tables.markdown(["model", "size", "open", "fixed", "open/fixed", "spread"], body)


def _told(rows: list[Row]) -> str:
    ratios = [r for r in map(_ratio, rows) if r]
    return "" if not ratios else (
        f"Geometric mean of open/fixed: {stats.geometric_mean(ratios):.2f}; greatest "
        f"{max(ratios):.2f}; above {GOAL}: {sum(r > GOAL for r in ratios)} of {len(ratios)}.")
