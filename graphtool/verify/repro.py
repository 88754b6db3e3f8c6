"""A directory that shows a wrong result with nothing but a C compiler: `make && ./repro`.

It has the model's C twice: as `build` compiles it, and with the result of every kernel as an
output. The main program runs both on the inputs and names the first kernel whose result differs
from what the evaluator computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from graphtool import interp, passes
from graphtool.compile.weights import WeightsSide, weights_of
from graphtool.emit.c import emit
from graphtool.errors import UnsupportedError
from graphtool.io.directory import replacing
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Module, Value, is_constant
from graphtool.ir.serial import collect_all
from graphtool.ir.text import value_names
from graphtool.kernels.choice.rules import Rules
from graphtool.loops import interp as loop_interp
from graphtool.loops.dim_names import by_author
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.native.compiler import find
from graphtool.target import Target
from graphtool.verify.compare import SHARE, magnitude
from graphtool.verify.repro_main import KINDS, Row, makefile, program_text

Array = np.ndarray[Any, Any]


class Repro(msgspec.Struct):
    """What was written: the directory, how many kernels' results it compares, and the command."""

    folder: str
    steps: int
    outputs: int
    command: str


@dataclass(frozen=True)
class _Part:
    """One of the programs: the C is made of it; `held` are its weights, `expected` its outputs."""

    program: Program
    held: list[Weight]
    expected: Mapping[str, Array]


def write_repro(module: Module, inputs: Mapping[str, Array], out: Path, target: Target, *,
                pipeline: str | None = None, rules: Rules | None = None,
                expected: Mapping[str, Array] | None = None,
                atol: float | None = None, rtol: float = 1e-4) -> Repro:
    """Write the directory for a graph and its inputs; a fused graph is taken as it is.

    `expected` are the outputs that the whole should have, in order, if they are not the
    evaluator's: then right kernels and a wrong whole say that the graph itself is another.
    Raises UnsupportedError GT3142 for results whose sizes only a run knows, and for strings."""
    fused = module if module.graph.groups else passes.run(
        module, pipeline, supply={"target": target, "rules": rules})
    every = with_steps(fused)
    programs = {"model": lower(fused, target, name="model"),
                "steps": lower(every, target, name="steps")}
    _check(programs["model"])
    wanted = {"model": expected or interp.run(module, inputs), "steps": interp.run(every, inputs)}
    setting = interp.Setting()
    given = interp.bind_inputs(module, inputs, setting)
    weights = {w.digest: w for m in (fused, every) for w in collect_all(m.graph)}
    parts = {name: _Part(program, weights_of(program, weights), wanted[name])
             for name, program in programs.items()}
    return _write(out, parts, given, {n: int(str(d)) for n, d in setting.sizes.items()}, target,
                  atol, rtol)


def write_program_repro(program: Program, store: Mapping[str, Weight],
                        inputs: Mapping[str, Array], out: Path, target: Target) -> Repro:
    """Write the directory for a program and its inputs: what is expected is what the loops
    compute in Python, and the outputs alone are compared. Raises UnsupportedError GT3142."""
    _check(program)
    named = replace(program, name="model")
    part = _Part(named, weights_of(program, store), loop_interp.run(program, inputs, store))
    sizes = {by_author(n): size for n, size in loop_interp.bind(program, inputs).items()}
    return _write(out, {"model": part}, [inputs[p.name] for p in program.inputs], sizes, target,
                  None, 1e-4)


def _write(out: Path, parts: Mapping[str, _Part], given: Sequence[Array], sizes: Mapping[str, int],
           target: Target, atol: float | None, rtol: float) -> Repro:
    """Write the C, weights and expected outputs of the parts, the inputs and the main program;
    `sizes` by the author's names of dims."""
    flags = find(None, target, threads=False).of_class(
        parts["model"].program.meta.get("precision", "default")).flags
    tables: dict[str, list[Row]] = {}
    with replacing(out, lambda names: "repro.c" in names) as work:
        for name, part in parts.items():
            for file, text in emit(part.program).items():
                if file != f"{name}_example.c":
                    (work / file).write_bytes(text.encode())
            WeightsSide(name, part.held).write(work)
            rows = list(zip(part.program.outputs, part.expected.values(), strict=True))
            tables[name] = [_row(port.name, port.dtype.short, x, atol, rtol) for port, x in rows]
            for i, (port, x) in enumerate(rows):
                held_as = x.astype(port.dtype.numpy, order="C", copy=False)
                (work / f"{name}{i}.bin").write_bytes(held_as.tobytes())
        for i, x in enumerate(given):
            (work / f"input{i}.bin").write_bytes(np.ascontiguousarray(x).tobytes())
        (work / "repro.c").write_bytes(program_text(
            {n: [sizes[by_author(s.name)] for s in p.program.dims] for n, p in parts.items()},
            given, tables).encode())
        (work / "Makefile").write_bytes(makefile(flags).encode())
    return Repro(str(out), len(tables.get("steps", ())), len(tables["model"]), f"make -C {out}")


def _row(name: str, kind: str, x: Array, atol: float | None, rtol: float) -> Row:
    if x.dtype.kind in "biu":
        return name, kind, x.size, 0.0, 0.0
    return name, kind, x.size, SHARE * magnitude(x) if atol is None else atol, rtol


def _check(program: Program) -> None:
    odd = [p.name for p in (*program.inputs, *program.outputs) if p.dtype.short not in KINDS]
    if program.sizes or odd:
        raise UnsupportedError("GT3142", "no directory can be written for this graph", hint=(
            f"{odd[0]} is of a type that C does not have" if odd else
            "the sizes of its results are known only in a run") + "; `graphtool reduce` may find a "
            "part without")


def with_steps(module: Module) -> Module:
    """The module with the results of all kernels as outputs, in order, and without donations.

    What only moves elements counts where a kernel or an output ends with it.
    """
    graph, names = module.graph, value_names(module.graph)
    roots = {g.root: n for g in graph.groups for n in g.members}
    grouped = {n for g in graph.groups for n in g.members}
    steps: list[Value] = []
    for node in graph.nodes:
        ends = [v for v in node.outputs if v in roots or node not in grouped]
        steps += [v for v in ends if not is_constant(node) and v.type.dtype.short in KINDS
                  and (node.op.category in ("compute", "control") or v in roots
                       or v in graph.outputs)]
    every = Graph(graph.inputs, graph.nodes, tuple(steps), graph.groups)
    return replace(module, graph=every, output_names=tuple(names[v] for v in steps), donations=(),
                   initial={})


def repro_lines(r: Repro) -> list[str]:
    """What was written, and the command that shows it."""
    return [f"{r.folder}: {r.steps} kernels and {r.outputs} outputs to compare; {r.command}"]
