"""`python -m benchmarks COMMAND`: what is measured, one row a command."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.gpu import CASES
from benchmarks.models import (
    ALL,
    DIGITS,
    DRAWN,
    INT8,
    NARROW,
    OPEN,
    QUANTISE,
    SETS,
    ZOO,
    named,
)
from benchmarks.models.tasks import TASKS

COMMANDS = {
    "prepare": "export the zoo to ONNX, with inputs and expected outputs",
    "zoo": "time the zoo beside other runtimes",
    "int8": "time quantised models beside other runtimes and float32",
    "quantise": "quantise models by several tools: error and time",
    "narrow": "time models in 16-bit floats beside other runtimes and float32",
    "llm": "time a language model with weights of 4 bits beside onnxruntime and llama.cpp",
    "kernels": "time single kernels of the zoo beside other runtimes",
    "ops": "time single operators beside onnxruntime and torch on one thread",
    "scaling": "time models as batch, sequence, width and depth grow",
    "load": "time models beside processes that use the same processors",
    "memory": "arenas beside what lives at once, weights, peaks of processes",
    "gpu": "time libraries for a GPU beside torch, prepared here and run on a machine with one",
    "first": "time fresh processes to their first result, and their memory",
    "compiler": "time the compiler itself",
    "tiny": "RAM, flash and instructions of MLPerf Tiny on microcontrollers",
    "web": "time models as WebAssembly in Node beside onnxruntime-web",
    "shipped": "time trained networks that packages carry beside onnxruntime and OpenVINO",
    "open": "time models with open sizes beside the same with fixed ones",
    "training": "time training steps beside torch and JAX",
    "page": "first paint and frames a second of the page of view in Chromium, and pictures of it",
    "dynamo": "time torch.compile by graphtool, by inductor, and eager torch",
}
OF_TASKS = ("training", "parity", "rounding")  # the others are about the zoo, or their own


def main(arguments: list[str] | None = None, package: str = "benchmarks",
         known: Mapping[str, str] = COMMANDS) -> int:
    """Parse, run, and return the exit code: 0 unless something failed.

    `known` are the commands, which are modules of the package.
    """
    given = sys.argv[1:] if arguments is None else arguments
    options = parser(package, known, next(iter(given), "")).parse_args(given)
    if options.work:
        os.environ["BENCH_DIR"] = str(options.work.resolve())
    there = TASKS if options.command in OF_TASKS else {
        **SETS, **ALL, **OPEN, **dict.fromkeys((*DIGITS, *CASES))}
    unknown = [m for m in options.models if m not in there and not m.startswith(DRAWN)]
    if unknown:
        raise SystemExit(f"there is no model {unknown[0]!r}, but {', '.join(there)}")
    options.command_line = shlex.join(["python", "-m", package, *given])
    failed = importlib.import_module(f"{package}.{options.command}").main(options)
    return 1 if failed else 0


def models(command: str) -> list[str]:
    own = {"gpu": CASES, "int8": INT8, "narrow": NARROW, "quantise": QUANTISE, "open": OPEN,
           **dict.fromkeys(OF_TASKS, TASKS)}
    return list(own.get(command, ZOO))


def parser(package: str = "benchmarks",
           known: Mapping[str, str] = COMMANDS, only: str = "") -> argparse.ArgumentParser:
    """The commands with their options. `only` is the command that is parsed, if it is known: the
    modules of others may need packages that this machine lacks."""
    top = argparse.ArgumentParser(prog=f"python -m {package}")
    commands = top.add_subparsers(dest="command", required=True)
    for name, text in known.items():
        one = commands.add_parser(name, help=text, description=text)
        if only in known and name != only:
            continue
        one.add_argument("-m", "--models", default=models(name), metavar="NAMES",
                         type=named, help="separated by commas, or a set: "
                         f"{', '.join(SETS)}, drawn:SEED:COUNT (of timm)")
        one.add_argument("--work", type=Path, metavar="DIR",
                         help="the work folder (default: $BENCH_DIR, or bench-work)")
        importlib.import_module(f"{package}.{name}").arguments(one)
    return top


if __name__ == "__main__":
    sys.exit(main())
