"""Indices of 32 bits: in kernels of a device, and in all the C for machines that compute with such
numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphtool.dtypes import DType
from graphtool.kernels import headers
from graphtool.loops.ir import Template
from graphtool.loops.program import Kernel, Program, Run, Times, counters, every_step
from graphtool.loops.walk import polynomials, statements
from graphtool.symbolic import bounds

_WIDE = re.compile(r"\bint64_t\b")
_NUMBERS = re.compile(r"\buint64_t\b|\bdouble\b")  # a header with these computes with 64 bits
_OF_64 = re.compile(r"\buint64_t\b|\bdouble\b|\(int64_t\)|_[iu]64\b|INT64")
_MOST = 1 << 31


def fits_kernel(kernel: Kernel) -> bool:
    """Whether 32 bits hold all indices of a kernel that is a loop nest, and the number behind the
    last one, whatever the stride of a worker is."""
    if any(isinstance(s, Template) for s in statements(kernel.body)):
        return False
    ranges = (bounds(d) for d in polynomials(kernel.body))
    return all(lo is not None and hi is not None and -_MOST // 2 < lo <= hi < _MOST // 2
               for lo, hi in ranges)


def fits(program: Program) -> bool:
    """Whether 32 bits hold all indices of a program: its sizes are fixed, each buffer and the arena
    is below 2 GiB, and no number of it has 64 bits."""
    if program.dims or program.sizes or any(b.space == "check" for b in program.buffers):
        return False
    types: set[DType] = {b.dtype for b in program.buffers}
    types |= {p.dtype for k in program.kernels for p in k.params}
    held = [b.bytes_of(b.size) for b in program.buffers]
    return (not any(t.bits > 32 for t in types) and all(
        isinstance(n, int) and n < _MOST for n in (*held, program.arena))
        and all(isinstance(s, Run) or (isinstance(s, Times) and isinstance(s.extent, int))
                for s in every_step(program.steps)))


def small_indices(program: Program, files: Mapping[str, str]) -> dict[str, str]:
    """The files, in which kernels and the headers of their loops count in 32 bits if these hold all
    indices. What the caller sees stays as it is."""
    own = [name for name in files if name.startswith(f"{program.name}_kernels")]
    if not fits(program) or any(_OF_64.search(files[name]) for name in own):
        return dict(files)
    loops = [name for name in files if headers.is_kernel(name) and not _NUMBERS.search(files[name])]
    small = {name: _WIDE.sub("int32_t", text) if name in {*own, *loops} else text
             for name, text in files.items()}
    for counter in counters(program.steps):
        main = f"{program.name}.c"
        small[main] = small[main].replace(f"int64_t {counter.name} ", f"int32_t {counter.name} ")
    return small
