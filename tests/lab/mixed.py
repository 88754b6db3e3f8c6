"""Operators of two operands over pairs of element types: types and values beside torch's.

`tests.lab.mixed_calls` says what is called; here the calls are captured, evaluated, and compiled.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import torch

from benchmarks import tables, work
from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.dtypes import of_numpy
from graphtool.errors import GraphtoolError
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.live import array
from graphtool.ir.graph import Module
from graphtool.native import runtime
from tests import torch_export
from tests.importers.torch.agreement import Function
from tests.lab.mixed_calls import EXACT, NUMBERS, TEXTS, TYPES, Array, Call, calls, pairs
from tests.lab.opinfo_worker import reason_of

UNSIGNED = re.compile("max|min|clamp")  # torch's 0 there is the first or the second, by its place


@dataclass
class Verdicts:
    """What became of calls."""

    right: int = 0
    refused: list[tuple[Call, str]] = field(default_factory=list)
    wrong: list[tuple[Call, str]] = field(default_factory=list)


def judged(tried: Iterable[Call], compiled: bool = False) -> Verdicts:
    """The calls that torch takes, as one module or as few as can be imported."""
    verdicts, wanted = Verdicts(), []
    for call in tried:
        try:
            wanted.append((call, array(call.run(call.x, call.y))))
        except (RuntimeError, TypeError, OverflowError, ValueError,
                AttributeError):
            continue
    _judge(wanted, verdicts, compiled)
    return verdicts


def _judge(wanted: list[tuple[Call, Array]], verdicts: Verdicts, compiled: bool) -> None:
    if not wanted:
        return
    inputs = tuple(t for call, _ in wanted for t in call.tensors())
    try:
        module = import_torch(Function(lambda *xs: _model(wanted, xs)), inputs or (torch.ones(1),))
    except Exception as error:  # a refusal, or whatever torch's capture raises
        if len(wanted) > 1:
            middle = len(wanted) // 2
            _judge(wanted[:middle], verdicts, compiled)
            _judge(wanted[middle:], verdicts, compiled)
            return
        why = reason_of(error) if isinstance(error, GraphtoolError) else (
            f"{type(error).__name__}: {str(error).splitlines()[0][:150]}")
        verdicts.refused.append((wanted[0][0], why))
        return
    arrays = [array(t) for t in inputs]
    results = [("evaluator", evaluated(module, arrays))]
    if compiled:
        results.append(("C", _run(module, arrays)))
    for i, (call, want) in enumerate(wanted):
        whys = [f"{how}: {why}" for how, got in results if (why := apart(call, got[i], want))]
        if whys:
            verdicts.wrong.append((call, "; ".join(whys)))
        else:
            verdicts.right += 1


def _model(wanted: list[tuple[Call, Array]], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    out, rest = [], iter(inputs)
    for call, _ in wanted:
        kinds = call.name.split()[::2]
        x, y = (next(rest) if isinstance(v, torch.Tensor) and kind != "constant" else v
                for v, kind in zip((call.x, call.y), kinds, strict=True))
        out.append(call.run(x, y))
    return out


def evaluated(module: Module, inputs: Sequence[Array]) -> list[Array]:
    """The evaluator's results."""
    names = [v.hint for v in module.graph.inputs]
    with np.errstate(all="ignore"):
        return list(interp.run(module, dict(zip(names, inputs, strict=True))).values())


def _run(module: Module, inputs: Sequence[Array]) -> list[Array]:
    names = [v.hint for v in module.graph.inputs]
    with tempfile.TemporaryDirectory() as folder:
        model = runtime.load(build(module, Path(folder) / "build"), 1)
        return list(model.run(dict(zip(names, inputs, strict=True))).values())


def apart(call: Call, got: Array, want: Array) -> str:
    """How two results differ: type, shape, or a number and where it stands."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    same = (got == want) | ((got != got) & (want != want))
    if of_numpy(want.dtype).is_float:
        if call.text in EXACT and not UNSIGNED.search(call.text):
            same &= (np.signbit(got) == np.signbit(want)) | (want != want)
        f = ml_dtypes.finfo(want.dtype)
        roundings = 0 if call.text in EXACT else 2 if of_numpy(want.dtype).is_narrow else 64
        with np.errstate(all="ignore"):
            same |= np.isclose(
                got.astype(np.float64), want.astype(np.float64), rtol=roundings * float(f.eps),
                atol=0 if call.text in EXACT else float(
                    f.eps) if "logadd" in call.text else 2 * float(f.smallest_normal))
    at = np.flatnonzero(~same)
    if not at.size:
        return ""
    i = int(at[0])
    given = [v[i].item() if isinstance(v, torch.Tensor) and v.ndim else
             v.item() if isinstance(v, torch.Tensor) else v for v in (call.x, call.y)]
    return (f"{got.flat[i]} for {want.flat[i]} of {given[0]!r} and {given[1]!r}, "
            f"{at.size} of {got.size}")


# ---- the command -------------------------------------------------------------------------------

def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--functions", default="", help="those whose text contains this")
    parser.add_argument("--seed", type=int, default=0, help="draws the operands of rank 0")
    parser.add_argument("--share", type=float, default=1.0, help="of the pairs, drawn by the seed")
    parser.add_argument("--types", nargs="*", default=TYPES, help="of the first operand")
    parser.add_argument("--compile", action="store_true", help="compiled C as well")


def main(options: argparse.Namespace) -> int:
    """Try all, write the table; the number of wrong calls."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch_export.install()
    lines, total = [], Counter[str]()
    for text in (t for t in TEXTS if options.functions in t):
        counts, whys = Counter[str](), Counter[str]()
        for t in dict.fromkeys((*options.types, *NUMBERS)):
            rng = random.Random(f"{options.seed} {text} {t}")
            verdicts = judged((c for kinds, types in pairs() if types[0] == t and (
                rng.random() < options.share) for c in calls(text, kinds, types, options.seed)),
                options.compile)
            counts.update(right=verdicts.right, wrong=len(verdicts.wrong),
                          refused=len(verdicts.refused))
            whys.update(why for _, why in verdicts.refused)
            for call, why in verdicts.wrong:
                print(f"    {call}: {why}", file=sys.stderr, flush=True)
        total.update(counts)
        lines.append([f"`{text}`", *(str(counts[k]) for k in ("right", "wrong", "refused")),
                      "; ".join(why for why, _ in whys.most_common(3))[:200]])
        print(" ".join(lines[-1]), flush=True)
    head = (f"`{options.command_line}`; {len(lines)} functions: {total['right']} calls right, "
            f"{total['wrong']} wrong, {total['refused']} refused.")
    if not options.functions:
        work.results("mixed.md").write_text("\n\n".join([
            "# Operators of two operands, over pairs of element types", head, tables.markdown(
                ("function", "right", "wrong", "refused", "why"), lines)]))
    print(head)
    return total["wrong"]
