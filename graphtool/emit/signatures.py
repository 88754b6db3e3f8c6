"""The C prototype of a kernel: its parameters, and which sizes of the program it takes."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.loops.program import Kernel, Param
from graphtool.symbolic import Poly, symbols


def param_text(p: Param) -> str:
    """The declaration of a kernel parameter in C, such as `const float *restrict x`."""
    return f"{pointer_type(p)}{p.name}"


def pointer_type(p: Param) -> str:
    """The C type of a pointer parameter; packed elements are read as bytes."""
    return f"{'const ' if p.const else ''}{'uint8_t' if p.packed else p.dtype.c} *"


def kernel_dims(kernel: Kernel, dims: Mapping[str, str]) -> list[str]:
    """The program's dims that the kernel uses, in order."""
    used: set[str] = set()

    def visit(x: object) -> None:
        if isinstance(x, Poly):
            used.update(s.name for s in symbols(x))
        elif isinstance(x, (tuple, list)):
            for item in x:
                visit(item)
        elif hasattr(x, "__dataclass_fields__"):
            for f in x.__dataclass_fields__:
                if f not in ("dtype", "iter"):
                    visit(getattr(x, f))
    visit(kernel.body)
    return [c for name, c in dims.items() if name in used]


def signature(name: str, kernel: Kernel, dims: Mapping[str, str]) -> str:
    """The C prototype of a kernel without `;`: thread, number of threads, buffers, then sizes."""
    params = ["int t", "int threads", *map(param_text, kernel.params)]
    params += [f"int64_t {d}" for d in kernel_dims(kernel, dims)]
    return f"void {name}_{kernel.name}({', '.join(params)})"
