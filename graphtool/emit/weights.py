"""Weights in the library (by `.incbin`, or as C arrays for targets whose assembler lacks it) or in
a file: NAME_load.c gets that into memory, and gives the memory back.

A part is a sequence of adjacent weights in one array. The driver finds a weight by its part, so the
parts need not be adjacent in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphtool.emit.lines import Writer
from graphtool.loops.program import Program

PART = 1 << 20  # bytes of weights in one C file; a larger weight has a file of its own
ALIGN = 64


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes [start, end) of the weights of `name`, counted as a buffer's offset is."""

    name: str
    index: int
    start: int
    end: int

    @property
    def symbol(self) -> str:
        """The C name of this part of the weights."""
        return f"{self.name}_weights{self.index}"


def whole(name: str, size: int) -> tuple[Part, ...]:
    """All weights as one part."""
    return (Part(name, 0, 0, size),) if size else ()


def divided(name: str, spans: Iterable[tuple[int, int]], limit: int = PART) -> tuple[Part, ...]:
    """Parts of at most `limit` bytes; no (start, end) range is cut in two."""
    parts: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if parts and end - parts[-1][0] <= limit:
            parts[-1] = (parts[-1][0], max(parts[-1][1], end))
        else:
            parts.append((start, end))
    return tuple(Part(name, i, start, end) for i, (start, end) in enumerate(parts))


def part_of(parts: Sequence[Part], offset: int) -> Part:
    """The part that contains the byte at `offset`; the parts are sorted by start."""
    return next(p for p in reversed(parts) if p.start <= offset)


def incbin(part: Part, file: str, offset: int, digest: str) -> str:
    """C code with an assembler directive that includes the part from byte `offset` of the file.

    The digest of the file is in the text, so other weights give another text.
    """
    size = part.end - part.start
    place = f'.incbin \\"{file}\\", {offset + part.start}, {size}'
    return f"/* {digest} */\n{assembled(part.symbol, place)}"


def assembled(symbol: str, directive: str) -> str:
    """C code that defines a symbol for constant data, which directives of the assembler give."""
    return f"""#ifdef __APPLE__
#define GT_SECTION ".const_data"
#define GT_SYMBOL "_{symbol}"
#define GT_HIDDEN ".private_extern "
#else
#ifdef __wasm__
#define GT_SECTION ".section .rodata.{symbol},\\"\\",@"
#else
#define GT_SECTION ".section .rodata"
#endif
#define GT_SYMBOL "{symbol}"
#define GT_HIDDEN ".hidden "
#endif
__asm__(GT_SECTION "\\n"
        ".balign {ALIGN}\\n"
        ".globl " GT_SYMBOL "\\n"
        GT_HIDDEN GT_SYMBOL "\\n"
        GT_SYMBOL ":\\n"
        "{directive}\\n"
#ifdef __wasm__ /* the linker must know the size */
        ".size {symbol}, .-{symbol}\\n"
#endif
        ".text\\n");
"""


def array(part: Part, data: bytes) -> str:
    """C code that writes the part as an array, eight words a line."""
    padded = data + b"\0" * (-len(data) % 4)
    words = [f"0x{int.from_bytes(padded[i:i + 4], 'little'):08x}"
             for i in range(0, len(padded), 4)]
    rows = [", ".join(words[i:i + 8]) for i in range(0, len(words), 8)]
    head = f"#include <stdint.h>\nextern const uint32_t {part.symbol}[];\n"
    body = ",\n    ".join(rows)
    return (f"{head}__attribute__((aligned({ALIGN})))\n"
            f"const uint32_t {part.symbol}[] = {{\n    {body}}};\n")


def weights_bytes(programs: Iterable[Program]) -> int:
    """The bytes of weights, from the first to the last byte that these programs read."""
    ends = [b.offset + size for p in programs for b in p.buffers if b.space == "weight"
            and isinstance(b.offset, int) and isinstance(size := b.bytes_of(b.size), int)]
    return max(ends, default=0)


def loader(name: str, size: int) -> str:
    """The C of NAME_load and NAME_free for `size` bytes of weights in a file; 0: there is none."""
    w = Writer()
    if size:
        w.line("#define _DEFAULT_SOURCE 1 /* pread, and memory that is no file's, in any -std */")
        w.line("#define _DARWIN_C_SOURCE 1")
    w.line(f'#include "{name}.h"')
    if size:
        w.line('#include "load.h"')
    w.line()
    with w.block(f"int {name}_load({name}_weights *weights, const char *path)\n{{"):
        w.line(f"if (!weights) return {name.upper()}_NULL_POINTER;")
        w.line("weights->data = NULL, weights->memory = NULL, weights->bytes = 0;")
        if size:
            w.line(f"if (!path) return {name.upper()}_NULL_POINTER;")
            w.line(f"const int status = gt_load_weights(path, {size}, &weights->data,")
            w.line("                                   &weights->memory, &weights->bytes);")
            w.line("if (status) weights->data = NULL, weights->memory = NULL;")
            w.line("return status;")
        else:
            w.line("(void)path;")
            w.line(f"return {name.upper()}_OK;")
    w.line()
    with w.block(f"void {name}_free({name}_weights *weights)\n{{"):
        w.line("if (!weights) return;")
        if size:
            w.line("gt_free_weights(weights->memory, weights->bytes);")
        w.line("weights->data = NULL, weights->memory = NULL, weights->bytes = 0;")
    return w.text()
