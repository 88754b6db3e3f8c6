"""Mutated programs that the reader accepts, compiled under ASan and UBSan and run on exact buffers.

A fault means that the verifier accepts a program that is not memory-safe. Run as a program it
tries many: `python -m tests.io.sanitized COUNT [SEED]`.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import graphtool.kernels  # noqa: F401  (fills the table of contracts)
from graphtool.emit.c import emit
from graphtool.errors import GraphtoolError
from graphtool.io.weights import Weight
from graphtool.loops.program import Buffer, Port, Program, binds
from graphtool.loops.serial import loads
from graphtool.native.build import weights_of
from graphtool.symbolic import Dim, ceildiv, evaluate, product, sample_sizes, symbols
from tests.io.mutations import json_mutation

FLAGS = ("-O1", "-std=gnu11", "-w", "-fopenmp", "-fno-math-errno", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all")
ALIGN, GAP, SECONDS, BYTES = 64, 4096, 60, 1 << 28
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "OMP_NUM_THREADS": "2"}
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Sample:
    """A program's text and its weights by digest."""

    name: str
    text: str
    store: Mapping[str, Weight]
    march: str = "x86-64-v3"


def mutant(text: str, random_: random.Random) -> str:
    """The program with a few numbers changed, or with any other change of its document.

    Only few of the latter are accepted, so most changes are those of numbers.
    """
    if random_.random() < 0.15:
        return json_mutation(text, random_)
    at = text.index('"dims"') if '"dims"' in text else 0
    for _ in range(random_.choice((1, 1, 1, 2))):
        places = [m for m in _NUMBER.finditer(text, at)]
        m = random_.choice(places)
        n = int(m[0])
        new = random_.choice((n + 1, n - 1, n * 2, n // 2, 0, 1, n + 3, n * 16, n + 64, n - 64))
        text = f"{text[:m.start()]}{new}{text[m.end():]}"
    return text


# ---- buffers apart from each other -------------------------------------------------------------

def spread(program: Program) -> Program:
    """The program with a gap behind each buffer of the arena and of the weights."""
    at: dict[str, Dim] = {"arena": 0, "weight": 0}
    buffers = []
    for b in program.buffers:
        if b.space in at:
            buffers.append(replace(b, offset=at[b.space]))
            room = ceildiv(b.bytes_of(b.size), ALIGN) * ALIGN
            at[b.space] = at[b.space] + room + GAP
        else:
            buffers.append(b)
    return replace(program, buffers=tuple(buffers), arena=at["arena"])


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
                room = evaluate(b.offset, env) + -(-evaluate(b.bytes_of(b.size), env) // 64) * 64
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


# ---- one mutant --------------------------------------------------------------------------------

def texts(program: Program, held: Sequence[Weight]) -> Iterator[dict[str, str | bytes]]:
    """The files of a program for a small and for a larger size of its dims."""
    apart = spread(program)
    sources = {k: v for k, v in emit(apart).items() if not k.endswith(("_load.c", "_example.c"))}
    data = bytearray()
    offsets = {b.name: evaluate(b.offset, {}) for b in apart.buffers if b.space == "weight"}
    for (name, _), w in zip(program.weights, held, strict=True):
        raw = w.stored.tobytes()
        data[len(data):] = bytes(max(0, offsets[name] + len(raw) - len(data)))
        data[offsets[name]:offsets[name] + len(raw)] = raw
    symbols_ = {s.name: s for s in program.dims}
    for size, threads in ((1, 1), (3, program.threads)) if symbols_ else ((1, program.threads),):
        env = dict(sample_sizes(symbols_, program.requires, {}, size))
        if evaluate(apart.arena, env) < BYTES:
            yield {**sources, "main.c": main_file(apart, env, threads), "weights.bin": bytes(data)}


def outcome(files: Mapping[str, str | bytes], march: str, folder: Path) -> str:
    """"clean", or what the compiler or a sanitizer says."""
    for name, text in files.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    sources = [n for n in files if n.endswith(".c")]
    done = subprocess.run(["gcc", *FLAGS, f"-march={march}", *sources, "-o", "run", "-lm"],
                          cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return "not compiled: " + done.stderr[:600]
    try:
        ran = subprocess.run(["./run"], cwd=folder, capture_output=True, text=True,
                             timeout=SECONDS, env={**os.environ, **OPTIONS}, errors="replace")
    except subprocess.TimeoutExpired:
        return "slow"
    return "clean" if ran.returncode == 0 else f"exit {ran.returncode}: " + ran.stderr[:1500]


@dataclass(frozen=True)
class Found:
    """How many mutants ended how, and the faults: sample, number and what was said."""

    counts: Counter[str]
    faults: list[str]


def explore(samples: Sequence[Sample], count: int, seed: int = 0, jobs: int = 2) -> Found:
    """Read `count` mutants, compile and run those that are accepted."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    seen = set[int]()
    with ThreadPoolExecutor(jobs) as pool:
        waiting = []
        for number in range(seed, seed + count):
            sample = samples[number % len(samples)]
            text = mutant(sample.text, random.Random(number))
            try:
                program = loads(text)
                held = weights_of(program, sample.store)
                made = list(texts(program, held))
            except GraphtoolError as error:
                counts["refused"] += 1
                counts[f"refused {error.code}"] += 1
                continue
            counts["accepted"] += 1
            for files in made:
                key = hash(json.dumps({k: str(v) for k, v in files.items()}))
                if key not in seen:
                    seen.add(key)
                    waiting.append((sample, number, pool.submit(_one, files, sample.march)))
        for sample, number, result in waiting:
            said = result.result()
            kind = said.split(":")[0]
            counts[f"ran {kind}"] += 1
            if kind not in ("clean", "slow"):
                faults.append(f"{sample.name} {number}: {said}")
                print(faults[-1], flush=True)
    return Found(counts, faults)


def _one(files: Mapping[str, str | bytes], march: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        return outcome(files, march, Path(name))


def main() -> int:
    """`COUNT [SEED]`: explore mutants, and print what came of them."""
    from tests.io.program_samples import all_samples
    samples = all_samples()
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = explore(samples, int(sys.argv[1]), seed)
    print(", ".join(f"{n} {k}" for k, n in sorted(found.counts.items())))
    for line in found.faults:
        print(line[:2500])
    return int(bool(found.faults))


if __name__ == "__main__":
    sys.exit(main())
