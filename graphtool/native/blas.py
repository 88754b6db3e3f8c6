"""Where a CBLAS library is: the system's OpenBLAS, or the wheel scipy-openblas32. Loads nothing."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from graphtool.errors import CompilerError
from graphtool.io import release
from graphtool.native.compiler import Compiler
from graphtool.native.probes import supports


def linking(compiler: Compiler, sources: Container[str]) -> Compiler:
    """The compiler, linking a CBLAS library if one of the files needs it.

    Raises CompilerError GT2130 where there is none.
    """
    if "blas.h" not in sources:
        return compiler
    if supports(compiler.command, libraries=("-lopenblas",)):
        return replace(compiler, libraries=("-lopenblas",))
    found = find_spec("scipy_openblas32")
    folder = Path(found.origin).parent / "lib" if found and found.origin else None
    if folder is None or not folder.is_dir():
        raise CompilerError("GT2130", "--kernels blas needs a CBLAS library, and there is none",
                            hint=f"apt install libopenblas-dev, or {release.install('blas')}")
    return replace(compiler, flags=(*compiler.flags, "-DGT_BLAS_PREFIX=scipy_"),
                   libraries=(f"-L{folder}", "-lscipy_openblas", f"-Wl,-rpath,{folder}"))
