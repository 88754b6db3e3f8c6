"""Whole models' losses and gradients beside torch in float64, and training steps of compiled C.

A model passes if it imports, its loss and the gradient of every parameter that learns agree with
torch's autograd, and no other parameter has one. Some are also trained for 20 steps by a compiled
step, after which the loss in inference (of `train --val`) must agree too; a few of these once more
from their ONNX file, and with the passes amp, remat and distribute.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs, tables, work
from benchmarks.work import Array, Journal, Row

RTOL = 1e-9  # of float64, against the largest gradient of the model
STEPS, RATE = 20, 0.01
BOUND = 2e-4  # of float32 after 20 steps, relative to the losses
OPTIMIZERS = ("sgd{momentum=0.9}", "adamw{weight_decay=0.01}", "adam", "rmsprop")
AMP_BOUND = 3e-2
PASSES = {"amp": "amp{dtype=bfloat16}", "remat": "remat{budget=0.2}", "distribute": "distribute"}
TRANSFORMED = ("Perceptron", "LeNet", "ResNet", "VisionTransformer", "TiedLanguageModel",
               "VariationalAutoencoder", "DeepQ", "LowRankAdaption")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", type=lambda s: s.split(","), metavar="NAMES",
                        help="models by name, separated by commas")
    parser.add_argument("--redo", action="store_true", help="check again what is in the journal")


def main(options: argparse.Namespace) -> int:
    from benchmarks.models.whole import every
    journal = Journal(work.results("wholes.jsonl"), lambda row: row["model"])
    names = options.only or list(every())
    for name in names:
        if name in journal.rows() and not options.redo:
            continue
        row = {"model": name, **work.stamp(),
               **jobs.run("tests.lab.wholes", "check", name, timeout=1800)}
        journal.add(row)
        print(f"{name}: {verdict(row)}", flush=True)
    rows = [r for n, r in journal.rows().items() if n in every()]
    text = report(rows, options)
    work.results("wholes.md").write_text(text)
    print(f"\n{text}")
    return sum(verdict(r) != "agrees" for r in rows)


def verdict(row: Row) -> str:
    """`agrees`, or what went wrong."""
    if "error" in row:
        return str(row["error"])
    bounds = {"loss": RTOL, "gradient": RTOL, **dict.fromkeys((
        "steps", "onnx", "remat", "distribute"), max(BOUND, 2 * row.get("float32", 0.0))),
        "val": max(BOUND, 2 * row.get("val32", 0.0)),
        "amp": max(AMP_BOUND, 2 * row.get("autocast", 0.0))}
    wrong = [k for k, bound in bounds.items() if k in row and not row[k] <= bound]
    return f"differs in {', '.join(wrong)}" if wrong else "agrees"


# ---- one model ---------------------------------------------------------------------------------


def check(name: str) -> Row:
    """The errors of a model's loss, gradients and training steps."""
    import torch

    from benchmarks.models.whole import every
    torch.set_num_threads(1)
    row = gradients(name)
    number = list(every()).index(name)
    if every()[name].steps:
        optimizer = OPTIMIZERS[number % len(OPTIMIZERS)]
        want, val = curve(name, optimizer)
        found, judged = trained(name, optimizer)
        own, own_val = curve(name, optimizer, "float32")
        row |= {"optimizer": optimizer, "steps": apart(found, want),
                "float32": apart(own, want), "val": abs(judged - val) / abs(val),
                "val32": abs(own_val - val) / abs(val)}
        if name in TRANSFORMED:
            row |= {p: apart(trained(name, optimizer, first)[0], want)
                    for p, first in PASSES.items()}
            row["onnx"] = apart(trained(name, optimizer, onnx=True)[0], want)
            row["autocast"] = apart(curve(name, optimizer, "float32", autocast=True)[0], want)
    return row


def gradients(name: str) -> Row:
    """The relative errors of the loss and of the worst gradient in float64, by the evaluator.

    Raises AssertionError where another set of parameters learns than in torch.
    """
    import torch

    from benchmarks.models.whole import built
    from graphtool import interp, transforms
    from graphtool.importers.torch import import_torch
    from graphtool.ir.text import value_names
    from graphtool.transforms.training.wrt import selected
    model, batch = built(name)
    module = import_torch(model, batch)
    graph = module.graph
    names = value_names(graph)
    wrt = selected(graph, names, ["params"])
    joint = transforms.grad(graph, 0, wrt)
    count = len(graph.outputs)
    given: dict[str, Any] = {v.hint: x.numpy()
                             for v, x in zip(graph.inputs, batch, strict=False)}
    for i, v in enumerate(graph.inputs[len(batch):], len(batch)):
        shape: Any = v.type.shape  # all sizes are known here
        given[v.hint] = (module.initial[i].source if i in module.initial
                         else np.zeros(shape, v.type.dtype.numpy))
    out = list(interp.run(_with(module, joint), given).values())
    found = {names[v].lstrip("@"): g for v, g in zip(wrt, out[count:], strict=True)}
    loss = model(*(x.clone() for x in batch))
    loss.backward()
    want = {n: torch.zeros_like(p) if p.grad is None else p.grad
            for n, p in model.named_parameters() if p.requires_grad}
    assert set(found) == set(want), f"learn: {sorted(found)}, in torch {sorted(want)}"
    scale = max(float(w.abs().max()) for w in want.values())
    return {"parameters": sum(w.numel() for w in want.values()),
            "loss": _relative(out[0], loss.item(), abs(loss.item())),
            "gradient": max(_relative(found[n], w.numpy(), scale) for n, w in want.items())}


