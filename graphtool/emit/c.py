"""Program → C: one header, one driver file, files of kernels. Knows loops and scalars only.

Identifiers are generated; a name from the model appears only as an escaped string or a comment.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphtool.emit.driver import driver
from graphtool.emit.embedded_weights import Part
from graphtool.emit.headers import used_headers
from graphtool.emit.interface import header
from graphtool.emit.kernels import Kernels
from graphtool.emit.names import check_name
from graphtool.loops.ir import Program, counters

KERNELS_PER_FILE = 12  # small enough to compile in parallel, and independent of the job count


def emit(program: Program, parts: Sequence[Part] = ()) -> dict[str, str]:
    """File name → text: NAME.h, NAME.c, NAME_kernels*.c/.h and the headers that they include.

    `parts` says which weights are built into the library, in arrays that other files define.
    Raises UsageError GT2110 for a name that files and functions cannot have.
    """
    name = program.name
    check_name(name)
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
