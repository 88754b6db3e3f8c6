"""What an internal error leaves beside the traceback: the graph of the last finished stage, and a
repro of it, or the reason why there is none.

The graph, the program and the inputs come from the frames of the traceback, so no verb has to keep
them for this. Everything here may fail too: the fault may be anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from graphtool import interp, passes
from graphtool.analysis.made_up import port_inputs, random_inputs
from graphtool.compile.options import Choosing
from graphtool.compile.weights import WeightsSide, weights_of
from graphtool.emit.c import emit
from graphtool.io import npz
from graphtool.io.weights import Weight
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.ir.text import value_names
from graphtool.ir.verify import verify_module
from graphtool.kernels.choice.rules import Rules
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.report.table import human
from graphtool.target import Target, detect
from graphtool.verify.repro import write_program_repro, write_repro

Array = np.ndarray[Any, Any]
MOST = 64 << 20
"""Bytes of weights up to which a graph and its C are written."""
LEAST = ("decompose", "")
"""Passes that are enough for a graph to be lowered: for a graph as written, for any other."""
GRAPH, INPUTS, REPRO, SOURCES = "stage.graph.json", "stage.npz", "repro", "c"


@dataclass
class FrameState:
    """What the frames of a traceback hold, the innermost first."""

    modules: list[Module] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    stores: list[Mapping[str, Weight]] = field(default_factory=list)
    arrays: list[Mapping[str, Array]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    rules: list[Rules] = field(default_factory=list)

    def take(self, x: object) -> None:
        """Keep `x` if it is one of these things."""
        match x:
            case Module():
                self.modules.append(x)
            case Program():
                self.programs.append(x)
            case Target():
                self.targets.append(x)
            case Rules():
                self.rules.append(x)
            case Choosing():
                self.rules.append(x.rules)
            case dict() if x and all(isinstance(v, np.ndarray) for v in x.values()):
                self.arrays.append(x)
            case dict() if x and all(isinstance(v, Weight) for v in x.values()):
                self.stores.append(x)

    @property
    def target(self) -> Target:
        """The target that the failing command compiled for; else this machine."""
        return self.targets[0] if self.targets else detect()

    def inputs(self, module: Module) -> dict[str, Array]:
        """The arrays that the module was run on; made up if there are none."""
        names = [value_names(module.graph)[v] for v in module.graph.inputs]
        for arrays in self.arrays:
            given = {n: arrays[n] for n in names if n in arrays}
            try:
                interp.bind_inputs(module, given, interp.Setting())
            except Exception:  # those of something else
                continue
            return given
        return random_inputs(module)


def held(traceback: TracebackType | None) -> FrameState:
    """What the frames hold: their variables, and what is in those, down to the graph of an entry
    of a unit."""
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    state = FrameState()
    for frame in reversed(frames):
        for x in frame.f_locals.values():
            for one in _inside(x, 3):
                state.take(one)
    state.modules = [m for m in state.modules if _valid(m)]
    return state


def _inside(x: object, depth: int) -> Iterator[object]:
    """`x` and what is in it, so many levels deep; of a dict what was put there last comes first."""
    yield x
    for part in _parts(x) if depth and not isinstance(x, Module | Program | Target) else ():
        yield from _inside(part, depth - 1)


def _parts(x: object) -> Iterable[object]:
    if isinstance(x, ModuleType):  # what is imported is no state of the command
        return ()
    if isinstance(x, tuple | list):
        return x[:16]
    if isinstance(x, dict):
        return list(x.values())[:-17:-1]
    if is_dataclass(x) and not isinstance(x, type):
        return [getattr(x, f.name) for f in fields(x)]
    return list(getattr(x, "__dict__", {}).values())


def _valid(module: Module) -> bool:
    try:
        verify_module(module)
    except Exception:  # the one that failed, perhaps
        return False
    return True


def leave(error: BaseException, folder: Path) -> list[str]:
    """Write what the traceback holds of the model into `folder`; returns lines that say what is
    there, and if there is no C, why; none if the traceback holds no model."""
    state = held(error.__traceback__)
    if not state.modules and not state.programs:
        return []
    weights = _bytes(state)
    if weights > MOST:
        return [f"no C: the model's weights have {human(weights, 'B')}, and up to "
                f"{human(MOST, 'B')} are copied"]
    lines = _graph(state, folder) if state.modules else []
    failed: list[str] = []
    for title, attempt in _attempts(state, folder):
        try:
            attempt()
        except Exception as fault:
            failed.append(f"{type(fault).__name__}: {str(fault).partition(chr(10))[0]}")
        else:
            return [*lines, title]
    return [*lines, f"no C, because making it fails: {failed[0]}", *(
        [f"again: graphtool repro {GRAPH} --inputs {INPUTS} -o {REPRO}"] if state.modules else [])]


def _bytes(state: FrameState) -> int:
    """Bytes of the weights of the last graph, or of the program."""
    weights = [collect_all(m.graph) for m in state.modules[:1]] or [
        list(store.values()) for store in state.stores[:1]]
    return sum(w.nbytes for one in weights for w in one)


def _graph(state: FrameState, folder: Path) -> list[str]:
    """Write the graph of the last stage and its inputs, if they can be written."""
    try:
        serial.save(state.modules[0], folder / GRAPH)
        npz.save(state.inputs(state.modules[0]), folder / INPUTS)
    except Exception as fault:
        return [f"the graph cannot be written: {type(fault).__name__}: {fault}"]
    return [f"{GRAPH}, {INPUTS}: the graph of the last stage that was finished, and inputs"]


def _attempts(state: FrameState, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Ways to C, the best first, each with what is then there: of the last graph and of the first
    one, with the passes and without; of the program; C without expected outputs."""
    title = f"{REPRO}/: its C, inputs, expected outputs: make -C {REPRO}"
    modules = list(dict.fromkeys((*state.modules[:1], *state.modules[-1:])))
    for module in modules:
        yield title, partial(_repro, state, module, folder, None)
        for call in LEAST:
            yield f"{title} (made without the passes, because they fail)", partial(
                _repro, state, module, folder, call)
    for program in state.programs[:1]:
        yield title, partial(_program_repro, state, program, folder)
    title = f"{SOURCES}/: its C and an example; no expected outputs, because the evaluator fails"
    for program in state.programs[:1]:
        yield title, partial(_sources, program, state.stores[:1], folder)
    for module in modules:
        for call in LEAST:
            yield title, partial(_sources_of, state, module, folder, call)


