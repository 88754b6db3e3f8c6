"""The head of a kernel: its parameters, and which sizes of the program it takes."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.emit.language import C, Language
from graphtool.emit.pieces import knows_thread
from graphtool.loops.program import Kernel, Param
from graphtool.loops.walk import polynomials
from graphtool.symbolic import symbols


def pointer_type(p: Param, language: Language = C) -> str:
    """The type of a pointer parameter; packed elements are read as bytes."""
    return language.pointer.format(const="const " if p.const else "",
                                   type="uint8_t" if p.packed else language.type(p.dtype))


def kernel_dims(kernel: Kernel, dims: Mapping[str, str]) -> list[str]:
    """The program's dims that the kernel uses, in order."""
    used = {s.name for d in polynomials(kernel.body) for s in symbols(d)}
    return [c for name, c in dims.items() if name in used]


def parameters(kernel: Kernel, dims: Mapping[str, str], language: Language) -> list[str]:
    """The declarations of a kernel's parameters behind those of its part: the worker if it needs
    to know it, buffers such as `const float *x`, then sizes."""
    who = language.workers
    return [*([f"{who.type}{who.name}"] if knows_thread(kernel) else []),
            *(f"{pointer_type(p, language)}{p.name}" for p in kernel.params),
            *(f"{language.size} {d}" for d in kernel_dims(kernel, dims))]


def signature(name: str, kernel: Kernel, dims: Mapping[str, str], language: Language) -> str:
    """The head of a kernel: its part of the work, then its parameters."""
    params = ", ".join((*language.workers.params, *parameters(kernel, dims, language)))
    return language.kernel.format(name=f"{name}_{kernel.name}", params=params)
