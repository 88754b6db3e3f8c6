"""Times fresh processes from their start to the first result, and their memory at its peak.

A process is a program of C with the library, Python with it (by graphtool, or by the wheel without
numpy), or Python with another runtime. All read the same numbers: from an .npz, or the wheel from a
plain file for each array. Those in Python tell the parent by one byte that they have a result, and
read no .pth file of the environment, which may take longer than the rest. The page cache is warm.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import shutil
import site
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from statistics import median

import graphtool
from benchmarks import jobs, prepare, stats, tables, work
from benchmarks.stats import OURS
from benchmarks.work import Row
from graphtool.dtypes import dtype
from graphtool.io import npz
from graphtool.io.manifest import read_manifest
from graphtool.package.forms import package

MODELS = ("mlp_b1", "lstm", "mobilenet_v2", "resnet18", "resnet50", "efficientnet_b0", "vit_small",
          "yolo_tiny", "unet_small", "bert_base_128")
GOAL = 5.0     # times as fast as either peer
PROGRAM, WHEEL = f"{OURS} in C", f"{OURS}'s wheel"
_BEGIN = f"import sys\nsys.path += {site.getsitepackages()}\nbuild, onnx, inputs = sys.argv[1:]\n"
_FEEDS = ("import numpy as np\n"
          "stored = np.load(inputs)\n"
          "feeds = {k: stored[k] for k in stored.files}\n")
_DONE = "\nsys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()\n"
SCRIPTS = {
    OURS: "import graphtool\ngraphtool.load(build, threads=2).run(feeds)",
    "onnxruntime": "import onnxruntime\n"
                   "onnxruntime.InferenceSession(onnx, providers=['CPUExecutionProvider'])"
                   ".run(None, feeds)",
    "openvino": "import openvino\nopenvino.Core().compile_model(onnx, 'CPU')(feeds)"}
SCRIPTS = {name: _FEEDS + text for name, text in SCRIPTS.items()}
SCRIPTS[WHEEL] = (  # the parent fills in how many inputs there are, and the bytes of the outputs
    "sys.path.insert(0, build + '/../site')\n"
    "import net\n"
    "given = [open(f'{{inputs}}.{{i}}', 'rb').read() for i in range({count})]\n"
    "net.run_into(given, [bytearray(n) for n in {rooms}], threads=2)")
OWN = (PROGRAM, OURS, WHEEL)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(models=list(MODELS))
    parser.add_argument("--rounds", type=int, default=7, help="processes of each kind [7]")


def main(options: argparse.Namespace) -> int:
    """How many models fail."""
    peers = [p for p in SCRIPTS if p in OWN or importlib.util.find_spec(p)]
    rows = []
    for model in filter(prepare.ensure, options.models):
        rows.append(measured(model, peers, options.rounds))
        print(*cells(rows[-1], peers), rows[-1].get("error", ""), flush=True)
    text = report(rows, peers, options.command_line)
    work.results("first.md").write_text(text)
    print(f"\n{text}\n{work.results('first.md')} written")
    return sum("error" in row for row in rows)


def measured(model: str, peers: Sequence[str], rounds: int) -> Row:
    """Milliseconds and MB of each contestant's process, medians of rounds in turns."""
    found = work.prepared(model)
    folder = work.cache("first", model)
    row: Row = {"model": model}
    if "error" in (done := jobs.run("benchmarks.first", "built", model)):
        return row | done
    build, inputs = folder / "build", folder / "in.npz"
    manifest = read_manifest(build)
    row |= {"bytes": manifest.weights_bytes + int(manifest.arena or 0)}
    given = [str(build), str(found.onnx), str(inputs)]
    rooms = [math.prod(map(int, p.shape)) * dtype(p.type).bytes for p in manifest.outputs]
    scripts = SCRIPTS | {WHEEL: SCRIPTS[WHEEL].format(count=len(manifest.inputs), rooms=rooms)}
    commands = {p: [sys.executable, "-S", "-c", _BEGIN + scripts[p] + _DONE, *given]
                for p in peers}
    commands[PROGRAM] = [str(build / str(manifest.executable)), "-o", os.devnull, str(inputs)]
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds + 1):  # the first fills the page cache
        for name, command in commands.items():
            seen[name].append(process(command, name != PROGRAM))
    return row | {name: [median(x) for x in zip(*runs[1:], strict=True)]
                  for name, runs in seen.items()}


