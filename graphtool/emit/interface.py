"""NAME.h, the public interface of a compiled model in C and C++: its sizes, its ports as macros,
and its functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphtool.emit.expr import ExprPrinter, Text, joined_terms
from graphtool.emit.language import language_of
from graphtool.emit.shares import is_shared, own_bytes
from graphtool.emit.statuses import enumeration, statuses
from graphtool.escaping import c_comment
from graphtool.loops.dim_names import author_text, by_author, symbol_by_author
from graphtool.loops.program import Port, Program, binds
from graphtool.symbolic import Call, Dim, Symbol, bounds, divides, product, symbols
from graphtool.symbolic.text import Factor, value_terms


class MacroPrinter(ExprPrinter):
    """Prints sizes as C of the standard headers alone, in terms of a macro's argument `dims`."""

    def __init__(self, program: Program) -> None:
        known = enumerate((*program.dims, *program.sizes))
        super().__init__({s.name: f"(dims)[{i}]" for i, s in known})

    def dim(self, d: Dim) -> Text:
        """As the base class does; a symbol stands for its value, not for the number of its
        steps."""
        if isinstance(d, int):
            return super().dim(d)
        return joined_terms((list(map(self.factor, parts)), c) for parts, c in value_terms(d))

    def factor(self, f: Factor) -> str:
        """The C text of a factor; its dividend is not negative."""
        a, offset, divisor = f
        less = f"({self.atom(a)} - {offset})" if offset else self.atom(a)
        return less if divisor == 1 else f"({less} / {divisor})"

    def atom(self, a: Symbol | Call) -> str:
        """As the base class does, without its functions."""
        if isinstance(a, Symbol):
            return super().atom(a)
        x, y = self.index(a.a, 13), self.index(a.b, 13)
        if a.fn in ("min", "max"):
            return f"(({x}) {'<' if a.fn == 'min' else '>'} ({y}) ? ({x}) : ({y}))"
        low = bounds(a.a)[0]
        if low is not None and low >= 0:
            return super().atom(a)
        below = f"(({x}) % ({y}) < 0)"
        return (f"(({x}) / ({y}) - {below})" if a.fn == "//" else
                f"(({x}) % ({y}) + ({below} ? ({y}) : 0))")


def open_sizes(program: Program, port: Port) -> bool:
    """Whether the port's shape is known only after a run."""
    names = {s.name for s in program.sizes}
    return any(s.name in names for d in port.shape for s in symbols(d))


def maybe_zero(program: Program, kind: str, slot: int) -> list[Dim]:
    """The sizes of an input or output that may be 0; if one is, it has no elements and may be
    NULL.

    If a run computes the shape, the room for it counts.
    """
    port = (program.inputs if kind == "input" else program.outputs)[slot]
    sizes: list[Dim] = list(port.shape)
    if open_sizes(program, port):
        sizes = [b.size for b in program.buffers if (b.space, b.slot) == (kind, slot)]
    return [d for d in sizes if (low := bounds(d)[0]) is None or low <= 0]


def port_lines(program: Program, left_out: frozenset[int] = frozenset()) -> Iterator[str]:
    """A comment and the macros of each port. Inputs in `left_out` and the outputs that are donated
    from them have the comment alone."""
    printer, name = MacroPrinter(program), program.name.upper()
    rooms = {b.slot: b.size for b in program.buffers if b.space == "output"}
    donors = dict(program.donations)
    updated = {o for o, i in program.donations if i in left_out}
    for kind, ports, skipped in (("input", program.inputs, left_out),
                                 ("output", program.outputs, updated)):
        for i, p in enumerate(ports):
            room = rooms[i] if kind == "output" and open_sizes(program, p) else None
            shape = c_comment(", ".join(map(author_text, p.shape)))
            more = "" if room is None else f", with room for {c_comment(author_text(room))}"
            if kind == "output" and i in donors and i not in skipped:
                more += f",\n   which takes the place of inputs[{donors[i]}]: give both one array"
            yield f"/* {kind}s[{i}]: {p.dtype.c} {c_comment(p.name)}[{shape}]{more} */"
            if i not in skipped:
                yield from _macros(printer, f"{name}_{kind.upper()}{i}", p, room)
            if (grid := program.grids.get(f"{kind}{i}")) is not None:
                stem = f"{name}_{kind.upper()}{i}"
                yield f"/* its byte q is the real number (q - {stem}_ZERO) * {stem}_SCALE */"
                yield f"#define {stem}_SCALE {np.float32(grid[0])!s}f"
                yield f"#define {stem}_ZERO ({grid[1]})"


