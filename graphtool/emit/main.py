"""The main programs of models and of training: tables of inputs, outputs, state and parts. The
headers kernels/c/host/main.h and train.h contain the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from graphtool.emit.expr import ExprPrinter
from graphtool.emit.headers import called
from graphtool.emit.lines import Writer
from graphtool.emit.statuses import atom_text, rules
from graphtool.emit.training import Cell, state_layout
from graphtool.escaping import c_string
from graphtool.loops.dim_names import author_text, by_author
from graphtool.loops.program import Port, Program
from graphtool.symbolic import dim_of, line, product


def table(w: Writer, declared: str, rows: Iterable[str], end: str = "{0}") -> None:
    """An array of the rows and a last one that marks the end; C has no empty arrays."""
    held = [*rows, end]
    with w.block(f"{declared}[{len(held)}] = {{", "};"):
        for row in held:
            w.line(f"{row},")


def main_program(program: Program, weights_file: str) -> str:
    """C with a `main`; `weights_file` is next to the executable, "" if the weights are built in."""
    name, w = program.name, Writer()
    shape_function(w, program, "shapes")
    for kind, ports in (("inputs", program.inputs), ("outputs", program.outputs)):
        table(w, f"static main_port {kind}", map(port_row, ports))
    donors = dict(program.donations)
    table(w, "static const int donors", (str(donors.get(i, -1)) for i in range(
        len(program.outputs))), "-1")
    table(w, "static const main_dim dims", dim_rows(program))
    w.line()
    _load(w, name)
    run_function(w, program, "run")
    with w.block("static const main_model model = {", "};"):
        w.line(f"{c_string(name)}, {c_string(weights_file)},")
        w.line(f"{len(program.inputs)}, {len(program.outputs)}, {len(program.dims)},")
        w.line(f"{len(program.sizes)}, inputs, outputs, donors, dims, shapes, {name}_status_text, "
               f"{name}_arena_bytes, load, run,")
    return including(f"{name}.h", "main.h", text=w.text())


def including(*files: str, text: str) -> str:
    """The text after includes of these files and of the headers with the functions that it calls.

    A compiler in a strict mode (`-std=c99`) declares the functions of POSIX only if it is asked to.
    """
    asked = ("#define _DEFAULT_SOURCE 1 /* readlink and clock_gettime, in any -std */\n"
             "#define _DARWIN_C_SOURCE 1\n")
    return asked + "".join(f'#include "{file}"\n' for file in (*files, *called(text))) + f"\n{text}"


def shape_function(w: Writer, program: Program, name: str) -> None:
    """The function that computes every size from the dims, and returns the rule that they break."""
    known = (*program.dims, *program.sizes)
    printer = ExprPrinter({s.name: f"d{i}" for i, s in enumerate(known)})
    room = {b.slot: b.size for b in program.buffers if b.space == "output"}
    with w.block(f"static const char *{name}(const int64_t *dims, main_port *in,\n"
                 "        main_port *out)\n{"):
        w.line("(void)dims, (void)in, (void)out;")
        for holds, rule in rules(program):
            w.line(f"if (!({holds})) return {c_string(rule)};")
        for i, s in enumerate(known):
            w.line(f"const int64_t d{i} = {atom_text(s, f'dims[{i}]')};")
            w.line(f"(void)d{i};")
        for kind, ports in (("in", program.inputs), ("out", program.outputs)):
            for n, p in enumerate(ports):
                for axis, d in enumerate(p.shape):
                    w.line(f"{kind}[{n}].shape[{axis}] = {printer.index(d)};")
                if kind == "out":
                    w.line(f"out[{n}].room = {printer.index(room[n])};")
        w.line("return 0;")
    w.line()


def _load(w: Writer, name: str) -> None:
    """A wrapper of the model's loader; the program ends soon, so nothing is given back."""
    with w.block("static int load(const char *path, const void **data)\n{"):
        w.line(f"static {name}_weights held;")
        w.line(f"const int status = {name}_load(&held, path);")
        w.line("*data = held.data;")
        w.line("return status;")
    w.line()


def run_function(w: Writer, program: Program, name: str) -> None:
    """A wrapper of the program's run: its `dims` are const, also if the run computes sizes."""
    dims = "(int64_t *)dims" if program.sizes else "dims"
    with w.block(f"static int {name}(const void *weights, void *arena, const int64_t *dims,\n"
                 "               const void *const *in, void *const *out, int threads)\n{"):
        w.line(f"return {program.name}_run(weights, arena, {dims}, in, out, threads);")
    w.line()


def port_row(p: Port) -> str:
    """A port as a row of C; its sizes are filled in when the dims are known."""
    shown = f"{p.dtype.short}[{','.join(map(author_text, p.shape))}]"
    return (f"{{{c_string(p.name)}, {c_string(p.dtype.npy)}, {c_string(shown)}, "
            f"{len(p.shape)}, {{0}}, 0}}")


