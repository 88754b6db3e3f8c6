"""Gradients of every torch operator that imports, against torch's autograd in float64.

The samples are torch's own (OpInfo). What does not import is not covered; what imports must agree.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import work
from benchmarks.work import Journal

RTOL, ATOL = 1e-7, 1e-9
PASSED, FAILED, UNCOVERED = "passed", "failed", "not covered"
NO_GRADIENT = "nothing to differentiate"
# operators that disagree, and why that is so
_TWICE = ("of two values put in one place only the one that stays has a gradient, as finite "
          "differences say; torch gives it to both")
EXCEPTIONS: dict[str, str] = {
    **{f"nn.functional.max_unpool{n}d": _TWICE for n in (1, 2, 3)},
    "as_strided.partial_views": "its samples are parts of a larger storage, which no graph reads",
    "torch.ops.aten._safe_softmax.default":
        "torch.export writes it as softmax and where, whose gradient is NaN in torch as well"}


@dataclass(frozen=True)
class Verdict:
    """What became of one operator: the worst of its samples, and why."""

    name: str
    status: str
    samples: int
    detail: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ops", default="", help="operators by name, separated by commas")
    parser.add_argument("--redo", action="store_true", help="judge again what is in the journal")


def main(options: argparse.Namespace) -> int:
    from tests.lab.samples import operators, title
    journal = Journal(work.results("gradients.jsonl"), lambda row: row["name"])
    chosen = {n for n in options.ops.split(",") if n}
    for op in operators(gradient=True):
        if (chosen and title(op) not in chosen) or (
                title(op) in journal.rows() and not options.redo and not chosen):
            continue
        try:
            verdict = judged(op)
        except Exception as error:  # a traceback is a failure like any other
            verdict = Verdict(title(op), FAILED, 0, f"{type(error).__name__}: {error}"[:100])
        journal.add({**vars(verdict)})
        print(f"{verdict.name}: {verdict.status} {verdict.detail}", flush=True)
    verdicts = [Verdict(**row) for row in journal.rows().values()]
    work.results("gradients.md").write_text(report(verdicts))
    print(f"{work.results('gradients.md')} written")
    return len([v for v in verdicts if v.status == FAILED and v.name not in EXCEPTIONS])


def judged(op: Any, few: int = 4) -> Verdict:
    """One operator's samples through import, gradient and evaluator."""
    from tests.lab.samples import samples, title
    found = [_sample(s) for s in samples(op, gradient=True, few=few)]
    for status in (FAILED, PASSED, NO_GRADIENT, UNCOVERED):
        of = [d for s, d in found if s == status]
        if of:
            short = [d for s, d in found if s == UNCOVERED] if status == PASSED else of
            return Verdict(title(op), status, len(of), short[0] if short else "")
    return Verdict(title(op), NO_GRADIENT, 0, "no samples")


def _sample(sample: Any) -> tuple[str, str]:
    import torch

    from graphtool.errors import GraphtoolError
    torch.manual_seed(0)
    if any(t.layout is not torch.strided for t in sample.tensors):
        return UNCOVERED, "sparse tensors"
    leaves = [t.clone().requires_grad_(w) for t, w in zip(sample.tensors, sample.wanted,
                                                          strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = _tensors(sample(*leaves))
        again = _tensors(sample(*leaves))
        if any(t.is_complex() for t in (*leaves, *theirs)):
            return UNCOVERED, "complex numbers"
        if any(not torch.equal(a.nan_to_num(), b.nan_to_num())
               for a, b in zip(theirs, again, strict=True)):
            return UNCOVERED, "random"
        if not any(t.requires_grad for t in theirs) or not any(t.requires_grad for t in leaves):
            return NO_GRADIENT, "no float64 result depends on a float64 tensor"
        try:
            return _compared(sample, leaves, theirs)
        except GraphtoolError as error:
            return UNCOVERED, _reason(error)


def _reason(error: Any) -> str:
    items = getattr(error, "items", ())
    names = ", ".join(i.name for i in items[:3])
    return f"{error.code} {names or error.message}".split("\n")[0][:100]


def _compared(sample: Any, leaves: list[Any], theirs: list[Any]) -> tuple[str, str]:
    import torch

    import graphtool
    from graphtool import interp, transforms
    from graphtool.ir.graph import Graph
    graph = graphtool.import_model(sample, sample.tensors).graph
    if len(graph.inputs) != len(leaves):
        return UNCOVERED, "random"
    outs = [i for i, t in enumerate(theirs) if t.requires_grad]
    wrt = [i for i, t in enumerate(leaves) if t.requires_grad]
    rng = np.random.default_rng(1)
    cotangents = [rng.normal(size=tuple(theirs[i].shape)).astype(
        graph.outputs[i].type.dtype.numpy) for i in outs]
    wanted = torch.autograd.grad([theirs[i] for i in outs], [leaves[i] for i in wrt],
                                 [torch.tensor(c.astype(np.float64), dtype=theirs[i].dtype)
                                  for i, c in zip(outs, cotangents, strict=True)],
                                 allow_unused=True)
    joint = transforms.vjp(graph, [graph.inputs[i] for i in wrt], outs)
    short = Graph(joint.inputs, joint.nodes, joint.outputs[len(graph.outputs):])
    arrays = [t.detach().numpy() for t in sample.tensors]
    got = interp.evaluate_graph(short, [*arrays, *cotangents], interp.Setting())
    for i, a, b in zip(wrt, got, wanted, strict=True):
        b = np.zeros(a.shape) if b is None else b.numpy(force=True)
        close = np.isclose(a, b, RTOL, ATOL * max(1.0, float(np.abs(b).max(initial=0.0))),
                           equal_nan=True)
        if not close.all():
            at = np.unravel_index(int(np.argmin(close)), close.shape)
            return FAILED, f"operand {i} at {[int(n) for n in at]}: {a[at]:.6g}, torch {b[at]:.6g}"
    return PASSED, ""


def _tensors(out: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves
    return [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]


def report(verdicts: list[Verdict]) -> str:
    counts = Counter(v.status for v in verdicts)
    lines = ["# Gradients of torch's operators", "",
             "torch's OpInfo samples in float64, up to four an operator: gradients of the imported "
             f"graph in the evaluator against torch.autograd, within {RTOL:g} relative.", "",
             "| result | operators |", "|---|---:|"]
    lines += [f"| {s} | {counts[s]} |" for s in (PASSED, FAILED, NO_GRADIENT, UNCOVERED)]
    for status, head in ((FAILED, "Disagree"), (UNCOVERED, "Not covered")):
        rows = sorted((v for v in verdicts if v.status == status), key=lambda v: v.name)
        if rows:
            lines += ["", f"## {head}", "", "| operator | why |", "|---|---|"]
            lines += [f"| {v.name} | {EXCEPTIONS.get(v.name, v.detail)} |" for v in rows]
    lines += ["", "## Passed", "", ", ".join(sorted(v.name for v in verdicts
                                                    if v.status == PASSED))]
    return "\n".join(lines) + "\n"