def _macros(printer: ExprPrinter, stem: str, p: Port, room: Dim | None) -> Iterator[str]:
    """The macros of a port; `room` is the number of elements at most, if a run computes it."""
    yield f"#define {stem}_RANK {len(p.shape)}"
    if p.shape:
        shape = ", ".join(printer.index(d) for d in p.shape)
        yield f"#define {stem}_SHAPE{arguments(*p.shape)} {{{shape}}}"
    count = product(p.shape)
    yield f"#define {stem}_COUNT{arguments(count)} {printer.index(count, 15)}"
    size = (count if room is None else room) * p.dtype.bytes
    text = str(size) if isinstance(size, int) else f"((size_t)({printer.index(size)}))"
    yield f"#define {stem}_BYTES{arguments(size)} {text}"


def arguments(*sizes: Dim) -> str:
    """The parameter of a macro whose text depends on `dims`."""
    return "" if all(isinstance(d, int) for d in sizes) else "(dims)"


ALIGN = 64  # of the weights and of the arena, in bytes

_HEADER = """\
/* {name}: the interface of a compiled model. Generated; do not edit.{example} */
#ifndef {upper}_H
#define {upper}_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

{counts}

{ports}

/* What the functions return. */
{statuses}

#pragma GCC visibility push(default)
/* A status in words; the text is constant. */
const char *{name}_status_text(int status);

{loading}{running}{levels}#pragma GCC visibility pop
#ifdef __cplusplus
}}
#endif
#endif
"""
_RUNNING = """\
/* Bytes of arena that a run with these dims needs, a multiple of 64; the arena starts at a
   multiple of 64 too. 0 if a dim is out of its range, or if no arena can be so large. */
size_t {name}_arena_bytes(const int64_t *dims);

/* Runs the model and returns a status; unless it is 0, the outputs hold nothing.
   {weights}
   Inputs and outputs are dense arrays, aligned to their elements; one of no elements may be NULL.
   {keeps} any number of threads may call this
   at the same time if each has its own arena, dims and outputs.
   {threads}{sizes} */
int {name}_run(const void *weights, void *arena, {dims} *dims,
        const void *const *inputs, void *const *outputs, int threads);
"""
_KEPT = "A run keeps nothing but the threads that it made, asleep:"
_OWN = """\
`threads` is how many of them one run may use, 0: as many as the process may use
   processors.{most}"""
_ON_POOL = """
/* A pool of the caller's: calls body(arg, index, count) once for each index from 0 to count - 1, on
   any of its threads, in any order, at the same time or one after the other, and returns when all
   these calls have returned. They call no pool, and end without waiting for one that has not begun.
   Nothing may be thrown through them. */
typedef void {name}_pool(void *pool, void (*body)(void *arg, int index, int count), void *arg,
        int count);

/* As {name}_run, in parts that threads of the caller's run: `run` is called once at most, with
   `pool`. `threads` is the most parts; where it is less than 2, `run` may be NULL.
  {most} */
int {name}_run_on(const void *weights, void *arena, {dims} *dims,
        const void *const *inputs, void *const *outputs, int threads,
        {name}_pool *run, void *pool);
"""
_ON_DEVICE = """\
/* Bytes of memory on the device that a run with these dims works in; 0 if a dim is out of its
   range. */
size_t {name}_arena_bytes(const int64_t *dims);

/* Runs the model on the device and returns a status; unless it is 0, the outputs hold nothing.
   {weights}
   Inputs and outputs are dense arrays, aligned to their elements; one of no elements may be NULL.
   Each may be in the caller's memory, and is copied there and back, or in memory of the device,
   and is used where it is if it starts at a multiple of 16 bytes. `arena` and `threads` are not
   used: the library keeps memory on the device for the next run. Threads that call this at the
   same time run one after the other.{sizes} */
int {name}_run(const void *weights, void *arena, {dims} *dims,
        const void *const *inputs, void *const *outputs, int threads);

/* The same where inputs, outputs and an arena are all memory of the device; nothing is copied. Each
   array starts at a multiple of 16 bytes. */
int {name}_run_device(const void *weights, void *arena, {dims} *dims,
        const void *const *inputs, void *const *outputs);

/* Memory of the device; copies between it and the caller's memory in any direction, which have
   ended when this returns; and its end.{memory} */
int {name}_device_alloc(void **memory, size_t bytes);
int {name}_device_copy(void *to, const void *from, size_t bytes);
void {name}_device_free(void *memory);
"""
_LOADING = """\
/* The weights in memory. */
typedef struct {{
    const void *data; /* what {takes} */
    void *memory;     /* what {name}_free gives back */
    size_t bytes;
}} {name}_weights;

/* Gets the weights and returns a status. {builtin} */
int {name}_load({name}_weights *weights, const char *path);

/* Gives back what {name}_load got. */
void {name}_free({name}_weights *weights);

"""
_IN_FILE = ("`path` names the file {name}.safetensors, which the\n"
            "   system maps: processes share it.")
_NO_FILE = "No file is needed: `path` is not read and may be\n   NULL, and `data` becomes NULL."
_TO_DEVICE = "`path` names the file {name}.safetensors,\n   which is copied to the device."
_BUILT_IN = ("No file is needed: `path` is not read and may be\n   NULL, and the weights are "
             "copied to the device.")
