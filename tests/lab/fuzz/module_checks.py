"""Random torch modules, captured, imported and evaluated beside torch, forward and gradients.

If a result differs, each line is tried alone, on the operands that torch had: it is to blame, or
the module as a whole is.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks import jobs
from graphtool import interp
from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.live import array
from graphtool.ir.graph import Module
from tests import torch_export
from tests.lab.fuzz import module_layers  # noqa: F401  (fills the table)
from tests.lab.fuzz.compare import amplified, assumed, difference, differing
from tests.lab.fuzz.compiled import compiled
from tests.lab.fuzz.growing import Unfit
from tests.lab.fuzz.judged import SECONDS, Evaluated, after_passes, code, count, kept
from tests.lab.fuzz.module_edges import EDGES, EdgeModule
from tests.lab.fuzz.module_gradients import Undefined, gradients
from tests.lab.fuzz.module_quirks import quirk
from tests.lab.fuzz.module_rows import ROWS
from tests.lab.fuzz.modules import GrowingModule, Line, ModuleCase
from tests.lab.fuzz.outcome import Outcome
from tests.lab.fuzz.processes import Span, Tell
from tests.lab.fuzz.seeds import chosen
from tests.lab.suite.limits import limited

Array = np.ndarray[Any, Any]
LINES = 10


def case(seed: int, only: Sequence[str] = (), wide: bool = False,
         edges: bool = False) -> ModuleCase:
    """The module of a seed; `wide` makes every float a float64, `edges` is the other table."""
    rng = random.Random(seed)
    training = rng.random() < 0.25
    kind, rows = (EdgeModule, EDGES) if edges else (GrowingModule, ROWS)
    g = kind(rng, training, special=rng.random() < 0.15 and not wide, wide=wide)
    wanted, names = rng.randint(2, LINES), list(only or rows)
    for _ in range(8 * wanted):
        if len(g.lines) >= wanted:
            break
        before = (dict(g.values), list(g.inputs), len(g.lines), dict(g.layers))
        g.op = rng.choice(names)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows[g.op](g)
        except Unfit:
            g.values, g.inputs, g.layers = before[0], before[1], before[3]
            del g.lines[before[2]:]
    read = {r for line in g.lines for r in line.reads}
    outputs = tuple(line.makes for line in g.lines if line.makes not in read)
    used = [n for n in g.inputs if n in read]
    kinds = [f"{line.op} {str(g.values[(line.reads or (line.makes,))[0]].dtype)[6:]}"
             for line in g.lines]
    return ModuleCase(
        seed, {n: array(g.values[n]) for n in used}, tuple(line.op for line in g.lines),
        tuple(kinds), tuple(used), tuple(g.lines), g.values, g.layers, outputs,
        "fx" if rng.random() < 0.25 else "export", training,
        rng.choice((3, 5)) if rng.random() < 0.2 and not wide else None)


def work(span: Span, tell: Tell, share: float = 0.0, only: tuple[str, ...] = (),
         grad: bool = False, keep: bool = False, edges: bool = False) -> Outcome:
    """The outcome of a span; `keep` writes the texts of the modules to the work folder."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch_export.install()
    out, start = Outcome(), time.perf_counter()
    found: list[Evaluated] = []
    for seed in range(*span):
        tell(seed)
        made = case(seed, only, grad, edges)
        if keep:
            kept(seed, ".py").write_text(made.source(made.lines, made.names, made.outputs))
        if made.lines:
            found.append(evaluated(made, grad))
    out.seconds["evaluated"] = time.perf_counter() - start
    if chosen(span, share):
        start = time.perf_counter()
        out.compiled = compiled([e for e in found if e.case.inputs], tell=tell)
        out.seconds["compiled"] = time.perf_counter() - start
    count(found, out)
    return out


