"""Models as StableHLO: read back, and run by XLA and IREE beside the evaluator.

The same of every op: `python -m tests.exporters.stablehlo.sweep`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

import graphtool
from benchmarks import tables, work
from benchmarks.hlo_peers import Guarded
from graphtool import interp
from graphtool.analysis import made_up
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Module
from graphtool.report.diff import diff

HEAD = ("model", "nodes", "kB", "read back", "xla", "iree")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", type=lambda s: s.split(","), help="models whose name has one")


def main(options: argparse.Namespace) -> int:
    """Run the models and write the table; how many are read back as another graph."""
    wanted = {n: make for n, make in MODELS.items() if not options.only
              or any(o in n for o in options.only)}
    rows = [row(name, make) for name, make in wanted.items()]
    stamp = work.stamp()
    told = "\n".join([
        f"# StableHLO out: models\n\n`{options.command_line}`; {stamp['date']}, {stamp['cpu']}.\n",
        "The last columns are the largest difference from the evaluator, relative to the largest "
        "value of the output.\n", tables.markdown(HEAD, rows)]) + "\n"
    work.results("hlo_out.md").write_text(told)
    print(told)
    return sum(r[3] != "the same" for r in rows)


def row(name: str, make: Callable[[], Module]) -> list[str]:
    """A row: XLA's and IREE's largest relative differences from the evaluator."""
    module = make()
    text = stablehlo_of(module)
    inputs = {n: np.abs(x) if x.dtype.kind == "f" else x  # an optimizer's state has no sign
              for n, x in made_up.random_inputs(module, 0, {}).items()}
    want = list(interp.run(module, inputs).values())
    cells = [name, str(len(module.graph.nodes)), f"{len(text) // 1000:,}",
           "the same" if diff(module, import_text(text)).equal else "differs"]
    for peer in ("xla", "iree"):
        try:
            got = Guarded(peer)(text, list(inputs.values()), 240)
            cells.append(tables.error(work.error_of(got, want)))
        except RuntimeError as error:
            cells.append(" ".join(str(error).split())[:60])
    return cells


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
    "digits, a step with AdamW": _step,
    "the same step, --no-aliases": lambda: replace(_step(), donations=()),
    "a layer of BERT": partial(_torch, "bert", (2, 16, 64)),
    "LSTM of two layers": partial(_torch, "lstm", (2, 5, 8)), "resnet18": _resnet18,
}
