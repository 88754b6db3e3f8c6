"""Compiled programs under sanitizers: every buffer is its own, and gaps in it are poisoned.

It runs in a C program of its own memory, not in Python's, with several threads.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import interp
from graphtool.emit.c import emit
from graphtool.errors import CompilerError
from graphtool.ir.serial import collect_all
from graphtool.native.compiler import find
from graphtool.symbolic import Dim, substitute
from graphtool.target import Target
from tests.lab.fuzz.apart import ALIGN, spread
from tests.lab.libraries import InC

Array = np.ndarray[Any, Any]
Ready = tuple[dict[str, Array], InC]  # inputs and the program that gets them
GAP = 256
SECONDS = 300
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1",
           "TSAN_OPTIONS": "halt_on_error=1 exitcode=66"}
THREADS = 3


@dataclass(frozen=True)
class Call:
    """One run as bytes: weights, sizes of dims, inputs, room of outputs, gaps."""

    name: str
    weights: bytes
    arena: int
    dims: tuple[int, ...]
    inputs: tuple[bytes, ...]
    outputs: tuple[int, ...]
    gaps: tuple[tuple[int, int, int], ...]  # 0 for the weights and 1 for the arena, first, end

    def packed(self) -> bytes:
        """What the C program reads."""
        def numbers(*of: int) -> bytes:
            return struct.pack(f"<{len(of)}q", *of)
        out = [numbers(len(self.weights)), self.weights, numbers(self.arena, len(self.dims)),
               numbers(*self.dims), numbers(len(self.inputs))]
        for data in self.inputs:
            out += [numbers(len(data)), data]
        out += [numbers(len(self.outputs), *self.outputs, len(self.gaps)),
                *(numbers(*gap) for gap in self.gaps)]
        return b"".join(out)


def call_of(p: InC, feed: dict[str, Array]) -> Call:
    """The run of a spread program on inputs by name."""
    program, setting = p.program, interp.Setting()
    arrays = [np.ascontiguousarray(a) for a in interp.bind_inputs(p.module, feed, setting)]
    sizes = setting.sizes

    def number(d: Dim) -> int:
        return int(str(substitute(d, sizes)))
    room = {b.slot: number(b.bytes_of(b.size)) for b in program.buffers if b.space == "output"}
    gaps, weights = [], bytearray()
    held = {w.digest: w for w in collect_all(p.module.graph)}
    digests = dict(program.weights)
    for b in program.buffers:
        if b.space not in ("arena", "weight"):
            continue
        first, size = number(b.offset), number(b.bytes_of(b.size))
        end = first + -(-size // ALIGN) * ALIGN + GAP
        gaps.append((int(b.space == "arena"), first + size, end))
        if b.space == "weight":
            raw = held[digests[b.name]].stored.tobytes()
            weights += bytes(end - len(weights))
            weights[first:first + len(raw)] = raw
    dims = [int(str(sizes[s.name])) for s in program.dims] + [0] * (len(program.sizes) + 1)
    return Call(program.name, bytes(weights), number(program.arena), tuple(dims),
                tuple(a.tobytes() for a in arrays),
                tuple(room[i] for i in range(len(program.outputs))), tuple(gaps))


def watched(ready: Sequence[Ready], folder: Path, target: Target,
            sanitizers: str) -> dict[str, str]:
    """What the sanitizers say of each program by name; those that they find clean are left out.

    Raises CompilerError.
    """
    calls, sources = list[Call](), list[str]()
    for feed, p in ready:
        apart = InC(p.module, spread(p.program, GAP), {})
        for file, text in emit(apart.program).items():
            if not file.endswith(("_load.c", "_example.c")):
                (folder / file).write_text(text)
                sources += [file] if file.endswith(".c") else []
        calls.append(call_of(apart, feed))
    (folder / "main.c").write_text(main_of(ready))
    (folder / "calls.bin").write_bytes(b"".join(c.packed() for c in calls))
    compiler = find("gcc", target)
    flags = [f for f in compiler.flags if f not in ("-O3", "-Wall", "-Wextra")]
    done = subprocess.run(
        ["gcc", *flags, "-O1", "-g1", "-w", f"-fsanitize={sanitizers}",
         "-fno-sanitize-recover=all", "main.c", *sources, "-o", "watched", "-lm", "-lpthread"],
        cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerError("GT2121", done.stderr[:300])
    return ran([p.program.name for _, p in ready], folder)


def ran(names: Sequence[str], folder: Path) -> dict[str, str]:
    """Run all programs; after one that ends the process, those behind it in a new one."""
    faults: dict[str, str] = {}
    at = 0
    while at < len(names):
        try:
            done = subprocess.run(["./watched", str(at)], cwd=folder, capture_output=True,
                                  timeout=SECONDS, env={**os.environ, **OPTIONS})
            code, said = done.returncode, done.stderr.decode(errors="replace")
            begun = done.stdout.decode().split()
        except subprocess.TimeoutExpired as error:
            code, said, begun = -1, "hung", (error.stdout or b"").decode().split()
        if code == 0:
            break
        at = max(at, len(begun) + at - 1)
        faults[names[at]] = kind_of(said) or f"exit {code}"
        at += 1
    return faults


def kind_of(said: str) -> str:
    """The sanitizer's own name of the fault, and the kernel that it was in."""
    found = re.search(r"runtime error: (.*)|SUMMARY: (\w+: \S+)", said)
    place = re.search(r"#\d+ \S+ in (gt_\w+|f\d+_k\w+)", said)
    text = said[:80] if found is None else found[1] or found[2]
    return " ".join(filter(None, (re.sub(r"\d+", "N", text.strip()), place and place[1])))


