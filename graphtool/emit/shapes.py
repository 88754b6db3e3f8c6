"""NAME_shapes.c: functions by which other languages than C learn the bytes and shapes of ports.

They are made from the macros of the headers, which only C can read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_MACRO = re.compile(r"#define (\w+)_(INPUT|OUTPUT)(\d+)_(SHAPE|BYTES)\b(\(dims\))?")
_FUNCTION = re.compile(r"^size_t (\w+)_arena_bytes\(", re.MULTILINE)
_TEXT = """
/* The bytes of a port for these sizes, and its shape. Outputs follow inputs. */
size_t {name}_shape(int port, const int64_t *dims, int64_t *shape);
size_t {name}_shape(int port, const int64_t *dims, int64_t *shape)
{{
    (void)dims, (void)shape;
    switch (port) {{
{cases}    default: return 0;
    }}
}}
"""


def shapes(name: str, texts: Mapping[str, str]) -> str:
    """The text of NAME_shapes.c for the headers in `texts`. For each function F of the build it has
    `size_t F_shape(int port, const int64_t *dims, int64_t *shape)`: the bytes of a port, with its
    shape if `shape` is not NULL. Of a port whose shape the run computes, the bytes are those that
    it needs at most; of one in a training state they are 0."""
    headers = "\n".join(text for file, text in sorted(texts.items()) if file.endswith(".h"))
    macros = {(m[1], m[2], int(m[3]), m[4]): m[5] or "" for m in _MACRO.finditer(headers)}
    bodies = (_TEXT.format(name=f, cases="".join(_cases(f, headers, macros)))
              for f in _FUNCTION.findall(headers))
    return (f'#include "{name}.h"\n\n#pragma GCC visibility push(default){"".join(bodies)}'
            "#pragma GCC visibility pop\n")


def _cases(function: str, headers: str,
           macros: Mapping[tuple[str, str, int, str], str]) -> Iterator[str]:
    big = function.upper()
    counts = {kind: int(count) for kind, count in re.findall(
        rf"^#define {big}_(INPUT|OUTPUT)S (\d+)", headers, re.MULTILINE)}
    ports = [(kind, i) for kind in ("INPUT", "OUTPUT") for i in range(counts[kind])]
    for port, (kind, i) in enumerate(ports):
        dims = macros.get((big, kind, i, "BYTES"))
        if dims is None:
            continue
        stem = f"{big}_{kind}{i}"
        yield f"    case {port}: {{\n"
        if (big, kind, i, "SHAPE") in macros:
            yield (f"        const int64_t s[] = {stem}_SHAPE{macros[big, kind, i, 'SHAPE']};\n"
                   f"        for (int i = 0; shape && i < {stem}_RANK; i++)\n"
                   "            shape[i] = s[i];\n")
        yield f"        return (size_t){stem}_BYTES{dims};\n    }}\n"
