"""The contestants of the training benchmark: how each one takes a step on the same batch.

A step is forward, backward and optimizer, and gives the loss as a float. All begin from the same
parameters, so that the losses of the first steps say whether they do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import jobs, work
from benchmarks.league import Case, Loaded, Peer
from benchmarks.models.tasks import OWN, TASKS
from benchmarks.work import Array, Prepared, Row

CHECKED = 8  # steps whose losses are compared with float64's
LOSSES = "losses64"
Step = Callable[[], float]


def case(task: str, peer: str, threads: int) -> Case:
    folder = work.root() / "training" / task
    folder.mkdir(parents=True, exist_ok=True)
    return Case(Prepared(task, folder), threads, work.cache(f"train_{peer}", task))


def facts(case: Case, loaded: Loaded, result: Any) -> Row:
    """How far the losses of the first steps are from those of float64, relative."""
    want = stored(case)[LOSSES][1:]  # the first one is that of the run before `result`
    got = [result, *(loaded.run() for _ in range(len(want) - 1))]
    return {"loss_error": float(np.max(np.abs(np.array(got) - want) / np.abs(want)))}


# ---- what all of them begin with ----------------------------------------------------------------


def stored(case: Case) -> dict[str, Array]:
    """x, y, the losses of float64, and the parameters as `p.NAME`."""
    with np.load(case.model.folder / "task.npz") as file:
        return {k: file[k] for k in file.files}


def ensure(task: str) -> bool:
    """Whether the task is prepared, after preparing it where it is not; says what is wrong."""
    if (case(task, "torch", 1).model.folder / "task.npz").exists():
        return True
    row = jobs.run("benchmarks.trainers", "prepare", task)
    if "error" in row:
        print(f"{task}: {row['error']}", flush=True)
    return "error" not in row


def prepare(task: str) -> Row:
    import torch

    from benchmarks.models.trained import make
    model, x, y = make(task)
    params = {f"p.{n}": p.detach().numpy().copy() for n, p in model.named_parameters()}
    wide = [t.double() if t.is_floating_point() else t for t in (x, y)]
    step = torch_step(task, model.double(), *wide)
    torch.set_num_threads(1)
    losses = [step() for _ in range(CHECKED if TASKS[task].small else 3)]
    target = case(task, "torch", 1).model.folder
    arrays: dict[str, Any] = {"x": x.numpy(), "y": y.numpy(), LOSSES: np.array(losses), **params}
    np.savez(target / "unfinished.npz", **arrays)
    (target / "unfinished.npz").rename(target / "task.npz")
    return {}


# ---- graphtool ----------------------------------------------------------------------------------


def train_build(task: str, model: Any, x: Any, y: Any, folder: Any, rules: Any = None,
                first: str = "") -> None:
    """The compiled step of a torch model, batch size and all compiled in; `first` are passes that
    run on the training graph before all others."""
    import graphtool
    from graphtool import passes
    from graphtool.compile.build import build
    from graphtool.compile.options import Build
    from graphtool.compile.source import Source
    from graphtool.compile.unit import unit_of
    from graphtool.transforms.training import Recipe, training
    own = TASKS[task].loss == OWN
    module = graphtool.import_model(model.eval(), (x, y) if own else (x,))
    loss = module.output_names[0] if own else TASKS[task].loss
    joint = training(module, Recipe(loss, optimizer=TASKS[task].recipe))
    how = Build() if rules is None else type("Ruled", (Build,), {"rules": rules})()
    build(unit_of(Source(passes.run(joint, first) if first else joint), how, "model"), folder, how)


def _graphtool_build(case: Case) -> None:
    from benchmarks.models.trained import make
    train_build(case.model.name, *make(case.model.name), case.cache / "build")


def _graphtool(case: Case) -> Loaded:
    from graphtool.train.model import TrainModel
    arrays, lr = stored(case), TASKS[case.model.name].rate
    model = TrainModel(case.cache / "build", case.threads)
    batch = dict(zip((*model.inputs, "y"), (arrays["x"], arrays["y"]), strict=False))
    return Loaded(lambda: model.step(batch, lr))


# ---- torch --------------------------------------------------------------------------------------


def torch_optimizer(task: str, model: Any, **options: Any) -> Any:
    import torch
    parameters, row = model.parameters(), TASKS[task]
    if row.optimizer == "sgd":
        return torch.optim.SGD(parameters, row.rate, momentum=0.9, **options)
    if row.optimizer == "adamw":
        return torch.optim.AdamW(parameters, row.rate, weight_decay=0.01, **options)
    betas = (0.5 if row.optimizer == "adam_gan" else 0.9, 0.999)
    return torch.optim.Adam(parameters, row.rate, betas, **options)


def torch_loss(task: str, model: Any, x: Any, y: Any) -> Any:
    """The loss of a batch."""
    from torch.nn import functional
    match TASKS[task].loss:
        case "cross_entropy":
            return functional.cross_entropy(model(x), y)
        case "own":
            return model(x, y)
    return functional.binary_cross_entropy_with_logits(model(x), y)


def torch_step(task: str, model: Any, x: Any, y: Any, compiled: bool = False,
               **options: Any) -> Step:
    import torch
    optimizer = torch_optimizer(task, model, **options)

    def forward(x: Any, y: Any) -> Any:
        return torch_loss(task, model, x, y)
    run = torch.compile(forward) if compiled else forward

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = run(x, y)
        loss.backward()
        optimizer.step()
        return float(loss.item())
    return step


def _torch(case: Case, **options: Any) -> Loaded:
    import torch

    from benchmarks.models.trained import make
    torch.set_num_threads(case.threads)
    return Loaded(torch_step(case.model.name, *make(case.model.name), **options))


def _compiled(case: Case) -> Loaded:
    import torch._inductor.config as config
    config.compile_threads = 1
    return _torch(case, compiled=True, fused=True)


def _compile(case: Case) -> None:
    _compiled(case).run()


# ---- jax ----------------------------------------------------------------------------------------


def _jax(case: Case) -> Loaded:
    from benchmarks.jax_models import FORWARD, stepper
    if case.model.name not in FORWARD:
        raise NotImplementedError("not written for JAX")
    arrays, row = stored(case), TASKS[case.model.name]
    params = {n[2:]: a for n, a in arrays.items() if n.startswith("p.")}
    return Loaded(stepper(case.model.name, row.optimizer, row.rate, params, arrays["x"],
                          arrays["y"]))


PEERS: dict[str, Peer] = {p.name: p for p in (
    Peer("graphtool", (), _graphtool, _graphtool_build),
    Peer("eager", ("torch",), _torch),
    Peer("fused", ("torch",), partial(_torch, fused=True)),
    Peer("compile", ("torch",), _compiled, _compile,
         lambda case: {"TORCHINDUCTOR_CACHE_DIR": str(case.cache / str(case.threads))}, True),
    Peer("jax", ("jax",), _jax),
)}
