"""NAME.h and NAME.c of a build of several entry points: programs that read one set of weights.

Each entry point has a header of its own, NAME_ENTRY.h, with the interface of a model; NAME.h
includes them all, and loads the weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.emit.interface import arena_room, loading
from graphtool.emit.lines import Writer
from graphtool.emit.statuses import LOADING, enumeration, status_function
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


def entries_sources(name: str, programs: Mapping[str, Program], weighs: bool) -> dict[str, str]:
    """The two files; `weighs`: there is a file of weights. The programs are called NAME_ENTRY."""
    w = Writer()
    w.line(f'#include "{name}.h"')
    w.line()
    status_function(w, name, LOADING)
    return {f"{name}.h": _header(name, programs, weighs), f"{name}.c": w.text()}


def _header(name: str, programs: Mapping[str, Program], weighs: bool) -> str:
    sizes = [p.arena for p in programs.values() if isinstance(p.arena, int)]
    arena = "" if len(sizes) < len(programs) else _ARENA.format(
        upper=name.upper(), size=max(map(arena_room, sizes)))
    return _HEADER.format(
        name=name, upper=name.upper(), arena=arena, statuses=enumeration(name, LOADING),
        includes="\n".join(f'#include "{p.name}.h"' for p in programs.values()),
        loading=loading(name, weighs, "the entry points take"))