def evaluated(made: ModuleCase, grad: bool = False) -> Evaluated:
    """The module through torch, the importer, the evaluator and the passes."""
    found = Evaluated(made)
    torch.manual_seed(0)
    try:
        want = [array(t.detach()) for t in made.module()(*made.tensors())]
    except Exception as error:  # writes through views of lines before have changed what comes
        found.status, found.why = "skipped", jobs.short(error, 100)
        return found
    try:
        with limited(SECONDS):
            module = imported(made)
            given = bound(module, made.inputs)
            got = interp.run(module, given)
    except UnsupportedError as error:
        found.status, found.why = "refused", "; ".join(
            f"{i.name}: {i.reason}" for i in error.items)[:200] or error.code
        return found
    except Exception as error:
        if made.dynamic is not None and isinstance(error, GraphtoolError):
            found.status, found.why = "refused", f"{error.code} with an open size"
        elif why := quirk(made, jobs.short(error)):
            found.status, found.why = "explained", why
        else:
            found.status, found.why = "wrong", jobs.short(error)
            found.blame(f"torch: {code(error)} in {blamed(made)}", jobs.short(error))
        return found
    named = dict(zip(module.output_names, want, strict=False))
    shown = {n: got[n] for n in named}
    made.inputs, found.module, found.want = given, module, got
    found.assume = assumed([*map(array, made.values.values()), *got.values()])
    if wrong := differing(shown, named, len(module.graph.nodes)):
        if still := differing(shown, named, len(module.graph.nodes),
                              amplified(module, given, got)):
            kind = next(iter(still.values()))
            if why := quirk(made, kind):
                found.status, found.why = "explained", why
            else:
                found.status = "wrong"
                found.blame(f"torch: {_kind(kind)} in {blamed(made)}", _said(made))
        else:
            found.status, found.why = "explained", f"the module amplifies {min(wrong.values())}"
    after_passes(found)
    if grad and not found.findings:
        _differentiated(made, found)
    return found


def _differentiated(made: ModuleCase, found: Evaluated) -> None:
    """The gradients beside torch's."""
    assert found.module is not None
    try:
        with limited(SECONDS):
            why = gradients(made, found.module)
    except UnsupportedError as error:
        found.status, found.why = "refused", f"gradient: {error.message}"[:200]
    except Undefined as error:
        found.status, found.why = "refused", f"torch: {error}"[:100]
    except Exception as error:
        found.blame(f"gradient: {code(error)} in {blamed(made, True)}", jobs.short(error))
    else:
        if why and (known := quirk(made, f"gradient: {why}")):
            found.status, found.why = "explained", known
        elif why:
            found.blame(f"gradient: {why} in {blamed(made, True)}", _said(made))


def imported(made: ModuleCase, module: torch.nn.Module | None = None) -> Module:
    """The imported module; the dims of the open size are open."""
    args = made.tensors()
    places = [f"{n}.{d}" for n, t in zip(made.names, args, strict=True)
              for d, size in enumerate(t.shape) if size == made.dynamic]
    dynamic: dict[str, Any] = {f"N@{','.join(places)}": (1, 64)} if places else {}
    return import_torch(made.module() if module is None else module, args, capture=made.capture,
                        dynamic=dynamic, names=list(made.names))


def bound(module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs by the graph's names; states have their first values, seeds are given."""
    given: dict[str, Array] = {}
    names = list(inputs)
    for i, v in enumerate(module.graph.inputs):
        if i < len(names):
            given[v.hint] = inputs[names[i]]
        elif i in module.initial:
            given[v.hint] = np.asarray(module.initial[i].source)
        else:
            given[v.hint] = np.ones([int(str(s)) for s in v.type.shape], v.type.dtype.numpy)
    return given


# ---- what is to blame --------------------------------------------------------------------------

def blamed(made: ModuleCase, grad: bool = False) -> str:
    """The rows of the lines that differ alone; else all rows of the module."""
    wrong = {f"{line.op} ({kind})" for line in made.lines if (kind := alone(made, line, grad))}
    return ", ".join(sorted(wrong)) or f"the whole: {_ops(made.lines)}"


def alone(made: ModuleCase, line: Line, grad: bool = False) -> str:
    """How the line, or its gradient, differs alone on torch's operands; empty if it does not."""
    inputs = {n: array(made.values[n]) for n in line.reads}
    small = replace(made, inputs=inputs, names=line.reads, lines=(line,), outputs=(line.makes,),
                    dynamic=None)
    try:
        want = array(small.module()(*small.tensors())[0].detach())
        with limited(SECONDS):
            module = imported(small)
            small.inputs = bound(module, inputs)
            if grad:
                return gradients(small, module)
            got = interp.run(module, small.inputs)[module.output_names[0]]
    except Exception as error:
        return code(error)
    return _kind(difference(got, want, [*inputs.values()]))


def _kind(kind: str) -> str:
    return kind.partition(" ")[0]


def _ops(lines: Sequence[Line]) -> str:
    return " ".join(sorted({line.op for line in lines}))


def _said(made: ModuleCase) -> str:
    return " | ".join(line.text.replace("\n", "; ") for line in made.lines)[:600]