_SIZES = """
   `dims` has room for the sizes that the run computes and leaves there; outputs are dense in
   their actual shape."""
_LEVELS = """
/* The level of {levels}, whose version runs: the processor's, or the lower
   one that the environment names when the library is loaded: GRAPHTOOL_LEVEL. */
int {name}_level(void);
"""


_LOG = """
/* What the device's compiler said of the kernels when it refused them; "" if it did not. */
{prototype};
"""


def header(program: Program, *, levels: str = "", built_in: bool = False,
           owner: str = "", state: bool = False) -> str:
    """The text of NAME.h; `levels` names the processor levels for which the library has a version
    each.

    `built_in`: the weights are in the library. `owner`: the larger build of which the program is a
    part, which loads the weights; with `state` it also owns the arrays that runs update.
    """
    name, device = program.name, language_of(program).device
    log = _LOG.format(prototype=f"const char *{name}_device_log(void)") if (
        device and device.compiles) else ""
    memory = f" {device.memory}" if device and device.memory else ""
    weighs = bool(program.weights) and not built_in
    pooled, most = bool(language_of(program).steps.given), _most_threads(program)
    updated = frozenset(i for _, i in program.donations) if state else frozenset[int]()
    return _HEADER.format(
        name=name, upper=name.upper(),
        loading="" if owner else loading(name, weighs, device=bool(device)),
        example="" if owner or language_of(program).plain else (
            f"\n   {name}_example.c shows how to use it."),
        running=(_ON_DEVICE + log if device else _RUNNING + _ON_POOL * pooled).format(
            name=name, dims=dims_type(program), sizes=_SIZES if program.sizes else "",
            memory=memory, most=most, keeps="A run keeps nothing:" if pooled else _KEPT,
            threads=(f"It runs on the caller's thread, whatever `threads` is: {name}_run_on takes\n"
                     "   more." if pooled else _OWN.format(most=most)),
            weights=(f"`weights` is the data that {owner or name}_load got." if weighs else
                     "`weights` is NULL: the library has them.")),
        counts="\n".join(f"#define {name.upper()}_{k} {n}" for k, n in _counts(program)),
        ports="\n".join((*(f"/* {line} */" for line in _dims(program)),
                         *port_lines(program, updated))),
        statuses=enumeration(name, statuses(program)),
        levels=_LEVELS.format(name=name, levels=levels) if levels else "")


def _most_threads(program: Program) -> str:
    """What limits the threads of a run, and the memory that they need."""
    if program.threads == 1 or not is_shared(program):
        return " It uses one."
    memory = own_bytes(program)
    more = "" if memory == 0 else (
        f" Each but the first works\n   in {c_comment(author_text(memory))} bytes of its own, "
        "which the library keeps.")
    return f" It uses {program.threads} at most.{more}"


def loading(name: str, weighs: bool, takes: str = "", *, device: bool = False) -> str:
    """The declarations of NAME_load and NAME_free; `weighs`: there is a file to load. `takes` says
    who takes its data, by default NAME_run. `device`: they are copied to a device."""
    source = (_TO_DEVICE if weighs else _BUILT_IN) if device else _IN_FILE if weighs else _NO_FILE
    return _LOADING.format(name=name, takes=takes or f"{name}_run takes",
                           builtin=source.format(name=name))


def dims_type(program: Program) -> str:
    """The C type of an element of `dims`: not const if a run computes sizes, which it writes
    there."""
    return "int64_t" if program.sizes else "const int64_t"


def _counts(program: Program) -> Iterator[tuple[str, int]]:
    yield "INPUTS", len(program.inputs)
    yield "OUTPUTS", len(program.outputs)
    yield "DIMS", len(program.dims)
    if program.sizes:
        yield "SIZES", len(program.sizes)
    if isinstance(program.arena, int):
        yield "ARENA_BYTES", arena_room(program.arena)


def arena_room(size: int) -> int:
    """The bytes of an arena as the caller sees them: a multiple of 64, and never 0."""
    return max(-(-size // ALIGN), 1) * ALIGN


def _dims(program: Program) -> Iterator[str]:
    """The contents of `dims`: the sizes that the caller gives, then those that the run computes."""
    for i, s in enumerate(map(symbol_by_author, program.dims)):
        limit = "" if s.hi is None else f", at most {s.hi}"
        rule = f", {divides(s)}" if s.step > 1 else ""
        yield c_comment(f"dims[{i}]: {s.name}, at least {s.lo}{limit}{rule}")
    for i, b in enumerate(binds(program.steps), len(program.dims)):
        least = "any number" if b.size.lo is None else b.size.lo
        yield (f"dims[{i}]: {c_comment(by_author(b.size.name))}, which the run computes: {least} "
               f"to {c_comment(author_text(b.most))}")
