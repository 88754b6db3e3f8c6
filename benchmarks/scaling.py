"""Follows the cost of compiled models as they grow: batch, sequence, width and depth.

Time over nominal work must stay flat, or fall: what climbs has a loop that is not what it seems.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphtool.ops  # noqa: F401  (fills the table of ops)
from benchmarks import jobs, stats, tables, work
from benchmarks.work import Row
from graphtool import ops as o
from graphtool.dtypes import float32
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import Builder, Tracer

Make = Callable[[Builder, int], tuple[Tracer, Tracer]]


@dataclass(frozen=True)
class Family:
    """Models that differ in one number; `make` gives a model's input and its output."""

    grows: str
    sizes: tuple[int, ...]
    make: Make


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--families", default=list(FAMILIES),
                        type=lambda text: text.split(","), help=f"of {','.join(FAMILIES)}")
    parser.add_argument("-t", "--threads", default=[1, 2],
                        type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--seconds", type=float, default=0.3)


def main(options: argparse.Namespace) -> int:
    rows = []
    for name in options.families:
        for size in FAMILIES[name].sizes:
            row = jobs.run("benchmarks.scaling", "measure", name, size, options.threads,
                           options.seconds)
            rows.append({"family": name, "size": size, **row})
            print(_told(rows[-1]), flush=True)
    text = report(rows, options)
    work.results("scaling.md").write_text(text)
    print(f"\n{text}\n{work.results('scaling.md')} written")
    return sum("error" in row for row in rows)


def measure(family: str, size: int, threads: list[int], seconds: float) -> Row:
    """Nominal flops, and the median milliseconds of a run with so many threads each."""
    import graphtool
    from benchmarks.contest import hurry
    from benchmarks.worker import pin, rounds
    from graphtool.analysis import made_up
    from graphtool.analysis.costs import flops, total
    module = model(family, size)
    inputs = made_up.random_inputs(module, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = graphtool.build(module, Path(folder) / "b")
        times = {}
        for n in sorted(threads, reverse=True):  # a process can only give processors up
            pin(n)
            loaded = graphtool.load(path, threads=n)
            loaded.run(inputs)
            hurry(os.getpid(), True)
            times[str(n)] = stats.summary([rounds(loaded.call, seconds, 2000)]).median
            hurry(os.getpid(), False)
    return {"flops": total(flops, module.graph), "ms": times}


def model(family: str, size: int) -> Module:
    builder = Builder()
    x, y = FAMILIES[family].make(builder, size)
    return Module(Graph((x.value,), tuple(builder.nodes), (y.value,)), ("y",))


def report(rows: list[Row], options: argparse.Namespace) -> str:
    """Markdown: a table a family, with the exponent of time over work."""
    stamp = work.stamp()
    out = ["# Cost as the work grows", "",
           f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores; medians; the exponent p is "
           "that of time ~ workᵖ, by least squares: 1 is linear, less is better. Command: "
           f"`{options.command_line}`.", ""]
    for name in options.families:
        here = [r for r in rows if r["family"] == name and "ms" in r]
        if not here:
            continue
        out += [f"## {name}, over {FAMILIES[name].grows}", "", tables.markdown(
            [FAMILIES[name].grows, "MFLOP", *(f"{t}T ms" for t in options.threads),
             *(f"{t}T GFLOP/s" for t in options.threads)], [_cells(r, options) for r in here]),
            _exponents(here, options), ""]
    return "\n".join(out)


def _cells(row: Row, options: argparse.Namespace) -> list[str]:
    times = [row["ms"][str(t)] for t in options.threads]
    return [str(row["size"]), tables.number(row["flops"] / 1e6), *map(tables.number, times),
            *(tables.number(row["flops"] / t / 1e6) for t in times)]


def _exponents(rows: list[Row], options: argparse.Namespace) -> str:
    if len(rows) < 2:
        return ""
    found = [(t, stats.slope([r["flops"] for r in rows], [r["ms"][str(t)] for r in rows]))
             for t in options.threads]
    return "Exponent: " + ", ".join(f"{p:.2f} at {t}T" for t, p in found) + "."


def _told(row: Row) -> str:
    head = f"{row['family']} {row['size']}: "
    return head + (row["error"] if "error" in row else ", ".join(
        f"{tables.number(ms)} ms at {t}T" for t, ms in row["ms"].items()))


# ---- the families -------------------------------------------------------------------------------


def _weight(b: Builder, *shape: int) -> Tracer:
    values = np.random.default_rng(len(b.nodes)).standard_normal(shape) / np.sqrt(shape[0])
    return b.constant(values.astype(np.float32), "w", True)


def _input(b: Builder, *shape: int) -> Tracer:
    return b.input(TensorType(float32, shape), "x")


def _mlp(b: Builder, batch: int, width: int, depth: int) -> tuple[Tracer, Tracer]:
    x = y = _input(b, batch, width)
    for _ in range(depth):
        y = o.relu(o.matmul(y, _weight(b, width, width)) + _weight(b, width))
    return x, y


def _convnet(b: Builder, batch: int, size: int) -> tuple[Tracer, Tracer]:
    x = y = _input(b, batch, 3, size, size)
    for before, after in ((3, 32), (32, 32), (32, 64)):
        y = o.relu(o.conv(y, _weight(b, after, before, 3, 3), strides=(1, 1),
                          padding=((1, 1), (1, 1))))
        y = o.max_pool(y, window=(2, 2), strides=(2, 2))
    return x, y


def _encoder(b: Builder, length: int, width: int, depth: int) -> tuple[Tracer, Tracer]:
    x = y = _input(b, 1, length, width)
    for _ in range(depth):
        n = o.layer_norm(y, _weight(b, width), _weight(b, width), axes=(2,))
        q, k, v = (_heads(o.matmul(n, _weight(b, width, width)), length, width)
                   for _ in range(3))
        a = o.transpose(o.attention(q, k, v), perm=(0, 2, 1, 3))
        y = y + o.matmul(o.reshape(a, shape=(1, length, width)), _weight(b, width, width))
        n = o.layer_norm(y, _weight(b, width), _weight(b, width), axes=(2,))
        h = o.gelu(o.matmul(n, _weight(b, width, 4 * width)))
        y = y + o.matmul(h, _weight(b, 4 * width, width))
    return x, y


def _heads(x: Tracer, length: int, width: int) -> Any:
    split = o.reshape(x, shape=(1, length, width // 64, 64))
    return o.transpose(split, perm=(0, 2, 1, 3))


FAMILIES: dict[str, Family] = {
    "mlp-batch": Family("batch", (1, 2, 4, 8, 16, 32, 64), lambda b, n: _mlp(b, n, 512, 3)),
    "mlp-width": Family("width", (64, 128, 256, 512, 1024, 2048), lambda b, n: _mlp(b, 16, n, 3)),
    "mlp-small": Family("width", (16, 32, 64, 128, 256, 512), lambda b, n: _mlp(b, 1, n, 3)),
    "mlp-depth": Family("layers", (1, 4, 16, 64), lambda b, n: _mlp(b, 16, 256, n)),
    "conv-batch": Family("batch", (1, 4, 16, 64), lambda b, n: _convnet(b, n, 64)),
    "conv-size": Family("pixels a side", (32, 64, 128, 256), lambda b, n: _convnet(b, 1, n)),
    "conv-small": Family("pixels a side", (8, 12, 16, 24, 32), lambda b, n: _convnet(b, 1, n)),
    "encoder-small": Family("tokens", (1, 2, 4, 8, 16), lambda b, n: _encoder(b, n, 64, 1)),
    "encoder-sequence": Family("tokens", (32, 128, 512, 1024, 2048),
                               lambda b, n: _encoder(b, n, 256, 2)),
    "encoder-width": Family("width", (128, 256, 512, 1024), lambda b, n: _encoder(b, 128, n, 2)),
    "encoder-depth": Family("blocks", (1, 2, 4, 8), lambda b, n: _encoder(b, 128, 256, n)),
}
