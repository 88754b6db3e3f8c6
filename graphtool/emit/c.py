"""Program → C: one header, one driver file, files of kernels. Knows loops and scalars only.

Identifiers are generated; a name from the model appears as an escaped string or comment at most.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from importlib import resources

from graphtool.emit.driver import driver, header
from graphtool.emit.kernels import Kernels
from graphtool.emit.weights import Part
from graphtool.loops.ir import Program, counters

KERNELS_PER_FILE = 12  # small enough to compile in parallel, and independent of the job count


def emit(program: Program, parts: Sequence[Part] = ()) -> dict[str, str]:
    """File name → text: NAME.h, NAME.c, NAME_kernels*.c/.h and the headers that they include.

    `parts` says which weights are built into the library, in arrays that other files define.
    """
    name = program.name
    dims = {s.name: f"d{i}" for i, s in enumerate(program.dims)}
    dims |= {s.name: s.name for s in counters(program.steps)}
    dims |= {s.name: f"size{i}" for i, s in enumerate(program.sizes)}
    printer = Kernels(program, dims)
    chunks = [program.kernels[i:i + KERNELS_PER_FILE]
              for i in range(0, len(program.kernels), KERNELS_PER_FILE)]
    files = {f"{name}.h": header(program), f"{name}.c": driver(program, dims, parts),
             f"{name}_kernels.h": printer.declarations()}
    for i, chunk in enumerate(chunks):
        files[f"{name}_kernels{i}.c"] = printer.file(chunk)
    return files | used_headers(files.values())


def used_headers(texts: Iterable[str]) -> dict[str, str]:
    """The kernel headers that the files include, and those that these include in turn; of what a
    header includes for a macro alone, what the files define the macro for."""
    folder = resources.files("graphtool.kernels")
    found: dict[str, str] = {}
    pending = list(texts)
    given = {macro for text in pending for macro in re.findall(r"#define (GT_\w+)", text)}
    while pending:
        for header_name in _included(pending.pop(), given):
            path = folder / header_name
            if header_name not in found and path.is_file():
                found[header_name] = path.read_text()
                pending.append(found[header_name])
    return dict(sorted(found.items()))


def _included(text: str, given: Collection[str]) -> list[str]:
    """The files that a text includes when these macros are defined; other conditions may hold."""
    found, open_ = [], list[bool]()
    for word, rest in re.findall(r"^#(\w+)(?: (.*))?$", text, re.MULTILINE):
        if word in ("if", "ifdef", "ifndef"):
            open_.append(word != "ifdef" or not rest.startswith("GT_") or rest in given)
        elif word in ("else", "elif") and open_:
            open_[-1] = True
        elif word == "endif" and open_:
            open_.pop()
        elif word == "include" and rest.startswith('"') and all(open_):
            found.append(rest.strip('"'))
    return found