def _repro(state: FrameState, module: Module, folder: Path, call: str | None) -> None:
    write_repro(module, state.inputs(module), folder / REPRO, state.target, pipeline=call,
                rules=state.rules[0] if state.rules else None)


def _program_repro(state: FrameState, program: Program, folder: Path) -> None:
    names = {p.name for p in program.inputs}
    given = next((a for a in state.arrays if names <= set(a)), None) or port_inputs(
        program.inputs, {s.name: s for s in program.dims}, program.requires,
        on_grids={p.name for i, p in enumerate(program.inputs) if f"input{i}" in program.grids})
    write_program_repro(program, state.stores[0], given, folder / REPRO, state.target)


def _sources_of(state: FrameState, module: Module, folder: Path, call: str) -> None:
    lowered = passes.run(module, call)
    store = {w.digest: w for w in collect_all(lowered.graph)}
    _sources(lower(lowered, state.target), [store], folder)


def _sources(program: Program, stores: Sequence[Mapping[str, Weight]], folder: Path) -> None:
    """The C alone: its example is the main program."""
    named = replace(program, name="model")
    texts, weights = emit(named), weights_of(named, stores[0])
    (target_folder := folder / SOURCES).mkdir()
    for name, text in texts.items():
        (target_folder / name).write_bytes(text.encode())
    WeightsSide("model", weights).write(target_folder)
