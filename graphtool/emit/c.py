"""Program → text: one header, one driver file, files of kernels. Knows loops and scalars only.

Identifiers are generated; a name from the model appears only as an escaped string or a comment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import graphtool.emit.cuda  # a row of the table of languages
import graphtool.emit.opencl  # noqa: F401  another one
from graphtool.emit import typed
from graphtool.emit.c99 import functions_header
from graphtool.emit.device import device_loader
from graphtool.emit.driver import driver
from graphtool.emit.example import example
from graphtool.emit.headers import called, used_headers
from graphtool.emit.images import images
from graphtool.emit.interface import header
from graphtool.emit.kernels import Kernels
from graphtool.emit.language import language_of
from graphtool.emit.lines import debug_lines
from graphtool.emit.names import check_name
from graphtool.emit.single import folded
from graphtool.emit.small_indices import small_indices
from graphtool.emit.weights import ALIGN, Part, loader, weights_bytes
from graphtool.kernels import headers
from graphtool.loops.contract import CONTRACTS, HOME
from graphtool.loops.ir import Template
from graphtool.loops.program import Kernel, Program, counters
from graphtool.loops.walk import statements

# files small enough to compile in parallel; how many there are does not depend on the machine
KERNELS_PER_FILE = 12
TEMPLATES_PER_FILE = 48 << 10  # bytes of headers that are compiled for one kernel each


def emit(program: Program, parts: Sequence[Part] = (), *, owner: str = "",
         state: bool = False, nodes: Mapping[str, str] | None = None) -> dict[str, str]:
    """File name → text: NAME.h, NAME.c, NAME_load.c, NAME_example.c, NAME_kernels.h, the files of
    kernels in the program's language, in C NAME_kernels*.c, and the headers that they include.

    `parts` says which weights are built into the library, in arrays that other files define.
    `owner`: the larger build of which the program is a part, which loads the weights and has the
    example; `state`: it also has the arrays that the program updates. `nodes`: debuggers show the
    model's lines, or NAME_nodes.txt, which then is a file too; it has the text of the node that
    makes each value, as far as it is known.
    Raises UsageError GT2110 for a name that files and functions cannot have, GT2105 for a language
    that is not in the table, InputError GT0572 for a kernel that has no text in it.
    """
    name, language = program.name, language_of(program)
    check_name(name)
    dims = {s.name: f"d{i}" for i, s in enumerate(program.dims)}
    dims |= {s.name: s.name for s in counters(program.steps)}
    dims |= {s.name: f"size{i}" for i, s in enumerate(program.sizes)}
    debug = None if nodes is None else debug_lines(program, nodes)
    printer = Kernels(program, dims, debug, language)
    files = {f"{name}.h": header(program, built_in=bool(parts), owner=owner, state=state),
             f"{name}.c": driver(program, dims, parts, debug, language),
             f"{name}_kernels.h": printer.declarations()}
    if not owner:
        size = 0 if parts else weights_bytes([program])
        files |= public_files(program, size)
    together = language.device or language.plain
    whole = [list(program.kernels)] if together else divided(program.kernels, language.name)
    for i, chunk in enumerate(whole):
        file = f"{name}_kernels{i}{language.ending}"
        files[file] = printer.file(file, chunk)
        if printer.compiled_later:
            files[file] = folded(file, {file: files[file], **used_headers([files[file]])})
    if language.device:
        devices = [*map(int, filter(None, program.meta.get("devices", "").split(",")))]
        files[f"{name}_images.c"] = images(name, language.device.images(name, devices))
        if not owner:
            size = weights_bytes([program])
            files[f"{name}_load.c"] = device_loader(name, size, bool(size) and not parts,
                                                     language.device)
    files |= used_headers(files.values())
    if called("".join(files.values()), language) if language.plain else ():
        files[f"{name}_functions.h"] = functions_header(name, files.values())
    if language.plain and parts:
        files[f"{name}_weights.h"] = typed.declarations(program, parts)
    if program.align < ALIGN:
        files = small_indices(program, files)
    return files | ({debug.file: debug.text()} if debug else {})


def divided(kernels: Sequence[Kernel], language: str = HOME) -> list[list[Kernel]]:
    """The kernels of each file, in order."""
    files: list[list[Kernel]] = []
    room = 0
    for kernel in kernels:
        size = sum(len(headers.text(CONTRACTS[s.kernel].text(language)) or "")
                   for s in statements(kernel.body) if isinstance(s, Template))
        if not files or len(files[-1]) == KERNELS_PER_FILE or size > room:
            files.append([])
            room = TEMPLATES_PER_FILE
        files[-1].append(kernel)
        room -= size
    return files


def public_files(program: Program, size: int) -> dict[str, str]:
    """What a whole build has besides its parts: the loader of `size` bytes of weights in a file,
    0 if they are built in, and the example."""
    name = program.name
    files = {f"{name}_load.c": loader(name, size)}
    if not language_of(program).plain:
        files[f"{name}_example.c"] = example(program, f"{name}.safetensors" if size else "")
    return files