def built(model: str) -> Row:
    """The build with its program, and the inputs by name, once; as a job."""
    folder, found = work.cache("first", model), work.prepared(model)
    if not (folder / "in.npz").exists():
        module = graphtool.import_model(found.onnx)
        graphtool.build(module, folder / "build", name="net", threads=2, exe=True)
        names = [p.name for p in read_manifest(folder / "build").inputs]
        for i, array in enumerate(found.arrays("in")):
            (folder / f"in.npz.{i}").write_bytes(array.tobytes())
        with zipfile.ZipFile(package(folder / "build", "wheel", folder).path) as archive:
            archive.extractall(folder / "site")
        npz.save(dict(zip(names, found.arrays("in"), strict=True)), folder / "in.npz")
    return {}


def process(command: Sequence[str], tells: bool) -> tuple[float, float]:
    """Milliseconds from the start to the byte, or to the end, and the peak in MB.

    GNU time is the parent: a process begins with the peak of the one that forked it. Without it
    there is no peak."""
    timed = shutil.which("time")
    start = time.perf_counter()
    with subprocess.Popen([timed, "-f", "%M", *command] if timed else command,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=jobs.environment({"OMP_NUM_THREADS": "2"})) as child:
        assert child.stdin and child.stdout and child.stderr
        told = child.stdout.read(1) if tells else b"."
        child.stdin.close()
        if not tells:
            child.wait()
        ms = (time.perf_counter() - start) * 1e3
        said = child.stderr.read().split()
        if child.wait() or told != b".":
            raise RuntimeError(f"{command[0]} ended with {child.returncode}")
    return ms, int(said[-1]) / 1024 if timed else math.nan


# ---- the page -----------------------------------------------------------------------------------


def report(rows: Sequence[Row], peers: Sequence[str], command: str) -> str:
    stamp, good = work.stamp(), [row for row in rows if "error" not in row]
    others = [p for p in peers if p not in OWN]
    head = ["model", "C ms", *(f"{p} ms" for p in peers),
            *(f"best peer / {p}" for p in OWN), "C MB", *(f"{p} MB" for p in peers),
            "C MB over weights + arena"]
    tail = []
    for ours, name in ((PROGRAM, "the program of C"), (WHEEL, "Python by the wheel"),
                       (OURS, "Python by graphtool")):
        ratios = [ratio(row, ours, others) for row in good] if others else []
        if ratios:
            tail.append(f"* {name}: {stats.geometric_mean(ratios):.1f} times as fast as the "
                        f"better peer in the geometric mean, {min(ratios):.1f} at least (goal "
                        f"{GOAL:.0f}).")
    return "\n".join([
        "# From the start of a process to the first result", "",
        f"{stamp['date']}, {stamp['cpu']}; float32, two threads, the page cache warm, medians. A "
        "process starts, loads the model, reads the inputs and computes once. Peers read ONNX, and "
        "compile it; ours is built before. MB are the peak of resident memory."
        + (f" Command: `{command}`." if command else ""), "",
        tables.markdown(head, [cells(row, peers) for row in rows]), *tail,
        *(f"* {row['model']}: {row['error']}" for row in rows if "error" in row), ""])


def ratio(row: Mapping[str, list[float]], ours: str, others: Sequence[str]) -> float:
    """How many times as long the fastest of the others takes."""
    return min(row[p][0] for p in others) / row[ours][0]


def cells(row: Row, peers: Sequence[str]) -> list[str]:
    if "error" in row:
        return [row["model"], *[tables.GAP] * (2 * len(peers) + 6)]
    n, others = tables.number, [p for p in peers if p not in OWN]
    ratios = [n(ratio(row, ours, others)) if others else tables.GAP for ours in OWN]
    over = row[PROGRAM][1] - row["bytes"] / 2**20
    return [row["model"], n(row[PROGRAM][0]), *(n(row[p][0]) for p in peers), *ratios,
            n(row[PROGRAM][1]), *(n(row[p][1]) for p in peers), n(over)]

