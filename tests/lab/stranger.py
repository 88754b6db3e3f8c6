"""The C of models as a stranger compiles it: by any compiler, at any level, with no build of ours.

`graphtool emit --exe` writes the C; one command compiles all of it, as the documentation says. The
program is run on the inputs of a file, and what it writes is compared with the evaluator, or for a
training step with the same steps by the first compiler.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphtool
from benchmarks import jobs, tables, work
from benchmarks.work import Journal, Row
from graphtool.analysis import made_up
from graphtool.io import npz
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.transforms.training import Recipe, training
from tests.passes.pass_samples import SAMPLES

DIGITS = Path(__file__).parents[2] / "samples"
SECONDS = 900
EXACT = 2e-5  # of the largest number of an output; programs differ in the order of sums
# Adam divides a gradient by its own size: one that is nearly 0 moves a weight by a share of the
# rate, in a direction that one fused multiplication decides
STEPS = 2e-4


@dataclass(frozen=True)
class Compiler:
    """A compiler with its flags, what runs its programs, and the row of targets it compiles for.

    `refuses` is a part of the sentence at which it is meant to stop.
    """

    command: str
    runner: str = ""
    target: str = "x86-64"
    refuses: str = ""
    environment: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        return " ".join([*self.runner.split()[:1], self.command])

    @property
    def installed(self) -> bool:
        tools = [self.command.split()[0], *self.runner.split()[:1]]
        return all(shutil.which(t) for t in tools)


CLEAN = "-g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all"
COMPILERS = [
    *(Compiler(f"gcc -O{level}") for level in "0123s"),
    *(Compiler(f"gcc -O2 -march={m}", target=m) for m in ("x86-64-v2", "x86-64-v3", "x86-64-v4")),
    *(Compiler(f"gcc -O1 -std={std}") for std in ("c99", "c11", "c17", "gnu2x -pedantic")),
    Compiler("gcc -O2 -fopenmp"), Compiler("gcc -O2 -flto=auto"),
    Compiler("gcc -O2 -funsigned-char"),
    Compiler("gcc -O2 -fno-strict-aliasing -fwrapv"), Compiler("gcc -O2 -fPIE -pie -static-pie"),
    Compiler("gcc -m32 -O2 -msse2 -mfpmath=sse", target="generic"),
    Compiler("gcc -m32 -O0 -msse2 -mfpmath=sse", target="generic"),
    Compiler("gcc -m32 -O2", target="generic", refuses="float is computed in a wider type"),
    Compiler("gcc -O2 -ffast-math", refuses="-ffast-math and -Ofast give wrong results"),
    Compiler("gcc -Ofast", refuses="-ffast-math and -Ofast give wrong results"),
    *(Compiler(f"clang -O{level}") for level in "023"),
    Compiler("clang -O2 -march=x86-64-v3", target="x86-64-v3"),
    Compiler("clang -O2 -ffast-math", refuses="-ffast-math and -Ofast give wrong results"),
    Compiler("g++ -O2", refuses="this is C"),
    Compiler("tcc", refuses="compile it with gcc or clang"),
    Compiler("musl-gcc -O2 -static"),
    Compiler("aarch64-linux-gnu-gcc-12 -O2", "qemu-aarch64 -L /usr/aarch64-linux-gnu", "armv8-a"),
    Compiler("arm-linux-gnueabihf-gcc-12 -O2", "qemu-arm -L /usr/arm-linux-gnueabihf", "generic"),
    Compiler("riscv64-linux-gnu-gcc-12 -O2", "qemu-riscv64 -L /usr/riscv64-linux-gnu", "generic"),
    Compiler("s390x-linux-gnu-gcc-12 -O2", "qemu-s390x -L /usr/s390x-linux-gnu", "generic",
             refuses="lowest byte first"),
    Compiler(f"gcc {CLEAN} -fsanitize=address,undefined", environment={
        "ASAN_OPTIONS": "detect_leaks=0:strict_string_checks=1"}),  # it frees nothing when it ends
    Compiler("clang -g -O0 -fno-sanitize-recover=all -fsanitize=memory"),
    Compiler("gcc -g -O1 -fsanitize=thread", environment={"TSAN_OPTIONS": "halt_on_error=1"}),
    Compiler("gcc -g -O1", "valgrind -q --error-exitcode=9 --leak-check=no"),
]


def models() -> dict[str, Module]:
    """The models by name: floats, integers, open sizes, recurrence, 8 bits, training."""
    import onnx

    from graphtool.importers.onnx import import_model
    digits = import_model(onnx.load(DIGITS / "digits.onnx"))
    data = np.load(DIGITS / "digits_train.npz")
    scales = graphtool.quantise(digits, examples={"image": data["image"][:64]})
    step = training(digits, Recipe("cross_entropy", optimizer="adamw"))
    return {"digits": digits, **SAMPLES, "digits int8": scales, "digits training": step}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="models whose names begin so")
    parser.add_argument("--with", dest="compilers", default="",
                        help="compilers whose names have this in them")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("stranger.jsonl"), lambda r: (r["model"], r["compiler"]))
    with tempfile.TemporaryDirectory(prefix="graphtool-stranger-") as folder:
        for name, model in models().items():
            if not name.startswith(options.only):
                continue
            _each(journal, name, model, Path(folder) / name.replace(" ", "_"), options.compilers)
    rows = list(journal.rows().values())
    work.results("stranger.md").write_text(report(rows, options.command_line))
    print(work.results("stranger.md").read_text())
    return sum(r["outcome"] not in ("right", "refused", "not installed") for r in rows)


def _each(journal: Journal, name: str, model: Module, folder: Path, only: str) -> None:
    """One model by every compiler; adds a row for each."""
    folder.mkdir()
    serial.save(model, folder / "m.graph.json")
    known: dict[str, Any] = {}
    if not trains(folder):
        inputs = made_up.random_inputs(model, 1)
        npz.save(inputs, folder / "in.npz")
        known = graphtool.evaluate(model, inputs)
    for compiler in COMPILERS:
        if only not in compiler.name:
            continue
        outcome, error = "not installed", 0.0
        if compiler.installed:
            try:
                got = (_trained if trains(folder) else _ran)(folder, compiler)
                known = known or got
                error = work.error_of([got[k] for k in known], list(known.values()))
                outcome = "right" if error <= (STEPS if trains(folder) else EXACT) else "wrong"
            except Stopped as stopped:
                outcome = str(stopped)
        journal.add({"model": name, "compiler": compiler.name, "outcome": outcome,
                     "error": error, **work.stamp()})
        print(f"{name}, {compiler.name}: {outcome} {error:.1e}", flush=True)


def trains(folder: Path) -> bool:
    """Whether the model there is a training step."""
    return folder.name.endswith("training")


class Stopped(Exception):
    """The compiler or the program stopped: `refused` where it is meant to, or what it said."""


def _program(folder: Path, compiler: Compiler) -> list[str]:
    """The command that runs the program; compiled from a folder that has nothing but the C."""
    text = folder / f"c-{compiler.target}"
    if not text.exists():
        weights = [] if trains(folder) else ["--weights", "embed"]
        done = _run(["graphtool", "emit", str(folder / "m.graph.json"), "--exe", *weights,
                     "--name", "model", "--target", compiler.target, "-o", str(text)])
        if done.returncode:
            raise Stopped(jobs.short(RuntimeError(done.stderr)))
    done = _run(["sh", "-c", f"{compiler.command} *.c -lm -o {folder}/program"], text)
    if compiler.refuses:
        raise Stopped("refused" if done.returncode and compiler.refuses in done.stderr
                      else "compiled, and should not be")
    if done.returncode or "warning" in done.stderr:
        raise Stopped(_first(done.stderr))
    return [*compiler.runner.split(), f"{folder}/program"]


def _ran(folder: Path, compiler: Compiler) -> dict[str, Any]:
    """What the program writes for the inputs of the file."""
    out = folder / "out.npz"
    _checked([*_program(folder, compiler), str(folder / "in.npz"), "-o", str(out)], compiler)
    with np.load(out) as stored:
        return dict(stored)


def _trained(folder: Path, compiler: Compiler) -> dict[str, Any]:
    """The parameters after one pass over the digits, by the program."""
    from safetensors.numpy import load_file
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    _checked([*_program(folder, compiler), "--data", str(DIGITS / "digits_train.npz"), "--epochs",
              "1", "--batch", "500", "--checkpoint", str(run)], compiler)
    return dict(load_file(run / "model.safetensors"))


def _checked(command: list[str], compiler: Compiler) -> None:
    done = _run(command, environment=compiler.environment)
    if done.returncode:
        raise Stopped(f"exit code {done.returncode}: {_first(done.stderr)}")


def _run(command: list[str], folder: Path | None = None,
         environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        raise Stopped(f"not done within {SECONDS} s") from None


def _first(said: str) -> str:
    """The line of a message that matters most."""
    lines = [x for x in said.splitlines() if "error" in x or "warning" in x or "ERROR" in x]
    return (lines or said.splitlines() or ["nothing said"])[0][:200]


def report(rows: list[Row], command: str) -> str:
    """A row for each compiler: right, refused as it should be, and what else."""
    names = list(dict.fromkeys(r["model"] for r in rows))
    lines, rest = [], []
    for compiler in dict.fromkeys(r["compiler"] for r in rows):
        mine = [r for r in rows if r["compiler"] == compiler]
        counts = Counter(r["outcome"] if r["outcome"] in ("right", "refused", "not installed")
                         else "other" for r in mine)
        lines.append([compiler, *(str(counts[k]) for k in ("right", "refused", "other")),
                      tables.error(max(r["error"] for r in mine))])
        rest += [f"* {r['model']}, {compiler}: {r['outcome']}" for r in mine
                 if r["outcome"] not in ("right", "refused")]
    head = ["compiler", "right", "refused, as it should be", "other", "largest error"]
    at = work.stamp()
    return "\n".join([
        "# The C of models by a stranger's compiler", "",
        f"`{command}`, {at['date']}, {at['cpu']}.", "",
        f"Models: {', '.join(names)}. Errors are relative to the largest number of an output.",
        "", tables.markdown(head, lines), *rest, ""])
