"""NAME.h and NAME.c of a training build: init, step, loss and predict over one block of state.

The state consists of all parameters, then the state of the optimizer. Each function runs a program
of its own. This module knows programs and offsets, but no graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphtool.dtypes import DType
from graphtool.emit.headers import used_headers
from graphtool.emit.language import language_of
from graphtool.emit.lines import Writer
from graphtool.emit.weights import whole
from graphtool.escaping import c_comment
from graphtool.loops.dim_names import by_author
from graphtool.loops.program import Port, Program
from graphtool.symbolic import Symbol, product, symbols

ALIGN = 64
_PURPOSE = {
    "init": "Fills the state with what training starts from.",
    "step": "One step of training: the loss of the batch goes to *loss, the state is updated.",
    "loss": "The loss of a batch in inference; the state is only read.",
    "predict": "What the model gives in inference; the state is only read.",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One array of the state: where it starts, in bytes."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    offset: int


def state_layout(step: Program) -> tuple[tuple[Cell, ...], int]:
    """The donated inputs of the step, each at a multiple of 64 bytes, and the total size in
    bytes."""
    cells, at = [], 0
    for _, i in step.donations:
        p = step.inputs[i]
        shape = tuple(d for d in p.shape if isinstance(d, int))
        cells.append(Cell(p.name, p.dtype, shape, at))
        size = product(shape) * p.dtype.bytes
        assert isinstance(size, int)
        at += -(-size // ALIGN) * ALIGN
    return tuple(cells), at


def training_sources(name: str, programs: Mapping[str, Program], world: bool = False,
                     fixed: bool = False) -> dict[str, str]:
    """The two files; the program of each function is called NAME_FUNCTION.

    `world` adds the functions that a host needs to train in several processes, `fixed` the one that
    gives arrays which no step changes.
    """
    cells, size = state_layout(programs["step"])
    more = (_WORLD if world else {}) | (_fixed(name) if fixed else {})
    files = {f"{name}.h": _header(name, programs, cells, size, more),
             f"{name}.c": _source(name, programs, {c.name: c for c in cells}, world, more)}
    return files | (used_headers(files.values()) if world else {})


# what kernels/world.h has, for hosts that load the library
_WORLD = {"int {}_join(int *rank)": ("/* Joins the other processes: their number, and the own "
                                     "place among them. */",
                                     "world_ready();\n*rank = world_rank();\nreturn world_size();"),
          "void {}_sum(double *values, int count)": ("/* Sums over all processes, in each. */",
                                                     "world_sum(values, count);"),
          "void {}_share(void *data, size_t bytes)": (
              "/* What the first process has there, in each. */", "world_share(data, bytes);"),
          "void {}_leave(int code)": ("/* The last call of all; with another code than 0 it takes "
                                      "the others down. */", "world_close(code);")}


def _fixed(name: str) -> dict[str, tuple[str, str]]:
    data = whole(f"{name}_fixed", 1)[0].symbol
    return {"const void *{}_fixed(void)": (
        "/* The arrays of the model that no step changes; build.json says where each lies. */",
        f"extern const char {data}[];\nreturn {data};")}


def _header(name: str, programs: Mapping[str, Program], cells: Sequence[Cell], size: int,
            more: Mapping[str, tuple[str, str]]) -> str:
    w, big = Writer(), name.upper()
    w.line(f"/* {name}: training as compiled code. Generated; do not edit. */")
    w.line(f"#ifndef {big}_H")
    w.line(f"#define {big}_H")
    w.line("#include <stddef.h>")
    w.line("#include <stdint.h>")
    for part in programs:
        w.line(f'#include "{name}_{part}.h"')
    w.line("#ifdef __cplusplus")
    w.line('extern "C" {')
    w.line("#endif")
    w.line()
    w.line("/* The state: one block of so many bytes, aligned to 64. The caller's; all functions")
    w.line("   work on it in place and allocate nothing. It is plain data: save it, and training")
    w.line("   goes on from there. */")
    w.line(f"#define {big}_STATE_BYTES {size}")
    if language_of(programs["step"]).device:
        w.line()
        for text in (f"/* The state may be memory of the device ({name}_step_device_alloc), and",
                     "   then stays there; else each call copies it there and back, as it does",
                     "   with all other arrays of the caller. `arena` is not used. */"):
            w.line(text)
    arenas = [p.arena for p in programs.values()]
    if all(isinstance(a, int) for a in arenas):
        w.line()
        w.line("/* One arena that is large enough for every function; aligned to 64. */")
        w.line(f"#define {big}_ARENA_BYTES {max(a for a in arenas if isinstance(a, int))}")
    w.line()
    for c in cells:
        shape = ", ".join(map(str, c.shape))
        w.line(f"/* state + {c.offset}: {c.dtype.c} {c_comment(c.name)}[{shape}] */")
    w.line()
    w.line("/* All return 0, or a status that stands in the header of the part; for the step,")
    w.line(f"   {name}_step_status_text says it in words. */")
    w.line("#pragma GCC visibility push(default)")
    for part, program in programs.items():
        w.line(f"/* {_PURPOSE[part]}{_room(name, part, program, {c.name for c in cells})} */")
        w.line(f"{_signature(name, part, program, {c.name for c in cells})};")
        if language_of(program).steps.given:
            w.line(f"/* As {name}_{part}, in parts that the caller's pool runs: see "
                   f"{name}_{part}_run_on. */")
            w.line(f"{_signature(name, part, program, {c.name for c in cells}, on=True)};")
    for head, (purpose, _) in more.items():
        w.line(purpose)
        w.line(f"{head.format(name)};")
    w.line("#pragma GCC visibility pop")
    w.line("#ifdef __cplusplus")
    w.line("}")
    w.line("#endif")
    w.line("#endif")
    return w.text()


def _data(program: Program, state: set[str]) -> list[tuple[int, Port]]:
    """The inputs that are not part of the state."""
    return [(i, p) for i, p in enumerate(program.inputs) if p.name not in state]


def _given(program: Program, state: set[str]) -> list[tuple[int, Port]]:
    """The outputs that are not part of the state."""
    return [(i, p) for i, p in enumerate(program.outputs) if p.name not in state]


def _computed_sizes(program: Program, state: set[str]) -> list[tuple[int, Symbol]]:
    """The sizes that the run computes and its results have, each with its place in `dims`."""
    computed = {s.name for _, p in _given(program, state) for d in p.shape for s in symbols(d)}
    return [(i, s) for i, s in enumerate(program.sizes, len(program.dims)) if s.name in computed]


def _room(name: str, part: str, program: Program, state: set[str]) -> str:
    """What the header says of results whose sizes the run computes; empty if there are none."""
    sizes = ", ".join(c_comment(by_author(s.name)) for _, s in _computed_sizes(program, state))
    return sizes and (f"\n   The run computes {sizes}, and stores each before it returns. Results "
                     f"with such sizes\n   need the room that {name}_{part}.h states.")


def _named(program: Program, state: set[str]) -> _words:
    """The names of the parameters between the arena and the threads, in order."""
    return _words([*(by_author(s.name) for s in program.dims),
                   *(p.name for _, p in _data(program, state)),
                   *(p.name for _, p in _given(program, state)),
                   *(by_author(s.name) for _, s in _computed_sizes(program, state))],
                  ("run", "pool") if language_of(program).steps.given else ())


def _signature(name: str, part: str, program: Program, state: set[str], on: bool = False) -> str:
    """`int NAME_step(void *state, void *arena, const float *x, ..., float lr, float *loss, …)`, or
    with `on` NAME_step_on, which takes a pool of the caller's too."""
    words = _named(program, state)
    params = [f"{'' if part in ('step', 'init') else 'const '}void *state", "void *arena"]
    params += [f"int64_t {next(words)}" for _ in program.dims]
    params += [f"{p.dtype.c} {next(words)}" if not p.shape else
               f"const {p.dtype.c} *{next(words)}" for _, p in _data(program, state)]
    params += [f"{p.dtype.c} *{next(words)}" for _, p in _given(program, state)]
    params += [f"int64_t *{next(words)}" for _ in _computed_sizes(program, state)]
    given = language_of(program).steps.given if on else ()
    lines = [f"int {name}_{part}{'_on' * on}({params[0]}"]
    for p in [*params[1:], "int threads", *(g.format(name=f"{name}_{part}") for g in given)]:
        if len(lines[-1]) + len(p) + 2 > 92:
            lines[-1] += ","
            lines.append(f"        {p}")
        else:
            lines[-1] += f", {p}"
    return "\n".join(lines) + ")"