def _with(module: Any, graph: Any) -> Any:
    """The module with a graph of more outputs."""
    return replace(module, graph=graph,
                   output_names=tuple(map(str, range(len(graph.outputs)))))


def _relative(found: Any, want: Any, scale: float) -> float:
    worst = float(np.max(np.abs(np.asarray(found) - want), initial=0.0))
    return worst / (scale or 1.0)


def trained(name: str, optimizer: str, first: str = "", onnx: bool = False) -> tuple[Array, float]:
    """The losses of 20 compiled float32 steps, each on the same batch, and the loss in inference
    after them. `first` is a pass on the training graph. An ONNX file does not say which parameters
    learn, so those that do not are left out of `--wrt`."""
    import torch

    from benchmarks.models.whole import built
    from graphtool import passes
    from graphtool.compile.as_is import build
    from graphtool.importers.onnx import import_onnx
    from graphtool.importers.torch import import_torch
    from graphtool.train.model import TrainModel
    from graphtool.transforms.training import Recipe, training
    model, batch = built(name, torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        if onnx:
            file = Path(folder) / "model.onnx"
            torch.onnx.export(model, batch, file, dynamo=True, optimize=False, verbose=False,
                              training=torch.onnx.TrainingMode.TRAINING)
            module = import_onnx(file)
        else:
            module = import_torch(model, batch)
        frozen = [f"!{n}" for n, p in model.named_parameters() if onnx and not p.requires_grad]
        joint = training(module, Recipe(module.output_names[0], optimizer=optimizer,
                                        wrt=["params", *frozen]))
        build(passes.run(joint, first) if first else joint, Path(folder) / "b")
        compiled = TrainModel(Path(folder) / "b", 1)
        data = {n: x.numpy() for n, x in zip(compiled.data, batch, strict=True)}
        losses = [compiled.step(data, RATE) for _ in range(STEPS)]
        return np.array(losses), compiled.loss(data)


def apart(found: Array, want: Array) -> float:
    """The largest difference of two curves, relative to the largest loss."""
    return float(np.max(np.abs(found - want)) / np.max(np.abs(want)))


def curve(name: str, optimizer: str, dtype: str = "float64", autocast: bool = False) -> tuple[
        Array, float]:
    """torch's losses before each of the steps, and in inference after them; `autocast` is torch's
    own mixed precision."""
    import torch

    from benchmarks.models.whole import built
    model, batch = built(name, torch.float32)
    model = model.to(getattr(torch, dtype))
    batch = tuple(x.to(getattr(torch, dtype)) if x.is_floating_point() else x for x in batch)
    learnt = [p for p in model.parameters() if p.requires_grad]
    step = {"sgd": lambda: torch.optim.SGD(learnt, RATE, momentum=0.9),
            "adamw": lambda: torch.optim.AdamW(learnt, RATE, weight_decay=0.01),
            "adam": lambda: torch.optim.Adam(learnt, RATE),
            "rmsprop": lambda: torch.optim.RMSprop(learnt, RATE)}[optimizer.partition("{")[0]]()
    losses = []
    for _ in range(STEPS):
        step.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = model(*(x.clone() for x in batch))
        loss.backward()
        step.step()
        losses.append(loss.item())
    return np.array(losses), model.eval()(*(x.clone() for x in batch)).item()


# ---- the report --------------------------------------------------------------------------------


def report(rows: list[Row], options: argparse.Namespace) -> str:
    """Markdown: a row a model."""
    right = sum(verdict(r) == "agrees" for r in rows)
    taken = sum("steps" in r for r in rows)
    head = ("model", "parameters", "loss", "gradient", "optimizer", "20 steps", "torch's",
            "then val", "torch's", "from ONNX", *PASSES, "torch's amp", "verdict")
    keys = ("steps", "float32", "val", "val32", "onnx", *PASSES, "autocast")
    body = [(r["model"], str(r.get("parameters", tables.GAP)), tables.error(r.get("loss")),
             tables.error(r.get("gradient")), r.get("optimizer", tables.GAP),
             *(tables.error(r.get(k)) for k in keys), verdict(r)) for r in rows]
    stamp = work.stamp()
    return f"""# Whole models: gradients and training steps beside torch

{stamp['date']}, {stamp['cpu']}; command: `{options.command_line}`. {right} of
{len(rows)} models agree. Losses and gradients are the evaluator's in float64, relative to torch's
largest; bound {RTOL:.0e}. {taken} models were also trained. What stands there are the losses of
{STEPS} float32 steps of compiled C, relative to torch's in float64, beside those of torch in
float32, then the loss in inference (`--val`) after them; bound {BOUND:.0e}, or twice torch's own;
{AMP_BOUND:.0e} with the pass amp, or twice that of torch's autocast.

{tables.markdown(head, body)}"""
