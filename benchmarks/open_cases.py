"""What `open` compares: a build with open sizes, a build of the same graph for one size, and the
runtimes that read ONNX with open sizes. A contest is a model at a size, `NAME@4x128`.

`open/NAME` in the work folder holds the graph and the ONNX file of all sizes, `open/NAME@SIZE` the
inputs of one size and what torch makes of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import compilers, jobs, peers, stats, work
from benchmarks.league import Case, Loaded, Peer
from benchmarks.work import Prepared, Row

FIXED, GRAPH = "fixed", "model.graph.json"


def folder(name: str) -> Path:
    return work.root() / "open" / name


def case(model: str, peer: str, threads: int) -> Case:
    """The open build of a model is one for all its sizes, and so is what torch compiles."""
    name = model if peer == FIXED else model.partition("@")[0]
    return Case(Prepared(model, folder(model)), threads, work.cache(f"open_{peer}", name))


def facts(case: Case, loaded: Loaded, result: Any) -> Row:
    """The error against float64; nothing for training steps."""
    return {} if _parts(case.model.name)[0].optimizer else peers.facts(case, loaded, result)


def _parts(model: str) -> tuple[Any, tuple[int, ...]]:
    """The model's row, and the size of the contest."""
    from benchmarks.models.open_zoo import ALL
    name, _, size = model.partition("@")
    return ALL[name], tuple(map(int, size.split("x"))) if size else ()


# ---- what is prepared ---------------------------------------------------------------------------


def ensure(model: str) -> bool:
    """Whether the model at this size is prepared, after preparing it where it is not."""
    name = model.partition("@")[0]
    for part, done in ((name, folder(name) / GRAPH), (model, folder(model) / "io.npz")):
        row = {} if done.exists() else jobs.run("benchmarks.open_cases", "prepare", part)
        if "error" in row:
            print(f"{part}: {row['error']}", flush=True)
            return False
    return True


def prepare(model: str) -> Row:
    """Of a model its files, of a model at a size its inputs."""
    folder(model).mkdir(parents=True, exist_ok=True)
    found, size = _parts(model)
    if size:
        _prepare_size(model, found, size)
    else:
        _prepare_files(folder(model), found)
    return {}


def _prepare_files(at: Path, found: Any) -> None:
    import graphtool
    if not found.optimizer:
        found.to_onnx(at / "model.onnx")
    graphtool.write(found.module(), at / GRAPH)


def _prepare_size(model: str, found: Any, size: tuple[int, ...]) -> None:
    import numpy as np
    import torch

    from benchmarks.models.seeded import flat
    given = found.given(size)
    arrays = {f"in_{i}": x.numpy() for i, x in enumerate(given)}
    if not found.optimizer:
        wide = [x.double() if x.is_floating_point() else x for x in given]
        with torch.no_grad():
            results = {"out": flat(found.model()(*given)),
                       "out64": flat(found.model().double()(*wide))}
        arrays |= {f"{k}_{i}": y.numpy() for k, ys in results.items() for i, y in enumerate(ys)}
        onnx = folder(model) / "model.onnx"
        onnx.unlink(missing_ok=True)
        os.link(folder(model.partition("@")[0]) / "model.onnx", onnx)
    np.savez(folder(model) / "io.npz", **arrays)


# ---- graphtool ----------------------------------------------------------------------------------


def _build(case: Case, fixed: bool) -> None:
    import graphtool
    from graphtool.compile import as_is
    from graphtool.passes.specialize import specialize
    from graphtool.transforms.training import Recipe, training
    found, size = _parts(case.model.name)
    module = graphtool.read(folder(case.model.name.partition("@")[0]) / GRAPH)
    if fixed:
        module = specialize(module, **found.sizes(module, size))
    if found.optimizer:
        recipe = Recipe(found.loss or module.output_names[0], optimizer=found.optimizer)
        as_is.build(training(module, recipe), case.cache / "build")
    else:
        graphtool.build(module, case.cache / "build", precision=found.precision)


def _load(case: Case) -> Loaded:
    from graphtool.native import runtime
    from graphtool.train.model import TrainModel
    arrays = case.model.arrays("in")
    if _parts(case.model.name)[0].optimizer:
        trained = TrainModel(case.cache / "build", case.threads)
        batch = dict(zip((*trained.inputs, "y"), arrays, strict=False))
        return Loaded(lambda: trained.step(batch, 1e-6))
    model = runtime.load(case.cache / "build", case.threads)
    results = model.run(dict(zip((s.name for s in model.inputs), arrays, strict=True)))
    return Loaded(model.call, lambda _: list(results.values()))


# ---- torch --------------------------------------------------------------------------------------


def _torch(case: Case, compiled: bool = False) -> Loaded:
    import torch
    import torch._inductor.config as config
    torch.set_num_threads(case.threads)
    torch.set_grad_enabled(False)
    config.compile_threads, config.freezing = 1, True
    model, inputs = _parts(case.model.name)[0].model(), map(
        torch.from_numpy, case.model.arrays("in"))
    run = partial(torch.compile(model, dynamic=True) if compiled else model, *inputs)
    return Loaded(run, compilers.torch_outputs)


def _compile(case: Case) -> None:
    _torch(case, compiled=True).run()


def _cache(case: Case) -> Mapping[str, str]:
    return {"TORCHINDUCTOR_CACHE_DIR": str(case.cache / str(case.threads))}


OWN = (Peer(stats.OURS, ("torch",), _load, partial(_build, fixed=False)),
       Peer(FIXED, ("torch",), _load, partial(_build, fixed=True)))
STEPS: dict[str, Peer] = {p.name: p for p in OWN}  # of training: other tables have peers
PEERS: dict[str, Peer] = {p.name: p for p in (
    *OWN, peers.PEERS["onnxruntime"], peers.PEERS["openvino"], Peer("torch", ("torch",), _torch),
    Peer("inductor", ("torch",), partial(_torch, compiled=True), _compile, _cache))}
