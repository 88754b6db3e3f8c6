"""Builds of several models in one library: entry points, or levels of a processor.

Each entry point has a header of its own, NAME_ENTRY.h, with the interface of a model; NAME.h
includes them all, and loads the weights, which they share. Levels have one interface, and a driver
that calls the highest level that the processor has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphtool.emit.interface import arena_room, loading
from graphtool.emit.language import Device, language_of
from graphtool.emit.lines import Writer
from graphtool.emit.statuses import LOADING, Status, enumeration, of_device, status_function
from graphtool.loops.program import Program

_HEADER = """\
/* {name}: the entry points of a compiled model. Generated; do not edit.
   {name}_example.c shows how to use them. */
#ifndef {upper}_H
#define {upper}_H
#include <stddef.h>
#include <stdint.h>
{includes}
#ifdef __cplusplus
extern "C" {{
#endif
{arena}
/* What {name}_load returns. */
{statuses}

#pragma GCC visibility push(default)
/* A status of {name}_load in words; the text is constant. */
const char *{name}_status_text(int status);

{loading}#pragma GCC visibility pop
#ifdef __cplusplus
}}
#endif
#endif
"""
_ARENA = """
/* One arena that is large enough for every entry point; aligned to 64. What it holds lasts for one
   run only. */
#define {upper}_ARENA_BYTES {size}
"""


def entries_sources(name: str, programs: Mapping[str, Program], weighs: bool, *,
                    device: Device | None = None) -> dict[str, str]:
    """The two files; `weighs`: there is a file of weights, `device`: they go there. The
    programs are called NAME_ENTRY."""
    w, rows = Writer(), (*LOADING, *(of_device(device) if device else ()))
    w.line(f'#include "{name}.h"')
    w.line()
    status_function(w, name, rows)
    text = _header(name, programs, rows, loading(
        name, weighs, "the entry points take", device=device is not None))
    return {f"{name}.h": text, f"{name}.c": w.text()}


def _header(name: str, programs: Mapping[str, Program], rows: Sequence[Status], load: str) -> str:
    sizes = [p.arena for p in programs.values() if isinstance(p.arena, int)]
    arena = "" if len(sizes) < len(programs) else _ARENA.format(
        upper=name.upper(), size=max(map(arena_room, sizes)))
    return _HEADER.format(
        name=name, upper=name.upper(), arena=arena,
        statuses=enumeration(name, rows),
        includes="\n".join(f'#include "{p.name}.h"' for p in programs.values()),
        loading=load)


RUN = "(const void *weights, void *arena, const int64_t *dims,\n" \
      "        const void *const *inputs, void *const *outputs, int threads)"


def dispatcher(name: str, levels: Mapping[int, Program], header: str, call: str) -> str:
    """C that defines NAME_run, NAME_arena_bytes and NAME_level over the levels' own programs, and
    NAME_run_on where threads are the caller's.

    `call` is the C expression for the processor's level, `header` the file that defines it.
    """
    first = next(iter(levels.values()))
    given = [p.format(name=name) for p in language_of(first).steps.given]
    w = Writer()
    w.line(f'#include "{name}.h"')
    w.line(f'#include "{header}"')
    for p in levels.values():
        w.line(f'#include "{p.name}.h"')
    w.line()
    with w.block("typedef struct {", "} variant;"):
        w.line("int level;")
        w.line("const char *(*status_text)(int status);")
        w.line("size_t (*arena_bytes)(const int64_t *dims);")
        w.line("int (*run)(const void *weights, void *arena, const int64_t *dims,")
        w.line("           const void *const *inputs, void *const *outputs, int threads);")
        if given:
            w.line("int (*run_on)(const void *weights, void *arena, const int64_t *dims,")
            w.line("              const void *const *inputs, void *const *outputs, int threads,")
            w.line(f"              {', '.join(given)});")
    w.line()
    with w.block("static const variant variants[] = {", "};"):
        for level in sorted(levels, reverse=True):
            prefix = levels[level].name
            more = f", {prefix}_run_on" if given else ""
            w.line(f"{{{level}, {prefix}_status_text, {prefix}_arena_bytes, {prefix}_run{more}}},")
    w.line("static const variant *chosen;")
    w.line()
    w.line("/* When the library is loaded: the first that the processor can run. */")
    with w.block("__attribute__((constructor)) static void choose(void)\n{"):
        w.line(f"const int level = {call};")
        w.line("for (chosen = variants; chosen->level > level; chosen++) {")
        w.line("}")
    w.line()
    with w.block(f"const char *{name}_status_text(int status)\n{{"):
        w.line("return chosen->status_text(status);")
    w.line()
    w.line(f"int {name}_level(void) {{ return chosen->level; }}")
    w.line()
    with w.block(f"size_t {name}_arena_bytes(const int64_t *dims)\n{{"):
        w.line("return chosen->arena_bytes(dims);")
    w.line()
    with w.block(f"int {name}_run{RUN}\n{{"):
        w.line("return chosen->run(weights, arena, dims, inputs, outputs, threads);")
    if given:
        w.line()
        with w.block(f"int {name}_run_on{RUN[:-1]},\n        {', '.join(given)})\n{{"):
            w.line("return chosen->run_on(weights, arena, dims, inputs, outputs, threads, run,")
            w.line("                      pool);")
    return w.text()
