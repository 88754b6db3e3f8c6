"""A program of any origin under sanitizers, on buffers of exactly the stated sizes.

Its inputs are numbers made by a rule, as nobody knows which a program wants.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from graphtool.emit.c import emit
from graphtool.io.weights import Weight
from graphtool.loops.program import Buffer, Port, Program, binds
from graphtool.symbolic import Dim, ceildiv, evaluate, product, sample_sizes, symbols
from tests.lab.fuzz.apart import ALIGN, spread
from tests.lab.fuzz.watched import OPTIONS, kind_of

FLAGS = ("-O1", "-g1", "-std=gnu11", "-w", "-fopenmp", "-fno-math-errno",
         "-fno-sanitize-recover=all")
GAP, SECONDS, BYTES = 4096, 60, 1 << 28
OWN = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}


def main_file(program: Program, env: Mapping[str, int], threads: int) -> str:
    """C that gives the run memory of the stated sizes and nothing more."""
    name = program.name
    full = {**env, **{s.name: evaluate(b.most, env) for b in binds(program.steps)
                      for s in (b.size,)}}
    out = [f'#include "{name}.h"', "#include <sanitizer/asan_interface.h>", "#include <stdio.h>",
           "#include <stdlib.h>", "#include <string.h>", _TOOLS, "int main(void) {"]
    sizes = [str(env[s.name]) for s in program.dims] + ["0"] * (len(program.sizes) + 1)
    out.append(f"int64_t dims[] = {{{', '.join(sizes)}}};")
    rooms = {b.slot: b for b in program.buffers if b.space == "output"}
    for kind, ports in (("in", program.inputs), ("out", program.outputs)):
        for i, p in enumerate(ports):
            size = evaluate(_elements(p, rooms.get(i) if kind == "out" else None, full), full)
            out.append(f"void *{kind}{i} = fresh({size}, {p.dtype.bytes}, '{_kind(p)}');")
        held = ", ".join(f"{kind}{i}" for i in range(len(ports))) or "NULL"
        out.append(f"void *{kind}s[] = {{{held}}};")
    weights = [b for b in program.buffers if b.space == "weight"]
    end = max((evaluate(b.offset + b.bytes_of(b.size), env) + GAP for b in weights), default=64)
    out += [f"char *weights = aligned({end});", 'FILE *f = fopen("weights.bin", "rb");',
            f"const size_t read = f ? fread(weights, 1, {end}, f) : 0; (void)read;"]
    out += [f"char *arena = aligned({max(evaluate(program.arena, env), 64)});"]
    for space, block in (("weight", "weights"), ("arena", "arena")):
        for b in program.buffers:
            if b.space == space:
                end = evaluate(b.offset + b.bytes_of(b.size), env)
                room = evaluate(b.offset + ceildiv(b.bytes_of(b.size), ALIGN) * ALIGN, env)
                out.append(f"ASAN_POISON_MEMORY_REGION({block} + {end}, {room + GAP - end});")
    out += [f"return {name}_run(weights, arena, dims, (const void *const *)ins, outs, "
            f"{threads}) * 0;", "}"]
    return "\n".join(out) + "\n"


def _elements(p: Port, room: Buffer | None, env: Mapping[str, int]) -> Dim:
    most = product(p.shape)
    known = all(s.name in env for s in symbols(most))
    return most if known or room is None else room.size


def _kind(p: Port) -> str:
    return "b" if p.dtype.name == "bool" else "d" if p.dtype.name == "float64" else (
        "f" if p.dtype.name == "float32" else "i")


_TOOLS = """
static char *aligned(size_t n) {
    char *p = 0;
    if (posix_memalign((void **)&p, 64, n)) exit(0);
    for (size_t i = 0; i < n; i++) p[i] = (char)(i % 7 == 0);
    return p;
}
static void *fresh(size_t n, size_t bytes, char kind) {
    char *p = malloc(n * bytes);
    if (!p) exit(0);
    unsigned x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        const int v = (int)(x >> 28) - 4;
        if (kind == 'f') ((float *)p)[i] = (float)v * 0.25f;
        else if (kind == 'd') ((double *)p)[i] = v * 0.25;
        else if (kind == 'b') p[i] = x >> 31;
        else {
            const long long large = (long long)((unsigned long long)x << 40);
            memcpy(p + i * bytes, (long long[]){x >> 30 ? v : large}, bytes);
        }
    }
    return p;
}
"""


def texts(program: Program, held: Sequence[Weight]) -> Iterator[dict[str, str | bytes]]:
    """The files of a program for a small and for a larger size of its dims."""
    apart = spread(program, GAP)
    sources = {k: v for k, v in emit(apart).items() if not k.endswith(("_load.c", "_example.c"))}
    data = bytearray()
    offsets = {b.name: evaluate(b.offset, {}) for b in apart.buffers if b.space == "weight"}
    for (name, _), w in zip(program.weights, held, strict=True):
        raw = w.stored.tobytes()
        data[len(data):] = bytes(max(0, offsets[name] + len(raw) - len(data)))
        data[offsets[name]:offsets[name] + len(raw)] = raw
    symbols_ = {s.name: s for s in program.dims}
    for size, threads in ((1, 1), (3, program.threads)) if symbols_ else ((1, program.threads),):
        given = sample_sizes(symbols_, program.requires, {}, size)
        env = {n: evaluate(d, {}) for n, d in given.items()}
        if evaluate(apart.arena, env) < BYTES:
            yield {**sources, "main.c": main_file(apart, env, threads), "weights.bin": bytes(data)}


def outcome(files: Mapping[str, str | bytes], march: str, sanitizers: str, folder: Path) -> str:
    """"clean", "slow", or what the compiler or a sanitizer says."""
    for name, text in files.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    sources = [n for n in files if n.endswith(".c")]
    done = subprocess.run(["gcc", *FLAGS, f"-fsanitize={sanitizers}", f"-march={march}", *sources,
                           "-o", "run", "-lm"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return "not compiled: " + done.stderr[:600]
    try:
        ran = subprocess.run(["./run"], cwd=folder, capture_output=True, text=True,
                             timeout=SECONDS, env={**os.environ, **OPTIONS, **OWN},
                             errors="replace")
    except subprocess.TimeoutExpired:
        return "slow"
    return "clean" if ran.returncode == 0 else kind_of(ran.stderr) or f"exit {ran.returncode}"
