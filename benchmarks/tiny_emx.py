"""emx-onnx-cgen as the peer of `tiny.py`: its C of the same quantised networks, on the same boards.

It takes what `export` writes: between quantised layers it computes in float, and what is larger
than a KB comes from malloc. Here that counts the bytes that are held at the same time.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphtool.exporters.onnx import export_onnx
from graphtool.ir.graph import Module
from graphtool.native import board
from graphtool.target import TABLE

PROGRAM = """\
#include <stddef.h>
#include <stdint.h>
void board_write(const char *text);
uint32_t board_ticks(void);
void model(const void *, void *);
static const int8_t input[] = {{{values}}};
static int8_t output[{count}];
static uint32_t held, most, top = 0x21000000; /* a board's 16 MB beside its RAM */

void *malloc(size_t n)
{{
    uint32_t *p = (uint32_t *)top;
    top += (n + 15) & ~7u, *p = n, held += n;
    if (held > most) most = held;
    return p + 2;
}}

void free(void *p)
{{
    if (p) held -= ((uint32_t *)p)[-2];
}}

static void hex(const void *bytes, size_t count)
{{
    for (size_t i = 0; i < count; i++) {{
        static const char digits[] = "0123456789abcdef";
        const uint8_t byte = ((const uint8_t *)bytes)[i];
        board_write((const char[]){{digits[byte >> 4], digits[byte & 15], 0}});
    }}
    board_write("\\n");
}}

int main(void)
{{
    uint32_t ticks = board_ticks();
    model(input, output);
    ticks = __builtin_bswap32((board_ticks() - ticks) & 0xffffff);
    hex(output, sizeof output);
    hex(&most, 4);
    board_write("ticks ");
    hex(&ticks, 4);
    return 0;
}}
"""


def here(target: str) -> bool:
    """Whether the peer and a board for the target are installed."""
    return find_spec("emx_onnx_cgen") is not None and not board.missing(target)


def row(folder: Path, module: Module, x: Any, want: bytes, target: str) -> dict[str, Any]:
    """The columns of `tiny.py` for the quantised input x, beside the evaluator's output."""
    folder.mkdir(parents=True, exist_ok=True)
    export_onnx(module, folder / "model.onnx")
    subprocess.run([sys.executable, "-m", "emx_onnx_cgen", "compile", "model.onnx", "model.c",
                    "--large-weight-threshold", str(1 << 30)], cwd=folder, check=True,
                   capture_output=True)
    (folder / "board.c").write_text(PROGRAM.format(
        values=",".join(map(str, x.ravel())), count=len(want)))
    (got, most), count = board.outputs(board.run(folder, ["model.c", "board.c"], target), target)
    held = int.from_bytes(most, "little")
    flash, static = _sizes(folder, target)
    return {"target": f"{target}, emx-onnx-cgen {version('emx-onnx-cgen')}", "arena": held,
            "RAM": held + static + x.size + len(want), "flash": flash, "of it weights": "",
            "stack": "", "instructions": count, "bits": "equal" if got == want else "differ"}


def _sizes(folder: Path, target: str) -> tuple[int, int]:
    """Bytes of code and constants of the model's C, and of its static data."""
    compiler = TABLE[target]
    subprocess.run([compiler.cross, *compiler.flags[0], *board.FLAGS, "-c", "model.c"], cwd=folder,
                   check=True, capture_output=True)
    done = subprocess.run([compiler.cross.replace("gcc", "size"), "model.o"], cwd=folder,
                          check=True, capture_output=True, text=True)
    code, data, zeros = map(int, done.stdout.split("\n")[1].split()[:3])
    return code + data, data + zeros