class _words:
    """C identifiers for foreign names: made from their letters, all different."""

    def __init__(self, names: Sequence[str], more: Sequence[str] = ()) -> None:
        taken = {"state", "arena", "threads", "inputs", "outputs", "dims", *more}
        self.out = []
        for i, n in enumerate(names):
            word = "_".join(re.findall(r"[A-Za-z0-9]+", n)).lower()[:40]
            if not word or word[0].isdigit() or word in taken or word in _KEYWORDS:
                word = f"{word if word and not word[0].isdigit() else 'a'}{i}"
            taken.add(word)
            self.out.append(word)
        self.at = iter(self.out)

    def __next__(self) -> str:
        return next(self.at)


_KEYWORDS = frozenset(re.findall(r"\w+", """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while"""))


def _source(name: str, programs: Mapping[str, Program], cells: Mapping[str, Cell],
            world: bool, more: Mapping[str, tuple[str, str]]) -> str:
    w = Writer()
    w.line(f'#include "{name}.h"')
    if world:
        w.line('#include "world.h"')
    for head, (_, body) in more.items():
        w.line()
        with w.block(f"{head.format(name)}\n{{"):
            for line in body.splitlines():
                w.line(line)
    for part, program in programs.items():
        w.line()
        pooled = bool(language_of(program).steps.given)
        with w.block(f"{_signature(name, part, program, set(cells), pooled)}\n{{"):
            _body(w, f"{name}_{part}", program, cells)
        if pooled:
            w.line()
            with w.block(f"{_signature(name, part, program, set(cells))}\n{{"):
                words = ", ".join(("state", "arena", *_named(program, set(cells)).out))
                w.line("(void)threads;")
                w.line(f"return {name}_{part}_on({words}, 1, 0, 0);")
    return w.text()


