"""Runs the C for a microcontroller twice: on this machine, and on an emulated board."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.native import board
from tests.compilers import run_compiler

BOARDS = board.EMULATED
Arrays = dict[str, np.ndarray[Any, Any]]

_MAIN = """\
#include "{name}.h"
#include <stddef.h>
#include <stdint.h>
void board_write(const char *text);
uint32_t board_ticks(void);
#ifndef __arm__
#include <stdio.h>
void board_write(const char *text) {{ fputs(text, stdout); }}
uint32_t board_ticks(void) {{ return 0; }}
#endif
{inputs}
{outputs}
static union {{ double align; char bytes[{upper}_ARENA_BYTES + 64]; }} arena;

static void hex(uint32_t x)
{{
    char text[10];
    for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[x >> (28 - 4 * i) & 15];
    text[8] = '\\n', text[9] = 0;
    board_write(text);
}}

int main(void)
{{
    const void *const in[] = {{{ins}}};
    void *const out[] = {{{outs}}};
    char *start = arena.bytes + (64 - (uintptr_t)arena.bytes % 64) % 64;
    const uint32_t before = board_ticks();
    const int status = {name}_run(NULL, start, NULL, in, out, 1);
    const uint32_t after = board_ticks();
    board_write("ticks ");
    hex(after - before);
    board_write("status ");
    hex((uint32_t)status);
{prints}
    return 0;
}}
"""


@dataclass(frozen=True)
class Ran:
    """The words of each output, and the instructions of the call, counted on a board."""

    outputs: Arrays
    instructions: int


def available(target: str) -> str:
    """Why a board for the target cannot be emulated here; empty if it can."""
    missing = board.missing(target)
    return f"{' and '.join(missing)} not installed" if missing else ""


def harness(folder: Path, name: str, xs: Arrays, outputs: dict[str, tuple[int, ...]]) -> None:
    """Write a main program with these inputs, which prints the float outputs of given shapes."""
    words = [np.ascontiguousarray(x).view(np.uint32).reshape(-1) for x in xs.values()]
    counts = [int(np.prod(shape)) for shape in outputs.values()]
    (folder / "main.c").write_text(_MAIN.format(
        name=name, upper=name.upper(),
        inputs="\n".join(f"static const uint32_t in{i}[] = {{{','.join(map(hex, w))}}};"
                         for i, w in enumerate(words)),
        outputs="\n".join(f"static uint32_t out{i}[{n}];" for i, n in enumerate(counts)),
        ins=", ".join(f"in{i}" for i in range(len(words))),
        outs=", ".join(f"out{i}" for i in range(len(counts))),
        prints="\n".join(f"    for (int i = 0; i < {n}; i++) hex(out{i}[i]);"
                         for i, n in enumerate(counts))))


def here(folder: Path, name: str, outputs: dict[str, tuple[int, ...]]) -> Ran:
    """Compile with this machine's compiler, and run."""
    run_compiler(["cc", "-std=c99", "-O2", "-fwrapv", "-ffp-contract=off", *sources(folder, name),
                  "-lm", "-o", "here"], folder).check_returncode()
    return _read(subprocess.run([folder / "here"], check=True, capture_output=True, text=True,
                                timeout=300).stdout, outputs, "cortex-m4")


def on_board(folder: Path, name: str, target: str, outputs: dict[str, tuple[int, ...]]) -> Ran:
    """Compile for the target, and run on an emulated board."""
    return _read(board.run(folder, sources(folder, name), target), outputs, target)


def sources(folder: Path, name: str) -> list[str]:
    """The C files of an emitted model, without its example."""
    return sorted(p.name for p in folder.glob("*.c") if p.name != f"{name}_example.c")


def _read(text: str, outputs: dict[str, tuple[int, ...]], target: str) -> Ran:
    head = re.search(r"ticks ([0-9a-f]{8})\nstatus 00000000\n", text)
    assert head is not None, text[-2000:]
    words = np.array([int(w, 16) for w in text[head.end():].split()], np.uint32)
    found, at = {}, 0
    for key, shape in outputs.items():
        count = int(np.prod(shape))
        found[key] = words[at:at + count].view(np.float32).reshape(shape)
        at += count
    return Ran(found, board.instructions(int(head[1], 16) & 0xFFFFFF, target))
