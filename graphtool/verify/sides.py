"""The sides of a comparison by `check`: a graph, a program, a build, an ONNX model or a torch
source.

A side has inputs and can be run on arrays; a graph can also give every value on the way.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import graphtool.kernels  # noqa: F401  (fills the registry that the reader asks)
from graphtool import dtypes, interp
from graphtool.analysis.made_up import (
    example_values,
    joint_sizes,
    port_inputs,
    random_inputs,
)
from graphtool.dtypes import dtype
from graphtool.errors import GraphtoolError, InputError, UsageError, listed
from graphtool.importers import Importer, import_source, kinds, what
from graphtool.importers.limits import Limits
from graphtool.io.grids import as_reals
from graphtool.io.manifest import entry_names, read_manifest
from graphtool.io.manifest_rows import Manifest
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names
from graphtool.native import runtime
from graphtool.native.sizes import equations, symbol_of
from graphtool.train.model import TrainModel
from graphtool.verify.apart import RuntimeProcess

Array = np.ndarray[Any, Any]
Run = Callable[[Mapping[str, Array]], dict[str, Array]]


@dataclass(frozen=True)
class Side:
    """One side of a comparison. `kind` is graph, build, onnxruntime or torch; `make` makes inputs
    up for a seed and sizes, if the side knows what it takes; `module` is its graph, if known.
    `source` is the ONNX file that onnxruntime runs. `state` names the outputs that another side may
    lack: new state, and what a training graph gives beside its step. A build has its `manifest`,
    torch the graph `captured` of it.
    """

    kind: str
    inputs: tuple[str, ...]
    run: Run
    make: Callable[[int, Mapping[str, int]], dict[str, Array]] | None = None
    module: Module | None = None
    source: Path | None = None
    state: tuple[str, ...] = ()
    manifest: Manifest | None = None
    captured: Module | None = None


def open_side(source: str, entry: str | None = None, capture: str = "") -> Side:
    """The side for a path, a torch source, or with `capture` jax a function of JAX; `entry` is for
    a build of several entry points.

    Raises UsageError GT3042 for anything else, GT2222 and GT2223 for the entry point."""
    path, kind = Path(source), what(source, capture or "export")
    match kind:
        case Importer():
            return ORACLES[kind.oracle].open(source, None, (), None)
        case kinds.STDIN:
            return of_module(serial.loads(sys.stdin.buffer.read(), folder=path.parent))
        case kinds.BUILD | kinds.FOLDER:
            return of_build(path, entry=entry if entry_names(read_manifest(path)) else None)
        case kinds.PROGRAM:
            return of_program(path)
        case kinds.GRAPH | kinds.JSON:
            return of_module(serial.load(path))
    said = "cannot tell what it is" if kind in (kinds.OTHER, kinds.MISSING) else (
        f"this is {kind.title}")
    raise UsageError("GT3042", said, where=source, hint="compare a graph, a program, a build "
                     "directory, a .onnx file, file.py:callable, or - for stdin")


def open_pair(a: str, b: str, entry: str | None = None, captures: tuple[str, str] = ("", ""),
              given: Callable[[Side], dict[str, Array]] | None = None) -> tuple[Side, Side]:
    """Both sides. A TorchScript archive has no sample inputs: it gets those of the other side,
    that `given` says or, without it, that the side makes up."""
    sources = (a, b)
    bare = [isinstance(kind := what(s), Importer) and not kind.samples for s in sources]
    alone = bare.index(True) if sum(bare) == 1 else None
    if alone is None:
        left, right = (open_side(s, entry, c) for s, c in zip(sources, captures, strict=True))
        return _filled(left, right.module), _filled(right, left.module)
    other = open_side(sources[1 - alone], entry, captures[1 - alone])
    arrays = given(other) if given else other.make(0, {}) if other.make else {}
    specs = [f"{n}:{dtypes.of_numpy(arrays[n].dtype).short}{list(arrays[n].shape)}"
             for n in other.inputs if n in arrays and n not in other.state]
    archive = of_torch(sources[alone], specs=specs)
    return (archive, other) if alone == 0 else (other, archive)


def of_module(module: Module) -> Side:
    """A graph, run by the reference evaluator."""
    names = value_names(module.graph)
    state = tuple(module.output_names[o] for o, _ in module.donations)
    if "training" in module.meta:  # a build's step gives no predictions
        state += module.output_names[1 + len(state):]
    return Side("graph", tuple(names[v] for v in module.graph.inputs),
                lambda xs: interp.run_on_reals(module, xs), partial(random_inputs, module), module,
                state=state)


def of_build(path: Path, threads: int | None = None, entry: str | None = None) -> Side:
    """Compiled code, or one of its entry points, run with so many threads."""
    model = runtime.load(path, threads, entry=entry)
    grids = {p.name: (p.scale, p.zero) for p in model.outputs if p.scale}
    return Side("build", tuple(p.name for p in model.inputs),
                lambda xs: as_reals(model.run(xs), grids),
                partial(build_inputs, model),
                state=tuple(model.outputs[o].name for o, _ in model.manifest.donations),
                manifest=model.manifest)


def of_program(path: Path) -> Side:
    """A program, compiled in a temporary folder that is deleted once the library is loaded."""
    from graphtool.compile.as_is import build
    from graphtool.loops import serial as loops
    program, store = loops.load(path)
    with tempfile.TemporaryDirectory(prefix="graphtool-check-") as folder:
        built = build(program, Path(folder) / "build", name=program.name, store=store)
        return of_build(built)


def of_onnx(path: Path, limits: Limits | None = None) -> Side:
    """An ONNX file through onnxruntime, which runs apart under `limits`.

    Where it is not installed, the file is run by our own importer and evaluator.
    """
    if not importlib.util.find_spec("onnxruntime"):
        return of_module(import_source(str(path)))
    model = RuntimeProcess(path, limits)
    return Side("onnxruntime", model.inputs, model.run, source=path)


def _filled(side: Side, module: Module | None) -> Side:
    """The side of an ONNX file, whose inputs that are always one number in the module get it."""
    table = module.meta.get("always", {}) if module is not None else {}
    always = {name: np.full(sizes, number, dtypes.dtype(short).numpy)
              for name, (short, *sizes, number) in table.items() if name in side.inputs}
    if side.kind != "onnxruntime" or not always:
        return side
    return replace(side, inputs=tuple(n for n in side.inputs if n not in always),
                   run=lambda xs: side.run({**xs, **always}))


def of_torch(source: str, module: Module | None = None, specs: Sequence[str] = ()) -> Side:
    """A torch source, run by torch itself; its inputs have the names that they have in its
    graph."""
    from graphtool.importers.torch.driver.reference import reference
    graph = module or import_source(source, inputs=specs)
    names = value_names(graph.graph)
    inputs = [names[v] for v in graph.graph.inputs]
    buffers = {inputs[i]: graph.output_names[o] for o, i in graph.donations if i in graph.initial}
    changed = {graph.output_names[o]: None if i in graph.initial else i for o, i in graph.donations}
    call = reference(source, specs, changed)

    def run(xs: Mapping[str, Array]) -> dict[str, Array]:
        users = [n for n in inputs if n not in buffers]
        _need(users, xs)
        outputs, after = call([xs[n] for n in users],
                              {name: xs[n] for n, name in buffers.items() if n in xs})
        mine = (n for n in graph.output_names if n not in changed)
        return dict(zip(mine, outputs, strict=False)) | after
    return Side("torch", tuple(inputs), run, state=tuple(changed), captured=graph)


def _need(names: Sequence[str], given: Mapping[str, Array]) -> None:
    if missing := [n for n in names if n not in given]:
        raise InputError("GT0511", f"missing input {listed(missing)}",
                         hint=f"the inputs are {listed(names)}")


def of_jax(source: str, module: Module, specs: Sequence[str] = ()) -> Side:
    """A function of JAX, run by JAX itself; its inputs have the names that they have in its
    graph. It makes them from the arrays that its file offers, if it does."""
    from graphtool.importers.stablehlo.capture import reference
    names = value_names(module.graph)
    inputs = [names[v] for v in module.graph.inputs]
    answer = reference(source, specs)
    offered = {names[v]: x.astype(v.type.dtype.numpy, copy=False) for v, x in zip(
        module.graph.inputs, answer.offered, strict=True) if x is not None}

    def make(seed: int, sizes: Mapping[str, int]) -> dict[str, Array]:
        arrays = random_inputs(module, seed, sizes)
        if sizes or (module.symbols and len(offered) < len(inputs)):
            return arrays  # the offered ones have sizes of their own
        return arrays | {n: _near(x, seed) for n, x in offered.items()}

    def run(xs: Mapping[str, Array]) -> dict[str, Array]:
        _need(inputs, xs)
        return dict(zip(module.output_names, answer.run([xs[n] for n in inputs]), strict=True))
    return Side("jax", tuple(inputs), run, make)


def of_model(kind: str, source: str, module: Module | None, specs: Sequence[str], run: Run) -> Side:
    """A model that `run` computes; its inputs have the names that they have in its graph."""
    graph = module or import_source(source, inputs=specs)
    names = value_names(graph.graph)
    return Side(kind, tuple(names[v] for v in graph.graph.inputs), run,
                partial(random_inputs, graph), captured=graph)


def _near(x: Array, seed: int) -> Array:
    """An array under seed 0, else one whose floats are near it and of the same signs: a variance
    stays one. A zero becomes positive, so that what is added to others is seen."""
    if seed == 0 or not dtypes.of_numpy(x.dtype).is_float:
        return x
    rng = np.random.default_rng(seed)
    return np.where(x == 0, rng.uniform(0, 0.5, x.shape),
                    x * rng.uniform(0.5, 1.5, x.shape)).astype(x.dtype)


@dataclass(frozen=True)
class Oracle:
    """What runs a model beside its graph: the side of a source, its graph if known, specs of its
    inputs, and limits; the `package` that this needs."""

    open: Callable[[str, Module | None, Sequence[str], Limits | None], Side]
    package: str = ""


ORACLES = {  # by the `oracle` of an importer
    "": Oracle(lambda source, module, specs, limits: of_module(
        module or import_source(source, inputs=specs, limits=limits))),
    "onnxruntime": Oracle(lambda source, module, specs, limits: _filled(
        of_onnx(Path(source), limits), module), "onnxruntime"),
    "torch": Oracle(lambda source, module, specs, limits: of_torch(source, module, specs)),
    "jax": Oracle(lambda source, module, specs, limits: of_jax(
        source, module or import_source(source, inputs=specs, capture="jax"), specs))}


# ---- inputs for both ---------------------------------------------------------------------------

def made_up(sources: Sequence[str], sides: tuple[Side, ...], seed: int,
            sizes: Mapping[str, int]) -> dict[str, Array]:
    """Inputs from the side that knows most about them, under the names of the first side.

    `sources` are the origins of the sides without a module. A build knows its own conditions on
    sizes, but not what the nodes of the other side need. Raises UsageError GT3044 if no side knows
    its inputs.
    """
    for side in sides:
        if side.make is not None:
            m = side.manifest
            module = None if m is None or not (m.dims or any(
                dtype(p.type).is_integer for p in m.inputs)) else _graph(sources, sides)
            if m is not None and module is not None:
                sizes = _sizes_of_both(module, m, sizes)
            arrays = side.make(seed, sizes)
            if module is not None:
                arrays |= example_values(module, arrays, sizes)
            return by_position(arrays, side.inputs, sides[0].inputs)
    for name in sources:
        if isinstance(kind := what(name), Importer) and kind.samples:
            module = import_source(name)
            inputs = random_inputs(module, seed, sizes)
            return by_position(inputs, of_module(module).inputs, sides[0].inputs)
    raise UsageError("GT3044", "cannot make up inputs: neither side is a graph",
                     hint="give --inputs FILE.npz")


def _graph(sources: Sequence[str], sides: tuple[Side, ...]) -> Module | None:
    """The graph of a side, or of a model among the sources, if one is known."""
    module = next((g for s in sides if (g := s.module or s.captured) is not None), None)
    if module is None:
        models = (name for name in sources if isinstance(kind := what(name), Importer)
                  and kind.samples)
        with suppress(GraphtoolError):  # then the build decides alone
            module = next((import_source(name) for name in models), None)
    return module


def _sizes_of_both(module: Module, m: Manifest, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """Sizes for a build that the graph of another side allows too."""
    return joint_sizes(module, {r.name: symbol_of(r) for r in m.dims},
                       equations(m.dims, m.requires), sizes)


def build_inputs(model: runtime.Model, seed: int, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Random inputs of a build: those of its graph, under the same seed."""
    m = model.manifest
    return port_inputs(model.inputs, {r.name: symbol_of(r) for r in m.dims},
                       equations(m.dims, m.requires), seed, sizes,
                       {p.name for p in model.inputs if p.scale})


def training_state(build_dir: Path) -> dict[str, Array]:
    """The state and the learning rate from which a training build starts; empty for the build of
    a model."""
    if read_manifest(build_dir).training is None:
        return {}
    model = TrainModel(build_dir, 1)
    rate = dtype(next(p.type for p in model.row.programs["step"].inputs if p.name == "lr"))
    return {**model.state, "lr": np.array(model.row.lr, rate.numpy)}


def by_position(arrays: Mapping[str, Array], names: tuple[str, ...],
                others: tuple[str, ...]) -> dict[str, Array]:
    """The same arrays under the names of another side, if both have the same number of inputs."""
    if set(arrays) == set(others) or len(names) != len(others):
        return dict(arrays)
    return {o: arrays[n] for n, o in zip(names, others, strict=True) if n in arrays}
