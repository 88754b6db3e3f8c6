"""Times a language model with weights of 4 bits beside onnxruntime and llama.cpp: a step behind a
past, and a prompt; and what reading the weights alone takes.

All have the same bits of weights and round activations to 8 bits. Each contestant is a process of
its own, and they take turns. onnxruntime is skipped where it is not installed, llama.cpp where no
folder of its libraries is given or the package gguf is missing.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import llama, work
from benchmarks.llama_cpp import LlamaCpp
from benchmarks.stats import OURS, summary

Call = Callable[[], Any]
Found = dict[str, list[tuple[list[float], list[float]]]]  # rounds: times, and processor times
LLAMA, ORT, READING = "llama.cpp", "onnxruntime", "reading"
ROOM = llama.PLACES
BYTES = llama.LAYERS * sum(n * k for n, k in llama.SIZES.values()) + llama.TOKENS * llama.WIDE
SOURCE = r"""
#include <stddef.h>
#include <stdint.h>
typedef uint64_t v __attribute__((vector_size(64)));
uint64_t total(const v *p, size_t n, int threads)
{
    uint64_t sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        v a = {0}, b = {0};
#pragma omp for schedule(static)
        for (size_t i = 0; i < n; i += 2) {
            __builtin_prefetch(p + i + 64);
            __builtin_prefetch(p + i + 65);
            a += p[i], b += p[i + 1];
        }
        a += b;
        for (int i = 0; i < 8; i++) sum += a[i];
    }
    return sum;
}
"""


@dataclass(frozen=True)
class Task:
    """A prompt of `steps` tokens, or a step behind `past` tokens."""

    steps: int
    past: int = 0

    @property
    def name(self) -> str:
        return f"step after {self.past:,}" if self.past else f"prompt of {self.steps}"

    @property
    def ids(self) -> llama.Array:
        tokens = np.random.default_rng(0).integers(0, llama.TOKENS, ROOM)
        return np.asarray(tokens[self.past:self.past + self.steps])


TASKS = (Task(1, 128), Task(1, 1024), Task(128), Task(512))


# ---- the contestants: what each needs in the folder, and its call ------------------------------

def _ours(folder: Path, task: Task, threads: int, _: Path | None) -> Call:
    import graphtool
    model = graphtool.load(folder / ("step" if task.past else f"prompt{task.steps}"), threads)
    places = np.arange(task.past, task.past + task.steps)[None]
    xs: dict[str, Any] = {"ids": task.ids[None], "positions": places}
    if not task.past:
        return lambda: model.run(xs)
    rng, out = np.random.default_rng(1), {}
    xs["position"] = np.array(task.past)
    for i in range(llama.LAYERS):
        for c in "kv":
            cache = rng.standard_normal((1, llama.KEYS, ROOM, llama.DEPTH), np.float32)
            xs[f"{i}.past_{c}"] = out[f"{i}.{c}_now"] = cache
    return lambda: model.run(xs, out=out)


def _build(folder: Path, task: Task) -> None:
    import graphtool
    from graphtool.compile.as_is import build
    from graphtool.passes import PASSES
    name = "step" if task.past else f"prompt{task.steps}"
    if (folder / name).exists():
        return  # made by this run
    onnx = folder / f"{name}.onnx"
    llama.write_onnx(onnx, task.steps)
    dims: dict[str, Any] = {"dynamic": {"P": (1, ROOM - 8)}} if task.past else {}
    module = graphtool.import_model(str(onnx), **dims)
    passes = ",".join(p.name for p in PASSES if p.default)
    text = f"cache{{max={ROOM}}},{passes}" if task.past else passes
    build(graphtool.optimize(module, passes=text), folder / name)


def _onnxruntime(folder: Path, task: Task, threads: int, _: Path | None) -> Call:
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    room = task.past + 8 if task.past else task.steps
    path = folder / f"ort{task.steps}_{room}.onnx"
    if not path.exists():
        llama.write_onnx(path, task.steps, room)
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding, total = session.io_binding(), task.past + task.steps
    given = {"ids": task.ids[None], "ends": np.array([total - 1], np.int32),
             "total": np.array(total, np.int32)}
    kept = []
    for i in range(llama.LAYERS):
        for c in "kv":
            cache = np.random.default_rng(i).standard_normal(
                (1, llama.KEYS, room, llama.DEPTH), np.float32)
            kept.append(ort.OrtValue.ortvalue_from_numpy(cache))
            binding.bind_ortvalue_input(f"{i}.past_{c}", kept[-1])
            binding.bind_ortvalue_output(f"{i}.{c}_now", kept[-1])
    for name, x in given.items():
        kept.append(ort.OrtValue.ortvalue_from_numpy(x))
        binding.bind_ortvalue_input(name, kept[-1])
    binding.bind_output("output.y")
    return lambda: (kept, session.run_with_iobinding(binding))


def _llama_cpp(folder: Path, task: Task, threads: int, libraries: Path | None) -> Call:
    path = folder / "model.gguf"
    assert libraries is not None
    model = LlamaCpp(libraries, path, llama.TOKENS, ROOM, threads)
    if task.past:
        model.run(Task(task.past).ids)

    def call() -> Any:
        model.back(task.past)
        return model.run(task.ids)
    return call


def _reading(folder: Path, task: Task, threads: int, _: Path | None) -> Call:
    """Only the bytes of the weights: 18 for 32 of them."""
    from graphtool.native.memory_map import room
    library = folder / "reading.so"
    if not library.exists():
        subprocess.run([shutil.which("gcc") or "cc", "-O3", "-march=native", "-fopenmp", "-shared",
                        "-fPIC", "-xc", "-", "-o", str(library)], input=SOURCE.encode(),
                       check=True)
    total = ctypes.CDLL(str(library)).total
    total.restype, weights = ctypes.c_uint64, room(BYTES * 18 // 32 // 128 * 128 + 8192)
    weights[:] = 1
    count = ctypes.c_size_t(BYTES * 18 // 32 // 128 * 2)
    return lambda: (weights, total(ctypes.c_void_p(int(weights.ctypes.data)), count, threads))


CONTESTANTS = {OURS: _ours, LLAMA: _llama_cpp, ORT: _onnxruntime, READING: _reading}


# ---- turns -------------------------------------------------------------------------------------

def _serve(pipe: Connection, name: str, *given: Any) -> None:
    """Run in a process: for each number of seconds, the times of calls in about so long, and
    their processor times."""
    call = CONTESTANTS[name](*given)
    call()
    pipe.send("ready")
    while seconds := pipe.recv():
        times: list[float] = []
        used: list[float] = []
        while sum(times) < seconds or len(times) < 2:
            start, began = time.perf_counter(), time.process_time()
            call()
            used.append(time.process_time() - began)
            times.append(time.perf_counter() - start)
        pipe.send((times, used))


def _measured(names: list[str], task: Task, threads: int, o: argparse.Namespace, folder: Path
              ) -> Found:
    """The times of all rounds; one contestant at a time."""
    spawn = multiprocessing.get_context("spawn")
    pipes, found = {}, Found()
    for name in names:
        pipes[name], other = spawn.Pipe()
        spawn.Process(target=_serve, daemon=True, args=(
            other, name, folder, task, threads, o.llama_cpp)).start()
        other.close()
    for name, pipe in list(pipes.items()):
        try:
            pipe.recv()
            found[name] = []
        except EOFError:
            print(f"{name}: left out, it failed", flush=True)
            del pipes[name]
    for _ in range(o.rounds):
        for name, pipe in pipes.items():
            pipe.send(o.seconds)
            found[name].append(pipe.recv())
    for pipe in pipes.values():
        pipe.send(0)
    return found


def _lines(task: Task, threads: int, found: Found) -> Iterator[str]:
    """Milliseconds: a row of medians, one of the least times, for one thread one of the least
    processor times, which other processes disturb less."""
    wall = {name: summary([times for times, _ in rounds]) for name, rounds in found.items()}
    used = {name: summary([used for _, used in rounds]) for name, rounds in found.items()}
    kinds = [("median", {n: s.median for n, s in wall.items()}),
             ("least", {n: s.least for n, s in wall.items()})]
    if threads == 1:
        kinds.append(("least of the processor", {n: s.least for n, s in used.items()}))
    for what, times in kinds:
        floor = times.get(READING)
        peers = {name: ms for name, ms in times.items() if name != READING}
        cells = [f"{times[n]:.3g}" if n in times else "–" for n in CONTESTANTS]
        cells += [f"{peers[n] / peers[OURS]:.2f}" if n in peers else "–" for n in (LLAMA, ORT)]
        cells.append(f"{peers[OURS] / floor:.2f}" if task.past and floor else "–")
        yield f"| {task.name} | {threads} | {what} | " + " | ".join(cells) + " |"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--llama-cpp", type=Path, metavar="DIR",
                        help="the folder with libllama: bins/linux-x64 of the npm package "
                             "@node-llama-cpp/linux-x64")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=0.5, metavar="S",
                        help="of calls, for each contestant in a round")
    parser.add_argument("--threads", type=lambda s: [int(n) for n in s.split(",")],
                        default=[1, 2], metavar="N,…")


def main(options: argparse.Namespace) -> int:
    folder = work.root() / "llm"
    folder.mkdir(parents=True, exist_ok=True)
    for earlier in folder.glob("*/build.json"):  # by a graphtool that may have been another
        shutil.rmtree(earlier.parent)
    names = [OURS]
    if options.llama_cpp and find_spec("gguf"):
        names.append(LLAMA)
        if not (folder / "model.gguf").exists():
            llama.write_gguf(folder / "model.gguf")
    names += [ORT] if find_spec("onnxruntime") else []
    rows = []
    for task in TASKS:
        _build(folder, task)
        for threads in options.threads:
            found = _measured([*names, READING], task, threads, options, folder)
            for line in _lines(task, threads, found):
                print(line, flush=True)
                rows.append(line)
    stamp = work.stamp()
    text = "\n".join([
        "# Time of a language model with weights of 4 bits", "",
        f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores; a llama with random weights "
        f"(16 layers, 1024 wide, blocks of 32, {BYTES / 1e6:.0f} million weights a step), "
        "activations rounded to 8 bits by all; `reading` is a loop that only reads the weights; "
        f"contestants in turns, {options.rounds} rounds of {options.seconds} s; milliseconds. The "
        "ratios are a peer's time over graphtool's, the last one is graphtool's over reading's. "
        f"Command: `{options.command_line}`.", "",
        f"| task | threads | of all calls | {' | '.join(CONTESTANTS)} | {LLAMA} / {OURS} | "
        f"{ORT} / {OURS} | {OURS} / {READING} |",
        "|---|" + "---:|" * (len(CONTESTANTS) + 5), *rows]) + "\n"
    (folder / "report.md").write_text(text)
    print(f"\nthe report is in {folder / 'report.md'}")
    return 0
