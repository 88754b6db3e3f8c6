"""What travels to a machine with a GPU: each case compiled, its arrays as recipes, and what the
evaluator says of some elements of its outputs."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import gpu_data, jobs, work
from benchmarks.gpu_data import SAMPLES, WIDTHS, Bundled, Output, Recipe
from benchmarks.work import Row

LIMIT = 60 << 20  # bytes of all cases
DTYPES = {"float32": "float32", "bf16": "bfloat16"}


def prepare(names: list[str], target: str, redo: bool) -> int:
    """Make what is missing, a process each; returns how many failed, or all if they are too
    large."""
    failed = 0
    for name in names:
        path = folder() / f"{name}.zip"
        if path.exists() and not redo:
            continue
        row = jobs.run("benchmarks.gpu_prepare", "case", name, target)
        failed += "error" in row
        print(f"{name}: " + row.get("error", f"{row.get('kernels')} kernels, "
                                    f"{row.get('mb', 0):.1f} MB, {row.get('seconds')}"), flush=True)
    size = sum(p.stat().st_size for p in folder().glob("*.zip"))
    print(f"{folder()}: {size / 1e6:.1f} MB")
    return len(names) if size > LIMIT else failed


def folder() -> Path:
    path = work.root() / "gpu"
    path.mkdir(parents=True, exist_ok=True)
    return path


def case(name: str, target: str) -> Row:
    """Compile a case and write NAME.zip; returns seconds of the stages, and its size."""
    start = time.perf_counter()
    module = optimised(name, target)
    return bundle(name, module, target, {"import": round(time.perf_counter() - start, 1)})


def bundle(name: str, module: Any, target: str, seconds: dict[str, float]) -> Row:
    """Write NAME.zip for a graph that the passes have seen."""
    from graphtool import interp
    from graphtool.compile.as_is import build
    clock = [time.perf_counter()]
    raw: dict[str, bytes] = {}
    noise = gpu_data.block()
    module, made = _of_noise(module, noise)
    inputs, arrays = _inputs(module, noise, raw)
    outputs = _outputs(module, interp.run(module, arrays), raw)
    clock.append(time.perf_counter())
    with TemporaryDirectory() as temporary:
        built = build(module, Path(temporary) / "build", name="model", target=target)
        clock.append(time.perf_counter())
        seconds |= {stage: round(b - a, 1) for stage, a, b in zip(
            ("evaluate", "build"), clock, clock[1:], strict=False)}
        size, weights = _weights(built, made, raw)
        kernels = (built / "model_kernels0.cu").read_text().count("GT_KERNEL void")
        bundled = Bundled(name, "libmodel.so", size, weights, inputs, outputs, kernels, seconds)
        path = folder() / f"{name}.zip"
        gpu_data.write(path, bundled, raw, built / "libmodel.so")
    return {"kernels": kernels, "mb": path.stat().st_size / 1e6, "seconds": seconds}


def optimised(name: str, target: str) -> Any:
    """The graph of a case after the passes; a training step with fixed sizes."""
    import torch

    import graphtool
    from benchmarks.models.device import CASES, made
    from graphtool.transforms.training import Recipe as Training
    from graphtool.transforms.training import programs, training
    network, _, dtype = name.partition(".")
    entry = CASES[network]
    model, inputs = made(network, getattr(torch, DTYPES[dtype]))
    if entry.kind != "train":
        module = graphtool.import_model(model.eval(), inputs)
    else:
        module = graphtool.import_model(model.eval(), inputs[:-1])
        joint = training(module, Training("cross_entropy", optimizer=entry.optimizer))
        step = programs(joint)["step"]
        module = replace(step, meta={k: v for k, v in step.meta.items() if k != "training"})
    return graphtool.optimize(module, target=target, verify=False)


def _of_noise(module: Any, noise: Any) -> tuple[Any, dict[str, Recipe]]:
    """The module with noise in place of large constants, and the recipes by digest."""
    from graphtool.io.weights import weight
    from graphtool.ir.graph import is_constant
    made: dict[str, Recipe] = {}
    nodes, changed = [], {}
    for node in module.graph.nodes:
        if is_constant(node):
            data = node.attrs["data"]
            recipe = gpu_data.recipe_of(data.stored, data.dtype.short, "", len(made), {})
            if recipe.spread:
                filled = gpu_data.bytes_of(recipe, noise, {})
                data = weight(filled.view(data.dtype.numpy).reshape(data.shape))
                made[data.digest] = recipe
                changed[node] = node = replace(node, attrs={**node.attrs, "data": data})
        nodes.append(node)
    groups = tuple(replace(g, members=tuple(changed.get(n, n) for n in g.members))
                   for g in module.graph.groups)
    return replace(module, graph=replace(module.graph, nodes=tuple(nodes), groups=groups)), made


def _inputs(module: Any, noise: Any, raw: dict[str, bytes]) -> tuple[list[Recipe], dict[str, Any]]:
    """Recipes of the inputs, and the arrays: a state begins as the graph says, integers are small,
    and a rate of learning is what a step needs not to diverge."""
    recipes: list[Recipe] = []
    arrays: dict[str, Any] = {}
    for i, (name, t) in enumerate(module.inputs.items()):
        first = module.initial.get(i)
        state = i in {donor for _, donor in module.donations}
        data: Any = np.zeros(t.shape, t.dtype.numpy) if first is None else first.stored
        if first is None and not state:
            if t.dtype.is_float:
                data = np.resize(noise, t.shape).astype(t.dtype.numpy) if t.shape else np.asarray(
                    .001, t.dtype.numpy)
            else:
                data = (np.arange(data.size).reshape(t.shape) * 37 % 10).astype(t.dtype.numpy)
        recipe = gpu_data.recipe_of(data, t.dtype.short, f"in{i}", 1000 + i, raw)
        recipes.append(recipe)
        filled = gpu_data.bytes_of(recipe, noise, raw)
        arrays[name] = filled.view(t.dtype.numpy).reshape(t.shape)
    return recipes, arrays


def _outputs(module: Any, want: Any, raw: dict[str, bytes]) -> list[Output]:
    donors = dict(module.donations)
    out = []
    for i, (name, t) in enumerate(module.outputs.items()):
        x = np.asarray(want[name]).astype(np.float64).reshape(-1)
        step = max(1, x.size // SAMPLES)
        raw[f"out{i}"] = x[::step].tobytes()
        if t.dtype.short not in WIDTHS:
            raise ValueError(f"output {name} of {t.dtype.short}")
        out.append(Output(t.dtype.short, x.size, step, f"out{i}", donors.get(i, -1)))
    return out


def _weights(built: Path, made: dict[str, Recipe],
             raw: dict[str, bytes]) -> tuple[int, dict[int, Recipe]]:
    """The bytes of the weights of a build, and how each array in them is had."""
    side = built / "model.safetensors"
    if not side.exists():
        return 0, {}
    data = side.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:start])
    weights: dict[int, Recipe] = {}
    for digest, row in head.items():
        if digest == "__metadata__":
            continue
        begin, end = row["data_offsets"]
        recipe = made.get(digest)
        if recipe is None:
            raw[f"w{begin}"] = data[start + begin:start + end]
            recipe = Recipe("u8", end - begin, raw=f"w{begin}")
        weights[begin] = recipe
    return len(data) - start, weights
