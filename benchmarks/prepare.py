"""Exports the zoo to ONNX and stores inputs and torch's outputs beside it, a process a model."""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import logging
import time
from typing import Any

from benchmarks import jobs, work
from benchmarks.models import entry

OPSET = 18


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--redo", action="store_true", help="export again what is there")


def main(options: argparse.Namespace) -> int:
    return len([name for name in options.models if not ensure(name, options.redo)])


def ensure(name: str, redo: bool = False) -> bool:
    """Whether the model is prepared, after preparing it where it is not; says what it does."""
    if work.prepared(name).done and not redo:
        return True
    quantised = entry(name).module == "quantised"
    if quantised and not ensure(name.rpartition(".")[0]):
        return False
    row = jobs.run(f"benchmarks.{'quantised' if quantised else 'prepare'}", "export", name)
    done = "error" not in row
    what = "quantised in" if quantised else (
        f"{row.get('parameters', 0) / 1e6:.2f} M parameters, exported in")
    print(f"{name}: " + (f"{what} {row['seconds']:.1f} s" if done else row["error"]), flush=True)
    return done


def export(name: str) -> dict[str, Any]:
    """Write models/NAME/{model.onnx, io.npz, meta.json}; returns what meta.json says."""
    import numpy as np
    import torch

    from benchmarks.models.seeded import build, flat
    missing = [n for n in entry(name).needs if importlib.util.find_spec(n) is None]
    if missing:
        return {"error": f"needs {', '.join(missing)}"}
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    start = time.perf_counter()
    model, inputs = build(name)
    with torch.no_grad():
        outputs = flat(model(*inputs))
        wide = flat(copy.deepcopy(model).double()(*(
            x.double() if x.is_floating_point() else x for x in inputs)))
    target = work.prepared(name)
    target.folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"{prefix}_{i}": t.detach().numpy() for prefix, ts in (
        ("in", inputs), ("out", outputs), ("out64", wide)) for i, t in enumerate(ts)}
    temporary = target.folder / "unfinished.onnx"
    _to_onnx(model, inputs, len(outputs), temporary)
    np.savez(target.folder / "io.npz", **arrays)
    meta = {"name": name, "kind": entry(name).kind, "opset": OPSET, "onnx": target.onnx.name,
            "parameters": sum(p.numel() for p in model.parameters()),
            "inputs": [[list(x.shape), str(x.dtype).removeprefix("torch.")] for x in inputs],
            "outputs": [[list(x.shape), str(x.dtype).removeprefix("torch.")] for x in outputs],
            "torch_error": work.error_of(target.arrays("out"), target.arrays("out64")),
            "seconds": round(time.perf_counter() - start, 2), **work.stamp()}
    (target.folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    temporary.rename(target.onnx)  # last: it says that all the rest is there
    return meta


def _to_onnx(model: Any, inputs: tuple[Any, ...], outputs: int, path: Any) -> None:
    import torch
    with torch.no_grad():
        torch.onnx.export(model, inputs, str(path), dynamo=True, external_data=False,
                          opset_version=OPSET, verbose=False,
                          input_names=[f"in_{i}" for i in range(len(inputs))],
                          output_names=[f"out_{i}" for i in range(outputs)])
