"""Compiles the C files of a build directory, and links them, with a CBLAS library where one is
needed: OpenBLAS of the system, or the wheel scipy-openblas32.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphtool.errors import CompilerError
from graphtool.io import release
from graphtool.native import cache
from graphtool.native.compiler import Compiler
from graphtool.native.probes import supports
from graphtool.native.systems import System


def compile_all(work: Path, name: str, sides: Sequence[str], programs: Sequence[str],
                common: Compiler, special: Mapping[str, Compiler], jobs: int | None, *,
                static: bool, exe: bool, single: bool = False) -> dict[str, Any]:
    """Compile every C file (in parallel, the largest first, through the cache) and link; the rows
    of build.json that say how.

    Files whose names start with a key of `special` are compiled by that compiler; `sides` are the
    names of the weights, whose files contain only data, as do those of the code that the `programs`
    have for devices. `single`: NAME.c has the kernels too.
    """
    # what they include is in no cache key: weights, and kernels that are compiled for devices
    data = (*(f"{p}_images.c" for p in programs), *(f"{s}_weights" for s in sides))
    programs_of_their_own = {f"{name}_main.c", f"{name}_example.c"}
    units = sorted(p for p in work.glob("*.c") if p.name not in programs_of_their_own)
    headers = "".join(p.read_text("utf-8") for p in sorted(work.glob("*.h")))

    def compiled(p: Path) -> Path:
        if p.name.startswith(data):
            return common.compile_data(p)
        with_ = next((c for start, c in special.items() if p.name.startswith(start)), common)
        whole = single and p.name == f"{name}.c"
        return (with_ if whole else with_.of_file(p.name)).compile(p, headers)
    order = sorted(units, reverse=True, key=lambda p: p.stat().st_size + (
        0 if p.name.startswith(data) else _included_bytes(p)))
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        pool.submit(lambda: common.implied)  # its answer is kept for the linking below
        pending = {p: pool.submit(compiled, p) for p in order}
    objects = [pending[p].result() for p in units]
    cache.prune_daily()
    library = library_of(name, common.system, static=static)
    if static:
        common.archive(objects, work / library)
    else:
        common.link(objects, work / library)
    out: dict[str, Any] = {"library": library, "compiler": common.version,
                           "flags": list(common.flags)}
    if exe:
        main = compiled(work / f"{name}_main.c")
        out["executable"] = common.system.program.format(name)
        common.link_program([*objects, main], work / out["executable"], static=static)
    for o in objects:
        o.unlink()
    for o in (*work.glob("*.o"), *work.glob("*.pdb")):
        o.unlink()
    return out


def library_of(name: str, system: System, *, static: bool) -> str:
    """The file name of a library for a system."""
    return f"lib{name}.a" if static else system.library.format(name)


def _included_bytes(source: Path) -> int:
    """The bytes of the headers that a C file includes by itself, each as often as it does: that of
    a template once for each kernel."""
    named = re.findall(r'^#include "(.+)"', source.read_text("utf-8"), re.MULTILINE)
    return sum(h.stat().st_size for n in named if (h := source.parent / n).exists())


def linking(compiler: Compiler, sources: Container[str]) -> Compiler:
    """The compiler, linking a CBLAS library if one of the files needs it.

    Raises CompilerError GT2130 where there is none.
    """
    if "blas.h" not in sources:
        return compiler
    if supports(compiler.command, libraries=("-lopenblas",)):
        return replace(compiler, libraries=("-lopenblas",))
    blas = find_spec("scipy_openblas32")
    folder = Path(blas.origin).parent / "lib" if blas and blas.origin else None
    if folder is None or not folder.is_dir():
        raise CompilerError("GT2130", "--kernels blas needs a CBLAS library, and there is none",
                            hint=f"apt install libopenblas-dev, or {release.install('blas')}")
    return replace(compiler, flags=(*compiler.flags, "-DGT_BLAS_PREFIX=scipy_"),
                   libraries=(f"-L{folder}", "-lscipy_openblas", f"-Wl,-rpath,{folder}"))
