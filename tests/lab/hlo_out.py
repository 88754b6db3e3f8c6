"""Models and whole programs as StableHLO: read back, and run by StableHLO's reference interpreter,
XLA and IREE beside the evaluator.

The same of every op: `python -m tests.exporters.stablehlo.sweep`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import graphtool
from benchmarks import tables, work
from benchmarks.work import Array, Journal, Row
from graphtool import interp
from graphtool.analysis import made_up
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Module
from graphtool.report.diff import diff
from tests.lab.hlo_peers import PEERS, Guarded
from tests.lab.jaxprograms import exported, given, own_gradient, tasks

HEAD = ("model", "nodes", "kB", "read back", *PEERS)
SECONDS = 240.0
Given = tuple[Module, Mapping[str, Array]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", type=lambda s: s.split(","), help="models whose name has one")
    parser.add_argument("--peers", type=lambda s: s.split(","), default=[*PEERS],
                        help="run by these only")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for one model and peer")
    parser.add_argument("--redo", action="store_true", help="do again what is known")


def main(options: argparse.Namespace) -> int:
    """Run the models and write the table; how many are read back as another graph, or differ."""
    journal = Journal(work.results("hlo_out.jsonl"), lambda r: (r["op"], r["peer"]))
    guards = {peer: Guarded(peer) for peer in options.peers}
    for name, make in {**MODELS, **programs()}.items():
        have = journal.rows()
        wanted = not options.only or any(o in name for o in options.only)
        missing = {p: g for p, g in guards.items() if options.redo or (name, p) not in have}
        if wanted and missing:
            try:
                made = make()
            except ModuleNotFoundError as error:
                print(f"{name}: left out, {error}", flush=True)
                continue
            for row in rows(name, *made, missing, options.seconds):
                journal.add({**row, **work.stamp()})
                print(" | ".join(str(row[k]) for k in ("op", "nodes", "same", "peer", "found")),
                      flush=True)
    found = list(journal.rows().values())
    work.results("hlo_out.md").write_text(report(found, options.command_line))
    return sum(not r["same"] or r["off"] for r in found)


def rows(name: str, module: Module, inputs: Mapping[str, Any], guards: Mapping[str, Guarded],
         seconds: float) -> Iterator[Row]:
    """A row for each peer: its largest relative difference from the evaluator."""
    text = stablehlo_of(module)
    want = list(interp.run(module, inputs).values())
    row = {"op": name, "nodes": len(module.graph.nodes), "kB": len(text) // 1000,
           "same": diff(module, import_text(text)).equal}
    for peer, guard in guards.items():
        try:
            error = apart(guard(text, list(inputs.values()), seconds), want)
            known = KNOWN.get((name, peer)) if error > _MOST else None
            yield {**row, "peer": peer, "found": known or tables.error(error),
                   "off": error > _MOST and known is None}
        except RuntimeError as fault:
            told = KNOWN.get((name, peer)) or " ".join(str(fault).split())[:90]
            yield {**row, "peer": peer, "found": told, "off": (name, peer) not in KNOWN}


_NOISE = 1e-5  # of the greatest output: some gradients are 0, and computed as rounding alone
_MOST = 1e-3  # beyond that a difference is no rounding
# gradients of biases of keys are 0, and Adam makes steps of what rounding leaves of them
KNOWN = {("flax transformer, step", peer): "apart in two biases of keys, whose gradients are 0"
         for peer in ("xla", "interpreter")}


def apart(got: list[Array], want: list[Array]) -> float:
    """The largest relative difference, without that of what is nothing but rounding."""
    greatest = max((float(np.abs(x).max(initial=0)) for x in want if x.dtype.kind == "f"),
                   default=0.0)
    return work.error_of(got, want, _NOISE * greatest or 1e-30)


def report(found: Sequence[Row], command: str) -> str:
    """The page: one line for each model."""
    stamp = work.stamp()
    lines: dict[str, list[str]] = {}
    for r in found:
        line = lines.setdefault(r["op"], [r["op"], str(r["nodes"]), f"{r['kB']:,}",
                                          "the same" if r["same"] else "differs",
                                          *["–" for _ in PEERS]])
        line[HEAD.index(r["peer"])] = r["found"]
    same = sum(line[3] == "the same" for line in lines.values())
    return "\n".join([
        f"# StableHLO out: models\n\n`{command}`; {stamp['date']}, {stamp['cpu']}.\n",
        f"{same} of {len(lines)} graphs are read back as the same graph, without a pass between. "
        "The last columns are the largest difference from the evaluator, relative to the largest "
        f"value of the output (or to {_NOISE:g} of the greatest output, if that is more).\n",
        tables.markdown(HEAD, list(lines.values()))]) + "\n"


def programs() -> dict[str, Callable[[], Given]]:
    """The programs of `jaxprograms`, and the gradients of them that graphtool makes; none where
    JAX is not installed."""
    try:
        from tests.lab.jax_programs import all_programs
        programs = all_programs()
    except ImportError:
        return {}
    made: dict[str, Callable[[], Given]] = {}
    for p in programs:
        made |= {f"{p.name}, {part}": partial(_imported, fn, args) for part, fn, args in tasks(p)}
        if p.loss is not None:
            made[f"{p.name}, our gradient"] = partial(
                lambda p: own_gradient(p, (p.args[0], *(p.batch or p.args[1:])))[:2], p)
    return made


def _imported(fn: Any, args: tuple[Any, ...]) -> Given:
    text, arrays, _ = exported(fn, args)
    module = import_text(text)
    return module, given(module, arrays)


def _with_inputs(make: Callable[[], Module]) -> Given:
    module = make()
    return module, {n: np.abs(x) if x.dtype.kind == "f" else x  # an optimizer's state has no sign
                    for n, x in made_up.random_inputs(module, 0, {}).items()}


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


_MADE: dict[str, Callable[[], Module]] = {
    **{f"samples/{n}": partial(_sample, n) for n in ("digits", "mlp", "transformer")},
    "digits, a step with AdamW": _step,
    "the same step, --no-aliases": lambda: replace(_step(), donations=()),
    "a layer of BERT": partial(_torch, "bert", (2, 16, 64)),
    "LSTM of two layers": partial(_torch, "lstm", (2, 5, 8)), "resnet18": _resnet18,
}
MODELS: dict[str, Callable[[], Given]] = {n: partial(_with_inputs, m) for n, m in _MADE.items()}
