"""Functions of torch under every combination of their options, beside torch itself.

Numbers come in three sizes and two element types. Each case is right, or refused by a code.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from benchmarks import tables, work
from graphtool import interp
from graphtool.importers.torch.driver.live import array
from graphtool.ir.graph import Module
from tests.lab.fuzz.compare import difference
from tests.lab.opinfo_samples import Batch, Sample
from tests.lab.opinfo_worker import ALIKE, imported
from tests.lab.options import layers, tensors  # noqa: F401  (they fill the table)
from tests.lab.options.rows import ROWS, Row, T

Array = np.ndarray[Any, Any]
SIZES, DTYPES = (1e-4, 1.0, 300.0), (torch.float64, torch.float32)
ROUNDINGS = 512  # units in the last place of the largest number that a case reads or makes


@dataclass(frozen=True)
class Case:
    """One call of a row's function."""

    row: Row
    options: dict[str, Any]
    size: float
    sample: Sample

    def __str__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.options.items())
        return f"{self.row.function}({given}) of numbers around {self.size}, {self.sample.dtype}"


def cases(row: Row, size: float, dtype: torch.dtype) -> list[Case]:
    """The calls that torch itself takes."""
    made = [_case(row, options, size, dtype) for options in row.cases()]
    return [c for c in made if _taken(c.sample)]


def _case(row: Row, options: dict[str, Any], size: float, dtype: torch.dtype) -> Case:
    rng = np.random.default_rng(zlib.crc32(row.function.encode()))

    def drawn(x: Any) -> Any:
        if isinstance(x, list):
            return [drawn(T(v)) for v in x]
        return x.tensor(rng, dtype, size) if isinstance(x, T) else x
    operands = [drawn(x) for x in row.operands]
    given = {k: getattr(torch, v) if k == "dtype" else drawn(v) for k, v in options.items()}
    fn = eval(row.function, {"torch": torch, "F": torch.nn.functional})
    leaves, tree = pytree.tree_flatten(((fn, *operands), given))
    return Case(row, options, size, Sample(tuple(leaves), tree, str(dtype).removeprefix("torch.")))


def call(fn: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What fn returns: the operator of a batch of several functions."""
    return fn(*args, **named)


def _taken(sample: Sample) -> bool:
    try:
        return bool(sample.call(call, [t.clone() for t in sample.tensors]))
    except Exception:  # whatever torch raises
        return False


@dataclass
class Found:
    """What became of cases: how many were right, which were refused or wrong, and why."""

    right: int = 0
    refusals: list[tuple[Case, str]] = field(default_factory=list)
    wrong: list[tuple[Case, str]] = field(default_factory=list)
    imported: bool = False
    by_sample: dict[int, Case] = field(default_factory=dict)

    def refused(self, reason: str, samples: Sequence[Sample]) -> None:
        """Note a refusal of these samples."""
        self.refusals += [(self.by_sample[id(s)], reason) for s in samples]

    def hopeless(self, reason: str) -> bool:
        """Whether nothing was imported, and enough was refused for this reason."""
        return not self.imported and sum(why == reason for _, why in self.refusals) >= ALIKE


def judged(tried: Sequence[Case]) -> Found:
    """The cases as one module, or as few as can be imported, beside torch."""
    found = Found(by_sample={id(c.sample): c for c in tried})
    for batch, module in imported(call, [c.sample for c in tried], found):
        _compared(batch, module, found)
    return found


def _compared(batch: Batch, module: Module, found: Found) -> None:
    names = [v.hint for v in module.graph.inputs]
    inputs = {n: array(t) for n, t in zip(names, batch.inputs, strict=True)}
    with np.errstate(all="ignore"):
        outputs = iter(interp.run(module, inputs).values())
    for sample in batch.samples:
        wanted = [array(w) for w in sample.call(call, [t.clone() for t in sample.tensors])]
        operands = [array(t) for t in sample.tensors]
        kinds = [_difference(next(outputs), w, operands) for w in wanted]
        if any(kinds):
            found.wrong.append((found.by_sample[id(sample)], next(filter(None, kinds))))
        else:
            found.right += 1


def _difference(got: Array, want: Array, operands: Sequence[Array]) -> str:
    kind = difference(got, want, operands, ROUNDINGS)
    if kind != "value":
        return kind
    with np.errstate(all="ignore"):
        off = np.nan_to_num(np.abs(got.astype(np.float64) - want.astype(np.float64)))
    at = np.unravel_index(np.argmax(off), want.shape)
    return f"{got[at]} for {want[at]} at {list(map(int, at))}"


def drawn(seed: int, rows: int, of_each: int) -> Iterator[Case]:
    """A few cases of a few rows."""
    rng = random.Random(seed)
    for row in rng.sample(ROWS, rows):
        every = list(row.cases())
        made = (_case(row, options, rng.choice(SIZES), rng.choice(DTYPES))
                for options in rng.sample(every, len(every)))
        yield from itertools.islice((c for c in made if _taken(c.sample)), of_each)


# ---- the command -------------------------------------------------------------------------------

def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--functions", default="", help="those whose text contains this")


def main(options: argparse.Namespace) -> int:
    """Try all, write the table; the number of wrong cases."""
    lines, total, wrong = [], Counter[str](), []
    for row in (r for r in ROWS if options.functions in r.function):
        each = [judged(cases(row, s, d)) for s in SIZES for d in DTYPES]
        counts = {k: sum(len(getattr(f, k)) for f in each) for k in ("refusals", "wrong")}
        counts["right"] = sum(f.right for f in each)
        total.update(counts)
        wrong += [w for f in each for w in f.wrong]
        why = Counter(why for f in each for _, why in f.refusals)
        lines.append([row.function[:60], *(str(counts[k]) for k in ("right", "wrong", "refusals")),
                      "; ".join(why)[:200]])
        print(" ".join(lines[-1]), flush=True)
        for f in each:
            for case, text in f.wrong[:4]:
                print(f"    {case}: {text}", file=sys.stderr, flush=True)
    head = (f"`{options.command_line}`; {len(lines)} rows of functions, numbers around "
            f"{', '.join(map(str, SIZES))}, in float64 and float32: {total['right']} right, "
            f"{total['wrong']} wrong, {total['refusals']} refused.")
    if not options.functions:
        work.results("options.md").write_text("\n\n".join([
            "# Options of torch's functions, and their combinations", head, tables.markdown(
                ("function", "right", "wrong", "refused", "why"), lines)]))
    print(head)
    return len(wrong)
