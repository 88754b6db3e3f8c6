"""Realistic models under sanitizers: floats, 8 and 4 bits, and training steps. A seed is a row."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs, work
from graphtool.importers.onnx import import_onnx
from graphtool.ir.graph import Module
from graphtool.target import named
from tests.lab.fuzz.compiled import in_c
from tests.lab.fuzz.outcome import Finding, Outcome
from tests.lab.fuzz.processes import Span, Tell
from tests.lab.fuzz.variants import variant_of
from tests.lab.fuzz.watched import watched

Array = np.ndarray[Any, Any]
Made = tuple[Module, dict[str, Array]]


def zoo(name: str) -> Made:
    """A model of the zoo, captured from torch."""
    from benchmarks.models.seeded import build
    from graphtool.importers.torch import import_torch
    from graphtool.importers.torch.driver.live import array
    model, inputs = build(name)
    module = import_torch(model, tuple(inputs))
    return module, _fed(module, [array(t) for t in inputs])


def int8(name: str) -> Made:
    """A model of the zoo, quantised by onnxruntime's tools."""
    from benchmarks import prepare
    prepare.ensure(name)
    found = work.prepared(name)
    module = import_onnx(found.onnx)
    return module, _fed(module, found.arrays("in"))


def int4(name: str) -> Made:
    """A model of the zoo whose products have weights of 4 bits in blocks of 32."""
    import logging

    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    from benchmarks import prepare
    prepare.ensure(name)
    found = work.prepared(name)
    quantizer = MatMulNBitsQuantizer(onnx.load(found.onnx), block_size=32, is_symmetric=True)
    logging.disable(logging.WARNING)  # it says of each node what it does
    quantizer.process()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int4.onnx"
        onnx.save(quantizer.model.model, path)
        module = import_onnx(path)
    if not any(n.op.name == "linear_nbits" for n in module.graph.nodes):
        raise ValueError(f"nothing of {name} was quantised to 4 bits")
    return module, _fed(module, found.arrays("in"))


def step(name: str, optimizer: str) -> Made:
    """One training step of a whole model: loss, gradients, and new parameters."""
    import torch

    from benchmarks.models.whole import built
    from graphtool.importers.torch import import_torch
    from graphtool.importers.torch.driver.live import array
    from graphtool.transforms.training import Recipe, training
    model, batch = built(name, torch.float32)
    module = import_torch(model, batch)
    joint = training(module, Recipe(module.output_names[0], optimizer=optimizer))
    return joint, _fed(joint, [array(t) for t in batch])


def _fed(module: Module, given: list[Array]) -> dict[str, Array]:
    """The inputs by name; those of a state have their first values, others are small numbers."""
    feed: dict[str, Array] = {}
    for i, v in enumerate(module.graph.inputs):
        if i in module.initial:
            feed[v.hint] = np.asarray(module.initial[i].source)
        elif given:
            feed[v.hint] = given.pop(0)
        else:
            feed[v.hint] = np.full([int(str(d)) for d in v.type.shape], 0.01).astype(
                v.type.dtype.numpy)
    return feed


MODELS: dict[str, Callable[[], Made]] = {
    **{n: partial(zoo, n) for n in ("lenet", "mlp_b64", "tabular_mlp", "lstm", "dcgan_gen",
                                    "mobilenet_v2", "resnet18", "unet_small", "llama_tiny_64",
                                    "llama_tiny_decode_kv128")},
    **{n: partial(int8, n) for n in ("mlp_b64.qdq", "mobilenet_v2.operators")},
    "llama_tiny_64 of 4 bits": partial(int4, "llama_tiny_64"),
    **{f"a step of {n}": partial(step, n, how) for n, how in (
        ("LeNet", "sgd{momentum=0.9}"), ("VisionTransformer", "adamw{weight_decay=0.01}"))}}


def work_through(span: Span, tell: Tell, sanitizers: str) -> Outcome:
    """The outcome of some rows of MODELS."""
    warnings.simplefilter("ignore")
    out, start = Outcome(), time.perf_counter()
    for row in range(*span):
        tell(row)
        name = [*MODELS][row]
        variant = variant_of(row)
        try:
            module, feed = MODELS[name]()
            made = in_c(module, variant, "f0")
            with tempfile.TemporaryDirectory(prefix="graphtool-fuzz-") as folder:
                said = watched([(feed, made)], Path(folder), named(variant.march), sanitizers)
        except Exception as error:
            said = {"f0": jobs.short(error, 200)}
        out.compiled[variant.name] += 1
        out.ops[f"{name} {variant.name}"] += 1
        out.statuses["wrong" if said else "clean"] += 1
        out.findings += [Finding(row, f"{name}: {sanitizers}: {why}") for why in said.values()]
    out.seconds["compiled"] = time.perf_counter() - start
    return out
