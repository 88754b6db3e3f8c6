"""Every op and some models as StableHLO: read back, and run by others beside the evaluator."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import graphtool
from benchmarks import tables, work
from benchmarks.hlo_peers import PEERS, Guarded, parsed
from graphtool import interp, passes
from graphtool.analysis import made_up
from graphtool.errors import UnsupportedError
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Module
from graphtool.ir.op import complete_attrs, evaluate
from graphtool.report.diff import diff

Array = np.ndarray[Any, Any]
HEAD = ("op", "cases", "read back", *PEERS, "why, or what differs")
MODELS_HEAD = ("model", "nodes", "kB", "read back", "xla", "iree")
_TIDY = "simplify,fold,cse,dce"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ops", type=lambda s: s.split(","), help="only these ops")
    parser.add_argument("--no-models", action="store_true", help="leave the models out")


def main(options: argparse.Namespace) -> int:
    from tests.cases import CASES
    guards = {peer: Guarded(peer) for peer in PEERS}
    rows: dict[str, list[Any]] = {}
    bad = 0
    for case in CASES:
        if options.ops and case.op.name not in options.ops:
            continue
        row = rows.setdefault(case.op.name, [case.op.name, 0, 0, *[[0, 0] for _ in PEERS], []])
        row[1] += 1
        try:
            bad += one(case, row, guards)
        except UnsupportedError as error:
            row[-1].append(f"refused: {error.items[0].reason}")
    models = [] if options.no_models else [model(name, make) for name, make in MODELS.items()]
    told = report(list(rows.values()), models, options.command_line)
    work.results("hlo_out.md").write_text(told)
    print(told)
    return bad


def one(case: Any, row: list[Any], guards: dict[str, Guarded]) -> int:
    """Run a case everywhere (IREE: the first of each op), add what was found; how many differ."""
    from tests.cases import arrays
    from tests.closeness import assert_close
    from tests.ops.test_cases import module_of
    module, xs = module_of(case), arrays(case)
    text = stablehlo_of(module)
    parsed(text)
    row[2] += same(module, import_text(text))
    found = evaluate(case.op, xs, complete_attrs(case.op, case.attrs))
    want = found if isinstance(found, tuple) else (found,)
    given = [x for x in xs if isinstance(x, np.ndarray)]
    bad = 0
    for counts, (peer, guard) in zip(row[3:3 + len(guards)], guards.items(), strict=True):
        if peer == "iree" and counts[1]:
            continue
        counts[1] += 1
        try:
            for a, b in zip(guard(text, given), want, strict=True):
                assert_close(a.view(b.dtype) if a.dtype.itemsize == b.dtype.itemsize else a, b,
                             given)
            counts[0] += 1
        except (RuntimeError, AssertionError, TypeError) as error:
            said = " ".join(str(error).split())
            row[-1].append(f"{case.name}, {peer}: {KNOWN.get((case.name, peer), said[:90])}")
            bad += (case.name, peer) not in KNOWN
    return bad


KNOWN = {
    ("matmul-11", "interpreter"): "its process ends: no element to sum",
    ("resize_by-6", "xla"): "it multiplies by a constant's inverse, and a tie is rounded otherwise",
    ("resize_by-0", "iree"): "it takes inputs of float64 as float32 only",
    **{(name, peer): "CHLO's expansion has another value at poles and below 0"
       for name in ("digamma-3", "polygamma-7", "polygamma-8") for peer in PEERS},
}


def same(module: Module, again: Module) -> bool:
    """Whether two graphs are equal after passes that leave nothing to chance."""
    return diff(passes.run(module, _TIDY), passes.run(again, _TIDY)).equal


# ---- models ------------------------------------------------------------------------------------

def model(name: str, make: Callable[[], Module]) -> list[str]:
    """A row: XLA's and IREE's largest relative differences from the evaluator."""
    module = make()
    text = stablehlo_of(module)
    inputs = made_up.random_inputs(module, 0, {})
    want = list(interp.run(module, inputs).values())
    row = [name, str(len(module.graph.nodes)), f"{len(text) // 1000:,}",
           "the same" if same(module, import_text(text)) else "differs"]
    for peer in ("xla", "iree"):
        try:
            got = Guarded(peer)(text, list(inputs.values()), 240)
            row.append(tables.error(work.error_of(got, want)))
        except RuntimeError as error:
            row.append(" ".join(str(error).split())[:60])
    return row


def _sample(name: str) -> Module:
    return graphtool.import_model(f"samples/{name}.py:model")


def _resnet18() -> Module:
    from benchmarks.models.vision import MODELS as VISION
    net, args = VISION["resnet18"]()
    return graphtool.import_model(net.eval(), args)


def _torch(make: str, shape: tuple[int, ...]) -> Module:
    import torch
    torch.manual_seed(0)
    nets = {"bert": lambda: torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True,
                                                             activation="gelu"),
            "lstm": lambda: torch.nn.LSTM(8, 16, 2, batch_first=True)}
    return graphtool.import_model(nets[make]().eval(), (torch.randn(*shape),))


def _step() -> Module:
    return graphtool.grad(_sample("digits"), graphtool.Recipe("cross_entropy", optimizer="adamw"))


MODELS: dict[str, Callable[[], Module]] = {
    **{f"samples/{n}": partial(_sample, n) for n in ("digits", "mlp", "transformer")},
    "digits, a step with AdamW": _step, "a layer of BERT": partial(_torch, "bert", (2, 16, 64)),
    "LSTM of two layers": partial(_torch, "lstm", (2, 5, 8)), "resnet18": _resnet18,
}


def report(rows: list[list[Any]], models: list[list[str]], command: str) -> str:
    """The page."""
    stamp = work.stamp()
    done = [r for r in rows if not any(w.startswith("refused") for w in r[-1])]
    total = sum(r[1] for r in done)
    told = [f"{name}: {sum(r[3 + i][0] for r in done):,} of {sum(r[3 + i][1] for r in done):,}"
            for i, name in enumerate(PEERS)]
    lines = [f"# StableHLO out\n\n`{command}`; {stamp['date']}, {stamp['cpu']}.\n",
             f"The cases of the ops' table, exported, read back, and run by others. {len(done)} of "
             f"{len(rows)} ops are written, {total:,} cases of them; {sum(r[2] for r in done):,} "
             "are read back as the same graph. As the evaluator computes them: "
             f"{'; '.join(told)}. IREE, which takes a second to compile one, has the first case of "
             "each op.\n"]
    if models:
        lines += ["Models; the last columns are the largest difference from the evaluator, "
                  "relative to the output's largest value.\n",
                  tables.markdown(MODELS_HEAD, models)]
    odd = [r for r in rows if r[-1] or r[2] != r[1]]
    cells = [[r[0], str(r[1]), str(r[2]), *(f"{a} of {b}" for a, b in r[3:-1]),
              "; ".join(dict.fromkeys(r[-1]))] for r in odd]
    lines += ["Ops with a case that differs, is refused, or is read back as another graph of the "
              "same meaning:\n", tables.markdown(HEAD, cells)]
    return "\n".join(lines) + "\n"
