"""NAME.h, the public interface of a compiled model: its sizes, its ports and its functions."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool.emit.lines import c_comment
from graphtool.loops.ir import Port, Program, binds
from graphtool.symbolic import symbols

_HEADER = """\
/* {name}: the interface of a compiled model. Generated; do not edit. */
#ifndef {upper}_H
#define {upper}_H
#include <stddef.h>
#include <stdint.h>

{counts}

{ports}

#pragma GCC visibility push(default)
/* Bytes of arena that a run needs; align it to 64. */
size_t {name}_arena_bytes(const int64_t *dims);

/* Runs the model. `weights` points behind the header of the weights file: 8 bytes and
   as many as its first uint64_t says. Aligned to 64; NULL where they are built in.
   Returns 0, or -1 for a dim out of range. Nothing is allocated; runs on different
   arenas may go on at the same time.{sizes} */
int {name}_run(const void *weights, void *arena, {dims} *dims,
        const void *const *inputs, void *const *outputs, int threads);
{levels}#pragma GCC visibility pop
#endif
"""
_SIZES = """ `dims` has room for the sizes that the run
   computes and leaves there; outputs are dense in their actual shape. Returns -2
   where one is out of its bounds: the outputs hold nothing then."""
_LEVELS = """
/* The level of {levels}, whose version runs: the processor's, or the lower
   one that the environment names when the library is loaded: GRAPHTOOL_LEVEL. */
int {name}_level(void);
"""


def header(program: Program, *, levels: str = "") -> str:
    """The text of NAME.h; `levels` names the processor levels for which the library has a version
    each."""
    name = program.name
    which = _LEVELS.format(name=name, levels=levels) if levels else ""
    return _HEADER.format(
        name=name, upper=name.upper(), dims=dims_type(program),
        counts="\n".join(f"#define {name.upper()}_{k} {n}" for k, n in _counts(program)),
        ports="\n".join(f"/* {line} */" for line in (*_dims(program), *_ports(program))),
        sizes=_SIZES if program.sizes else "", levels=which)


def dims_type(program: Program) -> str:
    """The C type of an element of `dims`: not const if a run computes sizes, which it writes
    there."""
    return "int64_t" if program.sizes else "const int64_t"


def open_sizes(program: Program, port: Port) -> bool:
    """Whether the port's shape is known only after a run."""
    names = {s.name for s in program.sizes}
    return any(s.name in names for d in port.shape for s in symbols(d))


def _counts(program: Program) -> Iterator[tuple[str, int]]:
    yield "INPUTS", len(program.inputs)
    yield "OUTPUTS", len(program.outputs)
    yield "DIMS", len(program.dims)
    if program.sizes:
        yield "SIZES", len(program.sizes)
    if isinstance(program.arena, int):
        yield "ARENA_BYTES", program.arena


def _dims(program: Program) -> Iterator[str]:
    """The contents of `dims`: the sizes that the caller gives, then those that the run computes."""
    for i, s in enumerate(program.dims):
        limit = "" if s.hi is None else f", at most {s.hi}"
        yield f"dims[{i}]: {c_comment(s.name)}, at least {s.lo}{limit}"
    for i, b in enumerate(binds(program.steps), len(program.dims)):
        least = "any number" if b.size.lo is None else b.size.lo
        yield (f"dims[{i}]: {c_comment(b.size.name)}, which the run computes: {least} to "
               f"{c_comment(str(b.most))}")


def _ports(program: Program) -> Iterator[str]:
    room = {b.slot: b.size for b in program.buffers if b.space == "output"}
    for kind, ports in (("inputs", program.inputs), ("outputs", program.outputs)):
        for i, p in enumerate(ports):
            shape = c_comment(", ".join(str(d) for d in p.shape))
            more = "" if kind == "inputs" or not open_sizes(program, p) else (
                f", with room for {c_comment(str(room[i]))}")
            yield f"{kind}[{i}]: {p.dtype.c} {c_comment(p.name)}[{shape}]{more}"
