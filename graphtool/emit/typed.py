"""Arrays of numbers as C arrays of their own types, which are read without a cast: the weights of
plain C, and the numbers of its tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.emit.expr import literal
from graphtool.emit.weights import Part, part_of
from graphtool.loops.program import Buffer, Program

_BITS = {1: dtypes.uint8, 2: dtypes.uint16}  # what holds a narrow float, by bytes


def element(dtype: DType) -> str:
    """The C type of an element; elements that share bytes are bytes."""
    return "uint8_t" if dtype.is_packed else dtype.c


def array(name: str, dtype: DType, data: bytes, kind: str = "const") -> str:
    """C code that defines an array with these bytes, eight numbers a line."""
    held = dtypes.uint8 if dtype.is_packed else dtype
    if held.is_narrow or held.kind == "bool":
        held = _BITS[held.bytes]
    texts = [literal(x, held)[0] for x in np.frombuffer(data, held.numpy).tolist()]
    rows = ",\n    ".join(", ".join(texts[i:i + 8]) for i in range(0, len(texts), 8))
    return f"{kind} {element(dtype)} {name}[{len(texts)}] = {{\n    {rows}\n}};\n"


def weight_text(program: Program, b: Buffer, parts: Sequence[Part]) -> str:
    """The address of a weight. The first buffer with these bytes says which type they have."""
    assert isinstance(b.offset, int)
    part = part_of(parts, b.offset)
    same = _type(program, part) is b.dtype
    return part.symbol if same else f"(const void *){part.symbol}"


def _type(program: Program, part: Part) -> DType:
    return next(b.dtype for b in program.buffers
                if b.space == "weight" and b.offset == part.start)


def declarations(program: Program, parts: Sequence[Part]) -> str:
    """NAME_weights.h: a declaration of each weight."""
    guard = f"{program.name.upper()}_WEIGHTS_H"
    rows = [f"extern const {element(d)} {p.symbol}[{(p.end - p.start) // d.bytes}];"
            for p in parts for d in [_type(program, p)]]
    return "\n".join([f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", *rows,
                      "#endif", ""])


def definition(part: Part, dtype: DType, data: bytes) -> str:
    """The file that defines one weight."""
    return (f'#include "{part.name}_weights.h"\n#include <math.h>\n\n'
            + array(part.symbol, dtype, data))
