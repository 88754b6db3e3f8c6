"""Times networks as WebAssembly in Node beside onnxruntime-web and TensorFlow.js, in float32 and
int8, with the bytes that a page loads beside the weights, and the time to a first result in a fresh
process."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import graphtool
from benchmarks import tables, web_tfjs, work
from benchmarks.models import web
from graphtool.ir.graph import Module
from graphtool.package.forms import package
from graphtool.transforms.quantising import Quantisation

RUNNER = Path(__file__).with_name("web.mjs")
OURS, PEER, OTHER = "graphtool", "onnxruntime", "tfjs"
USUAL = "graphtool float32"  # beside int8
FORMS = {"float32": "wasm32", "relaxed": "wasm32-relaxed", "int8": "wasm32"}
COLUMNS = ("network", "form", "graphtool ms", "onnxruntime-web ms", "tfjs ms", "times as fast",
           "as float32", "first result ms", "of it", "code KB", "of it", "apart")
FILES = {PEER: ("onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
                "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
                "onnxruntime-web/dist/ort.wasm.min.mjs"),
         OTHER: ("@tensorflow/tfjs-core/dist/tf-core.fesm.min.js",
                 "@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.fesm.min.js",
                 "@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm")}
FUSED = "--experimental-wasm-relaxed-simd"  # of a Node that does not fuse by default yet


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--npm", type=Path, required=True, metavar="FOLDER",
                        help="the node_modules with onnxruntime-web, @tensorflow/tfjs-core and "
                             "@tensorflow/tfjs-backend-wasm")
    parser.add_argument("--networks", default=",".join(web.MODELS), metavar="NAMES",
                        help="separated by commas")
    parser.add_argument("--forms", default=",".join(FORMS), metavar="NAMES")
    parser.add_argument("--threads", type=int, default=1, help="of a run, in both runtimes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round")
    parser.add_argument("--warm", type=float, default=3.0, metavar="SECONDS",
                        help="that each runs first")


def main(options: argparse.Namespace) -> int:
    """Time each network; the table goes to results/web.md, that of several threads to
    results/web_threads.md."""
    if shutil.which("node") is None:
        raise SystemExit("needs node")
    rows = []
    for name in options.networks.split(","):
        for form in options.forms.split(","):
            if options.threads > 1 and form == "relaxed":
                continue  # there is no target with both
            rows.append(row(prepared(name), form, options))
            print(json.dumps(rows[-1]), flush=True)
    text = report(rows, options)
    work.results("web.md" if options.threads == 1 else "web_threads.md").write_text(text)
    print(f"\n{text}")
    return sum("error" in r for r in rows)


@dataclass(frozen=True)
class WebModel:
    """A network as a graph, as model.onnx, and its inputs, in a folder of its own."""

    name: str
    folder: Path
    module: Module
    inputs: Mapping[str, Any]


def prepared(name: str) -> WebModel:
    """The network, exported; its inputs are files for the runner too."""
    folder = work.root() / "web" / name
    folder.mkdir(parents=True, exist_ok=True)
    model, given = web.made(name)
    names = [f"in_{i}" for i in range(len(given))]
    if not (folder / "model.onnx").exists():
        torch.onnx.export(model, given, str(folder / "model.onnx"), dynamo=True, opset_version=18,
                          external_data=False, verbose=False, input_names=names)
    arrays = {n: x.numpy() for n, x in zip(names, given, strict=True)}
    for n, x in arrays.items():
        (folder / f"{n}.bin").write_bytes(x.tobytes())
    return WebModel(name, folder, graphtool.import_model(str(folder / "model.onnx")), arrays)


def row(m: WebModel, form: str, options: argparse.Namespace) -> dict[str, Any]:
    """Times and bytes of a network in one form."""
    ours, contestants = built(m, form, options.threads), peers(m, form)
    job = {"npm": str(options.npm.resolve()), "threads": options.threads, "rounds": options.rounds,
           "warm": options.warm, "seconds": options.seconds, "inputs": [
               {"name": n, "type": {"float32": "f32", "int64": "i64"}[str(x.dtype)],
                "file": str(m.folder / f"{n}.bin"), "shape": list(x.shape)}
               for n, x in m.inputs.items()]}
    first = {n: min(node({**job, "mode": "first", "contestants": {n: p}})[n] for _ in range(3))
             for n, p in {OURS: str(ours), **contestants}.items()}
    beside = {USUAL: str(built(m, "float32", options.threads))} if form == "int8" else {}
    raced = node({**job, "mode": "race", "contestants": {OURS: str(ours), **contestants, **beside}})
    times = raced["times"]
    best = [min(rivals) for rivals in zip(*(times[n] for n in contestants), strict=True)]
    unused = {"web.wasm"} if len([*ours.glob("*.wasm")]) > 1 else set()
    code = sum(f.stat().st_size for f in ours.iterdir()
               if f.suffix in (".wasm", ".js") and f.name not in unused)
    return {"network": m.name, "form": form, "first": first, "code": code,
            "times": {n: statistics.median(t) for n, t in times.items()},
            "ratio": ratio(best, times[OURS]), "apart": max(raced["apart"][n] for n in contestants),
            "usual": ratio(times[USUAL], times[OURS]) if beside else None,
            "theirs": min(size(n, options.npm) for n in contestants)}


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """How many times as fast: the median over rounds."""
    return statistics.median(b / a for a, b in zip(ours, theirs, strict=True))


def size(peer: str, npm: Path) -> int:
    """Bytes of code that a page loads of another runtime."""
    return sum((npm / f).stat().st_size for f in FILES[peer])


def peers(m: WebModel, form: str) -> dict[str, str]:
    """The other runtimes that can run a form of the network, and their files of it."""
    if form == "int8":
        return {PEER: str(quantised(m))}
    onnx = m.folder / "model.onnx"
    other = web_tfjs.rebuilt(onnx, m.inputs)
    return {PEER: str(onnx), **({OTHER: str(other)} if other else {})}


def built(m: WebModel, form: str, threads: int = 1) -> Path:
    """The folder of the npm package of a build for WebAssembly, with threads if there are to be
    several."""
    target = FORMS[form] if threads == 1 else "wasm32-threads"
    module = m.module
    if form == "int8":
        module = graphtool.quantise(module, Quantisation(("static",)), dict(m.inputs))
    folder = m.folder / f"{form}_{target}"
    build = graphtool.build(module, folder / "build", name="web", target=target)
    with tarfile.open(package(build, "npm", folder).path) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def quantised(m: WebModel) -> Path:
    """The model as onnxruntime quantises it: bytes with scales of each channel."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Once(CalibrationDataReader):
        def __init__(self) -> None:
            self.rows = iter([dict(m.inputs)])

        def get_next(self) -> dict[str, Any] | None:
            return next(self.rows, None)
    path, ready = m.folder / "int8.onnx", m.folder / "ready.onnx"
    if not path.exists():
        quant_pre_process(str(m.folder / "model.onnx"), str(ready))
        quantize_static(str(ready), str(path), Once(), per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return path


def node(job: Mapping[str, Any]) -> dict[str, Any]:
    """What the runner prints."""
    known = subprocess.run(["node", "--v8-options"], capture_output=True, text=True).stdout
    flags = [FUSED] if FUSED in known else []
    done = subprocess.run(["node", *flags, str(RUNNER), json.dumps(job)], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    out: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return out


def cells(r: Mapping[str, Any]) -> list[str]:
    """A row of the table."""
    times, first = r["times"], dict(r["first"])
    mine = first.pop(OURS)
    return [r["network"], r["form"], *(tables.number(times[n]) if n in times else "-"
                                       for n in (OURS, PEER, OTHER)),
            f"{r['ratio']:.2f}", "-" if r["usual"] is None else f"{r['usual']:.2f}",
            tables.number(mine), f"{mine / min(first.values()):.2f}", f"{r['code'] / 1024:.0f}",
            f"{r['code'] / r['theirs']:.3f}", f"{r['apart']:.0e}"]


def means(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The mean and the least of each form."""
    lines = []
    for form in dict.fromkeys(r["form"] for r in rows):
        ratios = [r["ratio"] for r in rows if r["form"] == form]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        lines += [f"{form}: {mean:.2f} times as fast (geometric mean), {min(ratios):.2f} at the "
                  "least.", ""]
    return lines


def report(rows: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> str:
    """Markdown: the table, its means, and what its columns are."""
    stamp = work.stamp()
    versions = [f"{name} {json.loads((options.npm / name / 'package.json').read_text())['version']}"
                for name in ("onnxruntime-web", "@tensorflow/tfjs-backend-wasm")]
    version_of_node = subprocess.run(["node", "--version"], capture_output=True, text=True)
    threads = "one thread" if options.threads == 1 else f"{options.threads} threads"
    about = (
        f"{datetime.now(UTC):%Y-%m-%d}, {stamp['cpu']}, {stamp['cores']} cores, load "
        f"{os.getloadavg()[0]:.0f}; Node {version_of_node.stdout.strip()}, {threads}, beside "
        f"{versions[0]} and {versions[1]}, of which a page loads {size(PEER, options.npm) // 1024} "
        f"and {size(OTHER, options.npm) // 1024} KB of code. Each runs {options.warm:g} s first, "
        "as V8 compiles a module a second time while it runs. Runs are interleaved; times are the "
        f"median of {options.rounds} rounds, of each its lower quartile. Ratios are to the "
        "better of the two. `tfjs`: there is no converter for ONNX, so networks of simple layers "
        "are rebuilt by its operations. `relaxed`: float32 for wasm32-relaxed. `as float32`: how "
        "many times as fast as float32. `first result`: load and first run in a fresh process, and "
        "the share of the other's. `code`: what a page loads beside the weights. `apart`: from the "
        "others' results, over the largest element; each quantises by itself. Command: "
        f"`{options.command_line}`.")
    title = "# Networks in WebAssembly" + (f", {threads}" if options.threads > 1 else "")
    return "\n".join([title, "", about, "", tables.markdown(COLUMNS, [cells(r) for r in rows]),
                      *means(rows)])
