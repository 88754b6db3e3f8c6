"""The driver of a library that contains a model several times, once for each processor level.

The level is selected once, when the library is loaded; each call costs one more jump.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.emit.lines import Writer
from graphtool.loops.program import Program

RUN = "(const void *weights, void *arena, const int64_t *dims,\n" \
      "        const void *const *inputs, void *const *outputs, int threads)"


def dispatcher(name: str, levels: Mapping[int, Program], header: str, call: str) -> str:
    """C that defines NAME_run, NAME_arena_bytes and NAME_level over the levels' own programs.

    `call` is the C expression for the processor's level, `header` the file that defines it.
    """
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
    w.line()
    with w.block("static const variant variants[] = {", "};"):
        for level in sorted(levels, reverse=True):
            own = levels[level].name
            w.line(f"{{{level}, {own}_status_text, {own}_arena_bytes, {own}_run}},")
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
    return w.text()
