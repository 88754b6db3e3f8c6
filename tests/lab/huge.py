"""Tensors of more than 2³¹ elements, of one byte each: the evaluator and compiled C beside numpy.

Positions in them need 64 bits. One tensor goes in and one comes out at a time, and what comes out
is compared part by part, so that a case takes about 5 GB.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs, tables, work
from benchmarks.work import Journal, Row
from graphtool import interp
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.dtypes import bool_
from graphtool.ir.graph import Module
from graphtool.native import runtime
from tests.passes.pass_samples import module

Array = np.ndarray[Any, Any]
N = (1 << 31) + 1000  # of x
SIDE = 46400  # of a square with more than 2³¹ elements
PART = 1 << 26
FAR = np.array([[0], [1 << 31], [N - 1], [(1 << 31) - 1], [12345]])


@dataclass(frozen=True)
class Case:
    """A function of x and of a few positions; `part` is what numpy makes of its flat result."""

    function: Callable[..., Any]
    size: int
    part: Callable[[Array, int, int], Array]
    types: tuple[str, ...] = (f"u8[{N}]",)


def _rolled(x: Array, begin: int, end: int) -> Array:
    return np.asarray(np.take(x, np.arange(begin, end) + 77, mode="wrap"))


def _turned(x: Array, begin: int, end: int) -> Array:
    at = np.arange(begin, end)
    return np.asarray(x[at % 2 * (N // 2) + at // 2])


def _outer(x: Array, begin: int, end: int) -> Array:
    at = np.arange(begin, end)
    return x[at // SIDE] ^ x[at % SIDE]


def _set(x: Array, begin: int, end: int) -> Array:
    out = x[begin:end].copy()
    for i, (at,) in enumerate(FAR.tolist()):
        if begin <= at < end:
            out[at - begin] = i + 1
    return out


def _far(x: Any) -> Any:
    return x.builder.constant(FAR)


def _values(x: Any) -> Any:
    return x.builder.constant(np.arange(1, len(FAR) + 1, dtype=np.uint8))


CASES = {
    "elementwise": Case(lambda x: x + 1, N, lambda x, a, b: x[a:b] + np.uint8(1)),
    "compare": Case(lambda x: o.cast(x > 100, dtype=bool_), N, lambda x, a, b: x[a:b] > 100),
    "slice": Case(lambda x: o.slice(x, start=(N - 500,), limit=(N,), strides=(1,)), 500,
                  lambda x, a, b: x[N - 500:][a:b]),
    "slice with steps": Case(
        lambda x: o.slice(x, start=(5,), limit=(N,), strides=(1000,)), (N - 5 + 999) // 1000,
        lambda x, a, b: x[5::1000][a:b]),
    "reverse": Case(lambda x: o.reverse(x, axes=(0,)), N, lambda x, a, b: x[N - b:N - a][::-1]),
    "roll": Case(lambda x: o.concat(o.slice(x, start=(77,), limit=(N,), strides=(1,)),
                                    o.slice(x, start=(0,), limit=(77,), strides=(1,)), axis=0),
                 N, _rolled),
    "transpose": Case(lambda x: x.reshape((2, N // 2)).transpose([1, 0]), N, _turned),
    "gather": Case(lambda x: o.gather(x, _far(x), axes=(0,)), len(FAR),
                   lambda x, a, b: x[FAR[a:b, 0]]),
    "scatter": Case(lambda x: o.scatter(x, _far(x), _values(x), axes=(0,)), N, _set),
    "largest": Case(lambda x: o.reduce_max(x, axes=(0,)), 1,
                    lambda x, a, b: x.max(keepdims=True)),
    "place of the largest": Case(lambda x: o.arg_reduce(x, kind="max", axis=0), 1,
                                 lambda x, a, b: np.array([x.argmax()])),
    "sum": Case(lambda x: o.reduce_sum(x, axes=(0,)), 1,
                lambda x, a, b: x.sum(keepdims=True, dtype=np.uint8)),
    "sums of rows": Case(lambda x: o.reduce_sum(x.reshape((N // 8, 8)), axes=(1,)), N // 8,
                         lambda x, a, b: x[8 * a:8 * b].reshape(-1, 8).sum(1, dtype=np.uint8)),
    "outer": Case(lambda x: x.reshape((SIDE, 1)) ^ x, SIDE * SIDE, _outer, (f"u8[{SIDE}]",)),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="cases whose names begin so")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("huge.jsonl"), lambda r: (r["case"], r["by"]))
    for name in (n for n in CASES if n.startswith(options.only)):
        for row in tried(name):
            journal.add({**row, **work.stamp()})
            print(row, flush=True)
    rows = list(journal.rows().values())
    work.results("huge.md").write_text(report(rows, options.command_line))
    return sum(r["outcome"] != "right" for r in rows)


def modelled(case: Case) -> Module:
    """The module of a case."""
    return module(case.function, *case.types)


def tried(name: str) -> Iterator[Row]:
    """What C and the evaluator make of one case."""
    case = CASES[name]
    model = modelled(case)
    (size,) = model.graph.inputs[0].type.shape
    x = np.tile(np.random.default_rng(0).integers(0, 250, 1 << 20, np.uint8),
                int(str(size)) // (1 << 20) + 1)[:int(str(size))]
    x[-7 % len(x)] = 255  # the largest, behind 2³¹
    given = {model.graph.inputs[0].hint: x}

    def in_c() -> Array:
        with tempfile.TemporaryDirectory(prefix="graphtool-huge-") as folder:
            return runtime.load(build(model, Path(folder) / "b"), 2).run(given)["y0"]
    for by, run in (("C", in_c), ("evaluator", lambda: interp.run(model, given)["y0"])):
        start = time.perf_counter()
        try:
            outcome = compared(run(), case, x)
        except Exception as error:
            outcome = jobs.short(error)
        yield {"case": name, "by": by, "outcome": outcome,
               "seconds": round(time.perf_counter() - start, 1)}


def compared(got: Array, case: Case, x: Array) -> str:
    """`right`, or where the first difference is."""
    flat = got.reshape(-1)
    if flat.size != case.size:
        return f"{flat.size} elements for {case.size}"
    for begin in range(0, case.size, PART):
        want = case.part(x, begin, min(begin + PART, case.size))
        if (off := np.flatnonzero(flat[begin:begin + PART] != want)).size:
            at = begin + int(off[0])
            return f"{flat[at]} for {want[off[0]]} at {at}"
    return "right"


def report(rows: list[Row], command: str) -> str:
    """A row for each case."""
    at = work.stamp()
    return "\n".join([
        "# Tensors of more than 2³¹ elements", "", f"`{command}`, {at['date']}, {at['cpu']}.", "",
        tables.markdown(["case", "by", "outcome", "seconds"],
                        [[r["case"], r["by"], r["outcome"], str(r["seconds"])] for r in rows]),
        ""])
