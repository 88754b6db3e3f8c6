"""Gradients of a random torch module in float64, beside torch's own."""

from __future__ import annotations

import numpy as np
import torch

from graphtool import interp, transforms
from graphtool.ir.graph import Module, is_constant
from graphtool.ir.text import value_names
from graphtool.transforms.training.wrt import selected
from tests.lab.fuzz.modules import ModuleCase


class Undefined(Exception):
    """torch has no gradient of this module."""


ONLY_NAN, OUR_NAN = "is a number where torch's is NaN", "is NaN where torch's is a number"
RTOL = 1e-6  # against the largest gradient of an operand


def gradients(made: ModuleCase, module: Module) -> str:
    """Which gradient of the inputs and parameters differs; empty if none does.

    What is differentiated is the outputs' product with random numbers.
    """
    model, leaves = made.module(), []
    for t in made.tensors():
        leaves.append(t.requires_grad_() if t.is_floating_point() else t)
    try:
        outs = list(model(*(t.clone() for t in leaves)))
    except RuntimeError as error:
        raise Undefined(str(error).split("\n")[0]) from error
    at = [i for i, t in enumerate(outs) if t.requires_grad]
    learn = {n: p for n, p in model.named_parameters() if p.requires_grad}
    floats = [i for i, t in enumerate(leaves) if t.requires_grad]
    if not at:
        return ""
    rng = np.random.default_rng(made.seed)
    given = [rng.standard_normal(tuple(outs[i].shape)) for i in at]
    try:
        want = torch.autograd.grad([outs[i] for i in at], [*(leaves[i] for i in floats),
                                                           *learn.values()],
                                   [torch.from_numpy(g).to(outs[i].dtype)
                                    for i, g in zip(at, given, strict=True)], allow_unused=True)
    except RuntimeError as error:
        raise Undefined(str(error).split("\n")[0]) from error
    graph = module.graph
    names = value_names(graph)
    held = {names[v].lstrip("@"): v for v in selected(graph, names, ["params"])} if learn and (
        any(is_constant(n) and n.attrs["param"] for n in graph.nodes)) else {}
    wrt = [*(graph.inputs[i] for i in floats), *(held[n] for n in learn if n in held)]
    joint = transforms.vjp(graph, wrt, at)
    got = interp.evaluate_graph(joint, [*made.inputs.values(), *given], interp.Setting())[
        len(graph.outputs):]
    labels = [*(f"input {i}" for i in floats), *(n for n in learn if n in held)]
    kept = [*want[:len(floats)], *(w for n, w in zip(learn, want[len(floats):], strict=True)
                                   if n in held)]
    found: list[str] = []
    trues = [np.zeros(g.shape) if w is None else w.numpy(force=True)
             for g, w in zip(got, kept, strict=True)]
    infinite = any(np.isinf(true).any() for true in trues)  # whether ∞ meets −∞: as sums are taken
    for label, g, true in zip(labels, got, trues, strict=True):
        scale = max(1.0, float(np.abs(true[np.isfinite(true)]).max(initial=0.0)))
        if g.shape != true.shape:
            found.append(f"{label} off: shape {g.shape}, {true.shape} expected")
            continue
        off = ~np.isclose(g, true, RTOL, RTOL * scale, equal_nan=True)
        if infinite:
            off &= np.isfinite(g) & np.isfinite(true)
        if off.any():
            kind = (ONLY_NAN if np.isnan(true[off]).all() else
                    OUR_NAN if np.isnan(g[off]).all() else "off")
            found.append(f"{label.split('.')[0].rstrip('0123456789 ')} {kind}")
    return min(found, key=lambda f: "NaN" in f, default="")
