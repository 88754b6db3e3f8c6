"""The C prototype of a kernel: its parameters, and which sizes of the program it takes."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.emit.pieces import knows_thread
from graphtool.loops.program import Kernel, Param
from graphtool.loops.walk import polynomials
from graphtool.symbolic import symbols

THREAD = "this_thread"  # the parameter by which a kernel knows its thread


def param_text(p: Param) -> str:
    """The declaration of a kernel parameter in C, such as `const float *restrict x`."""
    return f"{pointer_type(p)}{p.name}"


def pointer_type(p: Param) -> str:
    """The C type of a pointer parameter; packed elements are read as bytes."""
    return f"{'const ' if p.const else ''}{'uint8_t' if p.packed else p.dtype.c} *"


def kernel_dims(kernel: Kernel, dims: Mapping[str, str]) -> list[str]:
    """The program's dims that the kernel uses, in order."""
    used = {s.name for d in polynomials(kernel.body) for s in symbols(d)}
    return [c for name, c in dims.items() if name in used]


def signature(name: str, kernel: Kernel, dims: Mapping[str, str]) -> str:
    """The C prototype of a kernel without `;`: the piece, how many pieces there are, the thread if
    it needs to know it, buffers, then sizes."""
    params = ["int t", "int threads", *([f"gt_worker *{THREAD}"] if knows_thread(kernel) else []),
              *map(param_text, kernel.params)]
    params += [f"int64_t {d}" for d in kernel_dims(kernel, dims)]
    return f"void {name}_{kernel.name}({', '.join(params)})"
