"""NAME_load.c: how a program gets a model's weights into memory, and gives them back."""

from __future__ import annotations

from collections.abc import Iterable

from graphtool.emit.lines import Writer
from graphtool.loops.program import Program


def weights_bytes(programs: Iterable[Program]) -> int:
    """The bytes of weights, from the first to the last one that these programs read."""
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