def _body(w: Writer, name: str, program: Program, cells: Mapping[str, Cell]) -> None:
    state = set(cells)
    words = _named(program, state)
    dims = [next(words) for _ in program.dims]
    inputs = {i: (f"&{next(words)}" if not p.shape else next(words))
              for i, p in _data(program, state)}
    outputs = {i: next(words) for i, _ in _given(program, state)}
    if any(p.name in state for p in (*program.inputs, *program.outputs)):
        w.line(f"if (!state) return {name.upper()}_NULL_POINTER;")
        w.line(f"if ((uintptr_t)state % {ALIGN}) return {name.upper()}_MISALIGNED;")
    kind = "int64_t" if program.sizes else "const int64_t"
    w.line(f"{kind} dims[] = {{{', '.join([*dims, *['0'] * max(len(program.sizes), 1)])}}};")
    tables = (("const void *const inputs", "const char *", inputs, program.inputs),
              ("void *const outputs", "char *", outputs, program.outputs))
    for head, cast, given, ports in tables:
        with w.block(f"{head}[] = {{", "};"):
            for i, p in enumerate(ports):
                w.line(f"{given[i]}," if i in given else f"({cast})state + {cells[p.name].offset},")
            w.line("0,")
    if not any(p.name in state for p in (*program.inputs, *program.outputs)):
        w.line("(void)state;")
    sizes = _computed_sizes(program, state)
    on, pool = ("_on", ", run, pool") if language_of(program).steps.given else ("", "")
    run = f"{name}_run{on}(0, arena, dims, inputs, outputs, threads{pool});"
    w.line(f"const int status = {run}" if sizes else f"return {run}")
    for i, _ in sizes:
        w.line(f"*{next(words)} = dims[{i}];")
    if sizes:
        w.line("return status;")