def dim_rows(program: Program) -> list[str]:
    """Each dim with the input and axis that its value is read from, and how."""
    axes = [(d, n, axis) for n, p in enumerate(program.inputs) for axis, d in enumerate(p.shape)]
    rows = []
    for s in program.dims:
        lines = ((n, axis, text) for d, n, axis in axes if (text := line(d, s)))
        plain = ((n, axis, (0, 1, 0, 1)) for d, n, axis in axes if d == dim_of(s))
        n, axis, how = next(chain(plain, lines), (-1, -1, (0, 1, 0, 1)))
        most = -1 if s.hi is None else s.hi
        rows.append(f"{{{c_string(by_author(s.name))}, {s.lo or 0}, {most}, {n}, {axis}, "
                    f"{', '.join(map(str, how))}}}")
    return rows


PARTS = ("step", "loss", "predict", "init")
RATE = "lr"
COMPLEX = "C64"  # in safetensors: two float32


@dataclass(frozen=True, slots=True)
class Judge:
    """How results are judged: none, classes, probability, logit or distance; and the defaults."""

    measure: str
    target: str
    axis: int
    ignored: int
    lr: float
    accumulate: int
    model: Mapping[str, Sequence[str]]  # what a checkpoint of it has, and the arrays that hold it


def trainer_program(name: str, programs: Mapping[str, Program], judge: Judge,
                    fixed: Sequence[Cell] = ()) -> str:
    """C with a `main` that trains; `fixed` are arrays of the model that no step changes."""
    cells, size = state_layout(programs["step"])
    at = {c.name: c.offset for c in cells}
    w = Writer()
    for part in PARTS:
        _part(w, part, programs[part], at)
    trained = {p for parts in judge.model.values() for p in parts}
    norm = -1 if "grad_norm" in trained else at.get("grad_norm", -1)
    rows = {"cells": [_cell(c.name, [c]) for c in sorted(cells, key=_file_order)],
            "kept": _kept(cells, fixed, judge)}
    for kind, lines in rows.items():
        table(w, f"static const learner_cell {kind}", lines)
    w.line()
    with w.block("static const learner_model model = {", "};"):
        w.line(f"{c_string(name)}, {c_string(judge.target)}, {size}, {len(cells)}, "
               f"{len(rows['kept'])}, cells, kept,")
        w.line(f"{at['step']}, {at.get('micro', -1)}, {norm}, "
               f"{judge.accumulate}, MEASURE_{judge.measure.upper()}, {judge.axis}, "
               f"{judge.ignored}, {_batch(programs['step'], at)}, {judge.lr!r}, "
               f"{f'{name}_fixed' if fixed else 0},")
        for part in PARTS:
            w.line(f"{_row(name, part, programs[part])},")
    return including(f"{name}.h", "train.h", text=w.text())


def _part(w: Writer, part: str, program: Program, at: Mapping[str, int]) -> None:
    """The ports of a part, the address of each, and the function that computes their sizes."""
    shape_function(w, program, f"{part}_shapes")
    for kind, ports in (("in", program.inputs), ("out", program.outputs)):
        table(w, f"static main_port {part}_{kind}", map(port_row, ports))
        table(w, f"static const int64_t {part}_{kind}_at", (str(_place(p, at)) for p in ports), "0")
    table(w, f"static const main_dim {part}_dims", dim_rows(program))
    w.line()
    run_function(w, program, f"{part}_run")


def _place(p: Port, at: Mapping[str, int]) -> str:
    if p.name in at:
        return str(at[p.name])
    return "LEARNER_RATE" if p.name == RATE else "LEARNER_GIVEN"


def _row(name: str, part: str, program: Program) -> str:
    return (f"{{{len(program.inputs)}, {len(program.outputs)}, {len(program.dims)}, "
            f"{len(program.sizes)}, {part}_in, {part}_out, {part}_in_at, {part}_out_at,\n"
            f"     {part}_dims, {part}_shapes, {name}_{part}_arena_bytes, {part}_run}}")


def _batch(step: Program, at: Mapping[str, int]) -> int:
    """The number of examples that a step is compiled for; -1 if it is open."""
    first = next(p for p in step.inputs if p.name not in at and p.name != RATE)
    size = first.shape[0] if first.shape else 1
    return size if isinstance(size, int) else -1


# ---- checkpoints -------------------------------------------------------------------------------

def _kept(cells: Sequence[Cell], fixed: Sequence[Cell], judge: Judge) -> list[str]:
    """The model's arrays under torch's names. What is fixed has places below 0: −1, −2, …"""
    held = {c.name: c for c in cells} | {
        c.name: replace(c, offset=-1 - c.offset) for c in fixed}
    rows = [(name, [held[p] for p in parts]) for name, parts in judge.model.items()]
    return [_cell(*row) for row in sorted(
        rows, key=lambda row: _file_order(replace(row[1][0], name=row[0]), len(row[1])))]


def _file_order(c: Cell, parts: int = 1) -> tuple[float, str]:
    """The order in which safetensors writes arrays: wide types first, then by name; complex numbers
    stand before those of their parts."""
    return -c.dtype.rank - (0.5 if parts > 1 else 0), c.name


def _cell(name: str, parts: Sequence[Cell]) -> str:
    c = parts[0]
    size = product(c.shape) * c.dtype.bytes * len(parts)
    shape = ", ".join(map(str, c.shape)) or "0"
    kind = COMPLEX if len(parts) > 1 else c.dtype.safetensors
    return (f"{{{c_string(name)}, {c_string(kind)}, {len(c.shape)}, {{{shape}}}, {size}, "
            f"{c.offset}, {parts[-1].offset}}}")