def main_of(ready: Sequence[Ready]) -> str:
    """The C program that runs each model on what calls.bin has for it."""
    names = [p.program.name for _, p in ready]
    runs = ", ".join(f"{n}_run" for n in names)
    threads = ", ".join(str(min(THREADS, p.program.threads)) for _, p in ready)
    return "\n".join([
        MAIN, *(f"extern run {n}_run;" for n in names),
        f"static run *const runs[] = {{{runs}}};", f"static const int threads[] = {{{threads}}};",
        f"enum {{ COUNT = {len(names)} }};", LOOP])


MAIN = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)
#define ASAN_UNPOISON_MEMORY_REGION(at, size)
#endif
static int64_t number(FILE *f)
{
    int64_t n = 0;
    if (fread(&n, 8, 1, f) != 1) exit(3);
    return n;
}
static char *room(size_t n) /* aligned, and what is behind it belongs to nobody */
{
    char *p = aligned_alloc(64, (n + 127) / 64 * 64);
    for (size_t i = 0; i < n; i++) p[i] = 0;
    ASAN_POISON_MEMORY_REGION(p + n, (n + 127) / 64 * 64 - n);
    return p;
}
static char *block(FILE *f, size_t n, char *p)
{
    if (n && fread(p, 1, n, f) != n) exit(3);
    return p;
}
typedef int run(const void *, void *, int64_t *, const void *const *, void *const *, int);
"""
LOOP = """
int main(int argc, char **argv)
{
    const int first = argc > 1 ? atoi(argv[1]) : 0;
    FILE *f = fopen("calls.bin", "rb");
    for (int k = 0; f && k < COUNT; k++) {
        int64_t dims[64], n = number(f), in = 0, out = 0;
        char *places[2], *inputs[4096], *outputs[4096];
        places[0] = block(f, (size_t)n, room((size_t)n));
        places[1] = room((size_t)number(f));
        n = number(f);
        for (int i = 0; i < n; i++) dims[i] = number(f);
        in = number(f);
        for (int i = 0; i < in; i++) {
            n = number(f);
            inputs[i] = block(f, (size_t)n, malloc((size_t)n));
        }
        out = number(f);
        for (int i = 0; i < out; i++) outputs[i] = malloc((size_t)number(f));
        n = number(f);
        for (int i = 0; i < n; i++) {
            const int64_t place = number(f), from = number(f), end = number(f);
            ASAN_POISON_MEMORY_REGION(places[place] + from, (size_t)(end - from));
        }
        if (k >= first) {
            printf("%d\\n", k);
            fflush(stdout);
            const int status = runs[k](places[0], places[1], dims, (const void *const *)inputs,
                                       (void *const *)outputs, threads[k]);
            if (status) {
                fprintf(stderr, "runtime error: status %d\\n", status);
                return 4;
            }
        }
        for (int i = 0; i < in; i++) free(inputs[i]);
        for (int i = 0; i < out; i++) free(outputs[i]);
    }
    return 0;
}
"""
