"""Boards of Arm's mps2 family in an emulator: a program with the C of a model is compiled for one,
and run.

`boards/` has what starts a board, and the script for the linker. Instructions are counted, not
cycles: the emulator lets each take one nanosecond.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from graphtool.errors import CompilerError, UsageError
from graphtool.target import TABLE

FILES = Path(__file__).with_name("boards")
EMULATED = {"cortex-m0plus": "mps2-an385", "cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500",
            "cortex-m55": "mps3-an547"}
EMULATOR = "qemu-system-arm"
MHZ = {"mps3-an547": 32}  # of the others 25; an instruction takes a nanosecond
FLAGS = ("-std=c99", "-O2", "-fwrapv", "-ffp-contract=off")
LIMIT = 500  # seconds of one run


def missing(target: str) -> list[str]:
    """The programs that a board for the target needs and that are not installed."""
    return [p for p in (TABLE[target].cross, EMULATOR) if shutil.which(p) is None]


def check(target: str) -> None:
    """Raises UsageError GT2117 for a target without an emulated board, CompilerError GT2128 where
    the compiler or the emulator is missing."""
    if target not in EMULATED:
        raise UsageError("GT2117", f"no board for {target} can be emulated",
                         hint=f"there are boards for {', '.join(EMULATED)}; a page for wasm32")
    if lacking := missing(target):
        raise CompilerError("GT2128", f"{' and '.join(lacking)} not found: a board for {target} "
                                      "needs its compiler and the emulator",
                            hint="on Debian and Ubuntu: apt install gcc-arm-none-eabi "
                                 "libnewlib-arm-none-eabi qemu-system-arm")


def run(folder: Path, sources: Sequence[str], target: str) -> str:
    """What a program writes, which is compiled from C files of the folder and run on a board.

    It starts at `main`, writes by `void board_write(const char *)`, and counts by `uint32_t
    board_ticks(void)`, modulo 2²⁴; `instructions` says how many they are. Raises CompilerError
    GT2121 if it does not compile, GT2123 if a run takes too long, GT2129 if the board stops with a
    fault.
    """
    row = TABLE[target]
    command = [row.cross, *row.flags[0], *FLAGS, *sources, str(FILES / "start.c"),
               "-T", str(FILES / "board.ld"), "-nostartfiles", "--specs=nosys.specs", "-lm",
               "-Wl,--gc-sections", "-o", "board.elf"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise CompilerError("GT2121", f"{row.cross} failed", where=done.stderr[-2000:])
    try:
        ran = subprocess.run(
            [EMULATOR, "-M", EMULATED[target], "-nographic", "-monitor", "none", "-serial", "none",
             "-icount", "shift=0", "-semihosting-config", "enable=on,target=native", "-kernel",
             str(folder / "board.elf")], capture_output=True, encoding="utf-8", timeout=LIMIT,
            check=False)
    except subprocess.TimeoutExpired as error:
        raise CompilerError("GT2123", f"{EMULATOR} took more than {LIMIT} s") from error
    text = ran.stdout + ran.stderr
    if re.search(r"^fault$", text, re.MULTILINE):
        raise CompilerError("GT2129", "the program on the board stopped with a fault",
                            where=text[-500:], hint="it may need more RAM than the board has")
    return text


def instructions(ticks: int, target: str) -> int:
    """How many instructions so many ticks of the target's board are."""
    return ticks * 1000 // MHZ.get(EMULATED[target], 25)


PROGRAM = """\
/* Runs {name} on each example, and writes the bytes of its output in hexadecimal digits. */
#include "{name}.h"
#include <stddef.h>
#include <stdint.h>
void board_write(const char *text);
uint32_t board_ticks(void);
static const uint8_t examples[][{bytes}] __attribute__((aligned(8))) = {{
{rows}}};
static uint8_t output[{upper}_OUTPUT0_BYTES] __attribute__((aligned(8)));
{states}static char arena[{upper}_ARENA_BYTES + 64];

static void hex(const uint8_t *bytes, size_t count)
{{
    for (size_t i = 0; i < count; i++) {{
        static const char digits[] = "0123456789abcdef";
        const char text[] = {{digits[bytes[i] >> 4], digits[bytes[i] & 15], 0}};
        board_write(text);
    }}
    board_write("\\n");
}}

int main(void)
{{
    char *const start = arena + (64 - (uintptr_t)arena % 64) % 64;
    uint32_t ticks = 0;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {{
        const void *const inputs[] = {{examples[i]{held}}};
        void *const outputs[] = {{output{held}}};
        const uint32_t before = board_ticks();
        const int status = {name}_run(NULL, start, NULL, inputs, outputs, 1);
        ticks += (board_ticks() - before) & 0xffffff;
        if (status) board_write({name}_status_text(status)), board_write("\\n");
        hex(output, sizeof output);
    }}
    const uint8_t word[] = {{(uint8_t)(ticks >> 24), (uint8_t)(ticks >> 16), (uint8_t)(ticks >> 8),
                            (uint8_t)ticks}};
    board_write("ticks ");
    hex(word, 4);
    return 0;
}}
"""


def program(name: str, examples: Sequence[bytes], states: Sequence[int] = ()) -> str:
    """The C of a program that runs a model of one input and one output on each example: the bytes
    of its input. States of so many bytes follow the input and the output, and begin as zeros; each
    run updates them."""
    held = [f"state{i}" for i in range(len(states))]
    declared = "".join(f"static uint8_t {s}[{n}] __attribute__((aligned(8)));\n"
                       for s, n in zip(held, states, strict=True))
    rows = "".join(f"    {{{','.join(map(str, e))}}},\n" for e in examples)
    return PROGRAM.format(name=name, upper=name.upper(), bytes=len(examples[0]), rows=rows,
                          states=declared, held="".join(f", {s}" for s in held))


def outputs(text: str, target: str) -> tuple[list[bytes], int]:
    """The outputs of all examples, and the instructions of all runs, by what `program` wrote.

    Raises CompilerError GT2129 if a run failed.
    """
    *lines, last = text.split("\n")[:-1] or [""]
    if not last.startswith("ticks ") or not all(re.fullmatch("([0-9a-f]{2})+", x) for x in lines):
        raise CompilerError("GT2129", "the program on the board failed", where=text[-500:])
    return [bytes.fromhex(x) for x in lines], instructions(
        int(last.removeprefix("ticks "), 16), target)
