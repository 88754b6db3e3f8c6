"""Random ONNX graphs: the seeds of a span evaluated, and those of some spans compiled."""

from __future__ import annotations

import time
import warnings
from functools import cache

import onnx

from tests.lab.fuzz import grow
from tests.lab.fuzz.compiled import compiled
from tests.lab.fuzz.evaluated import evaluated
from tests.lab.fuzz.judged import Evaluated, count, keep_arrays, kept
from tests.lab.fuzz.oracle import Oracle
from tests.lab.fuzz.outcome import Outcome
from tests.lab.fuzz.processes import Span, Tell
from tests.lab.fuzz.seeds import chosen


@cache
def oracle() -> Oracle:
    """One a process: it takes longer to start than a graph takes."""
    return Oracle()


def work(span: Span, tell: Tell, share: float = 0.0, only: tuple[str, ...] = (),
         keep: bool = False) -> Outcome:
    """The outcome of a span; `keep` writes the models and their inputs to the work folder."""
    warnings.simplefilter("ignore")
    out, start = Outcome(), time.perf_counter()
    found: list[Evaluated] = []
    for seed in range(*span):
        tell(seed)
        case = grow.case(seed, only)
        if keep:
            onnx.save(case.model, kept(seed, ".onnx"))
            keep_arrays(seed, ".npz", case.inputs)
        found.append(evaluated(case, oracle()))
    out.seconds["evaluated"] = time.perf_counter() - start
    if chosen(span, share):
        start = time.perf_counter()
        out.compiled = compiled(found, tell=tell)
        out.seconds["compiled"] = time.perf_counter() - start
    count(found, out)
    return out
