"""torch.compile by graphtool, by inductor, and eager torch: forward passes and training steps.

The contestants take turns within one process on one thread, so that all meet the same machine.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks import tables, work
from benchmarks.work import Row

HEAD = ("model", "what", "eager µs", "inductor", "graphtool", "graphtool, frozen")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=30, help="turns of each contestant")


def main(options: argparse.Namespace) -> int:
    import torch
    torch.set_num_threads(1)
    rows = []
    for name, (make, inputs) in _models().items():
        for what in ("forward", "step"):
            rows.append(_row(name, what, make, inputs, options.rounds))
            print(" ".join(_cells(rows[-1])), flush=True)
    text = "\n".join([
        "# torch.compile: graphtool beside inductor and eager torch", "",
        f"{work.stamp()['date']}, {work.stamp()['cpu']}, one thread; `{options.command_line}`. "
        "Medians of interleaved runs; the columns of compilers are times as a share of eager's.",
        "", tables.markdown(HEAD, [_cells(r) for r in rows])])
    work.results("dynamo.md").write_text(text)
    print(text)
    return 0


def _models() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    import torch
    from torch import nn

    def conv(a: int, b: int, step: int) -> list[Any]:
        return [nn.Conv2d(a, b, 3, step, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
    return {
        "mlp": (lambda: nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512),
                                      nn.ReLU(), nn.Linear(512, 10)),
                lambda: torch.randn(32, 256)),
        "conv net": (lambda: nn.Sequential(
            *conv(3, 32, 1), *conv(32, 64, 2), *conv(64, 64, 1), *conv(64, 128, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
            lambda: torch.randn(8, 3, 32, 32)),
        "transformer": (lambda: nn.Sequential(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(
                128, 4, 256, dropout=0.0, batch_first=True), 2), nn.Flatten(),
            nn.Linear(128 * 32, 10)), lambda: torch.randn(4, 32, 128)),
    }


def _row(name: str, what: str, make: Callable[[], Any], inputs: Callable[[], Any],
         rounds: int) -> Row:
    import torch

    from graphtool.torch_backend import graphtool_backend
    torch.manual_seed(0)
    model, x = make().train(what == "step"), inputs()
    ways: dict[str, dict[str, Any] | None] = {
        "eager": None, "inductor": {"backend": "inductor"},
        "graphtool": {"backend": graphtool_backend}}
    if what == "forward":
        ways["frozen"] = {"backend": graphtool_backend, "options": {"freeze": True}}
    calls = {}
    for way, settings in ways.items():
        torch._dynamo.reset()
        twin = copy.deepcopy(model)
        run = twin if settings is None else torch.compile(twin, dynamic=False, **settings)
        calls[way] = _forward(run, x) if what == "forward" else _step(run, twin, x)
        for _ in range(3):
            calls[way]()
    return {"model": name, "what": what, **_timed(calls, rounds)}


def _timed(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Microseconds of each, the median of its turns."""
    times: dict[str, list[float]] = {way: [] for way in calls}
    for _ in range(rounds):
        for way, call in calls.items():
            start = time.perf_counter()
            call()
            times[way].append(time.perf_counter() - start)
    return {way: statistics.median(t) * 1e6 for way, t in times.items()}


def _forward(run: Any, x: Any) -> Callable[[], Any]:
    import torch

    def call() -> Any:
        with torch.no_grad():
            return run(x)
    return call


def _step(run: Any, model: Any, x: Any) -> Callable[[], Any]:
    import torch
    y = torch.arange(len(x)) % 10
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def call() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(run(x), y).backward()
        optimizer.step()
    return call


def _cells(row: Row) -> list[str]:
    eager = row["eager"]
    shares = [f"{row[w] / eager:.2f}" if w in row else tables.GAP
              for w in ("inductor", "graphtool", "frozen")]
    return [row["model"], row["what"], f"{eager:.0f}", *shares]
