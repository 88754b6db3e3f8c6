"""Runs ops of torch's database in a process of its own and writes a row for each to stdout.

`python -m tests.lab.opinfo_worker SAMPLES FOLDER|- NAME…`: without a folder nothing is compiled.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from graphtool import interp, passes
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.live import array
from graphtool.ir.graph import Module
from graphtool.native import compiler, runtime
from graphtool.target import detect
from tests.lab.opinfo_samples import DTYPES, Batch, Sample, infos, samples

Row = dict[str, Any]
Array = np.ndarray[Any, Any]
TOLERANCE = {"float32": 2e-4, "float64": 1e-7}
UNSET = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
         "new_empty_strided")  # their elements mean nothing
TIES = ("topk", "sort", "kthvalue", "median", "nanmedian", "mode")  # which of equals: any
SIGNS = ("linalg.eigh", "linalg.svd", "svd")  # their vectors may point the other way
ALIKE = 3  # samples refused for one reason, after which the others are not tried


class Refusals(Protocol):
    """Who notes what is refused, and decides when trying smaller batches is of no use."""

    imported: bool

    def refused(self, reason: str, samples: Sequence[Sample]) -> None: ...

    def hopeless(self, reason: str) -> bool: ...


class Verdict:
    """What became of the samples of one op, in each element type."""

    def __init__(self, name: str) -> None:
        self.name, self.imported = name, False
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: dict[str, Counter[str]] = defaultdict(Counter)
        self.wrong: dict[str, list[str]] = defaultdict(list)

    def count(self, what: str, samples: Sequence[Sample]) -> None:
        for s in samples:
            self.counts[s.dtype][what] += 1

    def refused(self, reason: str, samples: Sequence[Sample]) -> None:
        self.count("refused", samples)
        for s in samples:
            self.reasons[s.dtype][reason] += 1

    def failed(self, mode: str, what: str, samples: Sequence[Sample]) -> None:
        self.count(f"{mode}_wrong", samples)
        for dtype in dict.fromkeys(s.dtype for s in samples):
            self.wrong[dtype].append(f"{mode}: {what}")

    def hopeless(self, reason: str) -> bool:
        """Whether nothing of the op was imported, and enough was refused for this reason."""
        return not self.imported and sum(r[reason] for r in self.reasons.values()) >= ALIKE

    def rows(self) -> list[Row]:
        return [{"op": self.name, "dtype": dtype, **counts, "reasons": dict(self.reasons[dtype]),
                 "wrong": self.wrong[dtype][:4]} for dtype, counts in self.counts.items()]


def check(name: str, dtypes: Sequence[torch.dtype], limit: int, folder: Path | None) -> list[Row]:
    """One op: a row for each of the element types that it takes."""
    verdict, info = Verdict(name), infos()[name]
    found = [s for dtype in dtypes for s in samples(info, dtype, limit)]
    verdict.count("samples", found)
    kept = [s for s in found if _runs(info.op, s)]
    verdict.refused("torch itself fails, or gives no tensor",
                    [s for s in found if not any(s is k for k in kept)])
    for batch, module in imported(info.op, kept, verdict):
        _evaluated(batch, module, verdict)
        if folder is not None:
            _compiled(batch, module, verdict, folder)
    return verdict.rows()


def _runs(op: Any, sample: Sample) -> bool:
    try:
        return bool(sample.call(op, [t.clone() for t in sample.tensors]))
    except Exception:
        return False


def imported(op: Any, kept: Sequence[Sample], verdict: Refusals) -> list[tuple[Batch, Module]]:
    """The samples as modules: one if all can be imported, else halves, down to single ones."""
    if not kept:
        return []
    batch = Batch(op, kept)
    try:
        found = [(batch, import_torch(batch, batch.inputs))]
        verdict.imported = True
        return found
    except GraphtoolError as error:
        reason = reason_of(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
    if len(kept) == 1 or "no handler" in reason or verdict.hopeless(reason):
        verdict.refused(reason, kept)
        return []
    middle = len(kept) // 2
    return [*imported(op, kept[:middle], verdict), *imported(op, kept[middle:], verdict)]


def reason_of(error: GraphtoolError) -> str:
    if isinstance(error, UnsupportedError) and error.items:
        return f"{error.items[0].name}: {error.items[0].reason}"
    return f"{error.code} {error.message.splitlines()[0][:200]}"


def _evaluated(batch: Batch, module: Module, verdict: Verdict) -> None:
    def run(inputs: dict[str, Array]) -> Sequence[Array]:
        return list(interp.run(module, inputs).values())
    _judged("eval", batch, module, run, verdict)


def _compiled(batch: Batch, module: Module, verdict: Verdict, folder: Path) -> None:
    out = folder / "build"
    try:
        target = detect()
        optimised = passes.run(module, supply={"target": target})
        model = runtime.load(build(optimised, out, target=target), 1)
        _judged("c", batch, module, lambda xs: list(model.run(xs).values()), verdict)
    except Exception as error:
        verdict.failed("c", f"{type(error).__name__} {str(error)[:300]}", batch.samples)
    finally:
        shutil.rmtree(out, ignore_errors=True)


def _judged(mode: str, batch: Batch, module: Module,
            run: Callable[[dict[str, Array]], Sequence[Array]], verdict: Verdict) -> None:
    """Counts the samples whose results agree with torch's."""
    names = [v.hint for v in module.graph.inputs]
    inputs = {n: array(t) for n, t in zip(names, batch.inputs, strict=False)}
    drawn = len(names) > len(batch.inputs)
    if drawn:
        inputs[names[-1]] = np.asarray([1, 2], np.uint64)
    try:
        outputs = iter(run(inputs))
    except GraphtoolError as error:
        verdict.failed(mode, f"{error.code} {error.message[:300]}", batch.samples)
        return
    for sample in batch.samples:
        wanted = sample.call(batch.op, [t.clone() for t in sample.tensors])
        pairs = [(next(outputs), array(w)) for w in wanted]
        if verdict.name in SIGNS:
            pairs = [(np.abs(got), np.abs(want)) for got, want in pairs]
        faults = [f for got, want in pairs[:1 if verdict.name in TIES else None]
                  if (f := fault(got, want, drawn or verdict.name in UNSET))]
        if faults:
            verdict.failed(mode, f"{faults[0]}; {_shown(sample)}", [sample])
        else:
            verdict.count(f"{mode}_ok", [sample])


def _shown(sample: Sample) -> str:
    return ", ".join(f"{list(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)
                     for x in sample.leaves)[:200]


def fault(got: Array, want: Array, shape_only: bool) -> str:
    """How a result differs; empty if it does not."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    tol = TOLERANCE.get(str(want.dtype), 0)
    if shape_only or np.allclose(got, want, rtol=tol, atol=tol, equal_nan=True):
        return ""
    at = np.argwhere(~np.isclose(got, want, rtol=tol, atol=tol, equal_nan=True))[0]
    return f"{got[tuple(at)]} for {want[tuple(at)]} at {at.tolist()}"


def main(arguments: Sequence[str]) -> None:
    limit, folder, names = int(arguments[0]), arguments[1], arguments[2:]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    compiler.BASE = tuple("-O1" if f == "-O3" else f for f in compiler.BASE)
    torch.set_num_threads(1)
    for name in names:
        for row in check(name, DTYPES, limit, None if folder == "-" else Path(folder)):
            print(json.dumps(row), flush=True)
        print(json.dumps({"done": name}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
