"""Times the compiler itself: graphs of growing size, the stages of models, the command line."""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks import jobs, prepare, stats, tables, work
from benchmarks.work import Row

SIZES = (100, 1_000, 10_000, 100_000)
MODELS = ("resnet50", "densenet121", "efficientnet_b0", "inception_v3", "swin_tiny",
          "bert_base_128", "whisper_tiny_enc")
BESIDE = ("import", "write", "read", "lower", "emit")
STAGES = ("import", "opt", "lower", "emit", "compile", "total", "cached", "command", "again")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", default=list(SIZES), help="nodes of the synthetic graphs",
                        type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--stages-of", default=list(MODELS), metavar="NAMES",
                        type=lambda text: text.split(","), help="models, separated by commas")
    parser.add_argument("--skip", default=[], type=lambda text: text.split(","),
                        help="of graphs,stages,startup")


def main(options: argparse.Namespace) -> int:
    parts = {"graphs": lambda: [graph_row(n) for n in options.sizes],
             "stages": lambda: [stage_row(model) for model in options.stages_of],
             "startup": startup_rows}
    found: dict[str, Any] = {**work.stamp(), "command": options.command_line}
    for name, part in parts.items():
        if name not in options.skip:
            print(f"timing {name} …", file=sys.stderr, flush=True)
            found[name] = part()
    work.results("compiler.json").write_text(json.dumps(found, indent=1) + "\n")
    work.results("compiler.md").write_text(report(found))
    print(report(found))
    print(f"{work.results('compiler.md')} and compiler.json written")
    rows = [*found.get("graphs", ()), *found.get("stages", ()), *found.get("startup", ())]
    return sum("error" in row for row in rows)


def report(found: Row) -> str:
    out = ["# Time of the compiler itself", "",
           f"{found['date']}, {found['cpu']}, {found['cores']} cores; command: "
           f"`{found['command']}`", ""]
    if "graphs" in found:
        out += _graphs(found["graphs"])
    if "stages" in found:
        rows = found["stages"]
        out += ["## Seconds of each stage of a model", "", tables.markdown(
            ("model", *STAGES), [[r["model"], *(tables.number(r.get(s)) for s in STAGES)]
                                 for r in rows]),
            *(f"* {r['model']}: {r['error']}" for r in rows if "error" in r)]
    if "startup" in found:
        out += ["## The command line: seconds, least of several starts", "", tables.markdown(
            ("command", "s"), [[f"`{r['command']}`", tables.number(r.get("seconds"))]
                               for r in found["startup"]])]
    return "\n".join(out).rstrip() + "\n"


def _graphs(rows: list[Row]) -> list[str]:
    """Passes by graph size, with the exponent of growth under the table."""
    good = [r for r in rows if "error" not in r]
    names = list(dict.fromkeys(n for r in good for n in r["passes"]))
    body = [[str(r["nodes"]), tables.number(r["seconds"]),
             tables.number(1e6 * r["seconds"] / r["nodes"]), tables.number(r["verify"]),
             *(tables.number(r["passes"].get(n)) for n in names)] for r in good]
    head = ("nodes", "default passes s", "µs a node", "verify s", *names)
    out = ["## Synthetic graphs through the default passes", "", tables.markdown(head, body),
           "## What comes before and behind the passes, seconds", "", tables.markdown(
               ("nodes", *BESIDE), [[str(r["nodes"]), *(tables.number(r["beside"][n])
                                                        for n in BESIDE)] for r in good])]
    if len(good) > 1:
        sizes = [r["nodes"] for r in good]
        powers = {"passes": stats.slope(sizes, [r["seconds"] for r in good])} | {
            n: stats.slope(sizes, [r["beside"][n] for r in good]) for n in BESIDE}
        out.append("Powers of the number of nodes that the time grows with: " + ", ".join(
            f"{name} {p:.2f}" for name, p in powers.items()) + ".\n")
    return out + [f"* {r['size']} nodes: {r['error']}\n" for r in rows if "error" in r]


# ---- synthetic graphs ---------------------------------------------------------------------------


def graph_row(size: int) -> Row:
    return {"size": size, **jobs.run("benchmarks.compiler", "graph", size)}


def graph(size: int) -> Row:
    """Seconds of each default pass on a graph of that size; `verify` is for a whole pipeline with
    the check after every pass, less that without."""
    from benchmarks.graphs import chain
    from graphtool import passes
    from graphtool.target import detect
    module, target = chain(size), {"target": detect()}
    passes.run(chain(30), supply=target)  # what only the first run of a process pays is not counted
    by_pass: dict[str, float] = defaultdict(float)

    def note(report: passes.PassReport, _: Any) -> None:
        by_pass[report.name] += report.seconds
    start = time.perf_counter()
    passes.run(module, verify=False, after=note, supply=target)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    ready = passes.run(module, supply=target)
    verified = time.perf_counter() - start
    return {"nodes": len(module.graph.nodes), "seconds": seconds, "passes": dict(by_pass),
            "verify": max(verified - seconds, 0.0), "beside": _import(size) | _beside(ready)}


def _import(size: int) -> dict[str, float]:
    """Seconds of the import of an ONNX model of that size."""
    from benchmarks.graphs import onnx_chain
    from graphtool.importers.onnx import import_model
    import_model(onnx_chain(30))
    model = onnx_chain(size)
    start = time.perf_counter()
    import_model(model)
    return {"import": time.perf_counter() - start}


def _beside(module: Any) -> dict[str, float]:
    """Seconds of writing an optimised module as text and reading it, of lowering and emission."""
    from graphtool.emit.c import emit
    from graphtool.ir import serial
    from graphtool.lower import lower
    from graphtool.target import detect
    marks = [time.perf_counter()]

    def mark(_: Any) -> None:
        marks.append(time.perf_counter())
    mark(text := serial.dumps(module, embed=True))
    mark(serial.loads(text))
    mark(program := lower(module, detect(), name="model"))
    mark(emit(program))
    return dict(zip(BESIDE[1:], (b - a for a, b in itertools.pairwise(marks)), strict=True))


# ---- stages of one model ------------------------------------------------------------------------


def stage_row(model: str) -> Row:
    if not prepare.ensure(model):
        return {"model": model, "error": "it could not be prepared"}
    with tempfile.TemporaryDirectory(prefix="graphtool-bench-") as folder:
        env = {"XDG_CACHE_HOME": folder}
        row = {"model": model, **jobs.run("benchmarks.compiler", "stages", model, folder, env=env)}
        if "error" not in row:
            env["XDG_CACHE_HOME"] = f"{folder}/empty"
            row |= {key: _command(model, Path(folder) / "again", env)
                    for key in ("command", "again")}
        return row


def _command(model: str, out: Path, env: dict[str, str]) -> float:
    """Seconds of `graphtool build`, from its start to its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "graphtool", "build", str(work.prepared(model).onnx),
                    "-o", str(out)], env=jobs.environment(env), capture_output=True, check=True)
    return time.perf_counter() - start


def stages(model: str, folder: str) -> Row:
    """Seconds from the ONNX file to the library, with an empty compiler cache; then once more.

    `compile` is the C compiler, packing, and writing the directory; `command` is the whole command
    `graphtool build` with an empty cache, `again` the same once more."""
    from graphtool import importers, optimize
    from graphtool.compile.as_is import build
    from graphtool.emit.c import emit
    from graphtool.ir.serial import collect_all
    from graphtool.lower import lower
    from graphtool.target import detect
    source, out, target = str(work.prepared(model).onnx), Path(folder) / "build", detect()
    marks = [time.perf_counter()]

    def mark() -> None:
        marks.append(time.perf_counter())
    module = importers.import_source(source)
    mark()
    module = optimize(module, verify=False)
    mark()
    program = lower(module, target, name="model")
    mark()
    emit(program)
    mark()
    build(program, out, target=target, store={w.digest: w for w in collect_all(module.graph)})
    mark()
    build(optimize(importers.import_source(source), verify=False), out, target=target)
    mark()
    took = [b - a for a, b in itertools.pairwise(marks)]
    took[4] -= took[3]  # build emits once more
    return dict(zip(STAGES[:7], [*took[:5], sum(took[:5]), took[5]], strict=True))


# ---- the command line ---------------------------------------------------------------------------


def startup_rows() -> list[Row]:
    from benchmarks.graphs import chain
    from graphtool import write
    with tempfile.TemporaryDirectory(prefix="graphtool-bench-") as folder:
        path = Path(folder) / "chain.graph.json"
        write(chain(100), path)
        return [startup("graphtool --help", "--help"),
                startup("graphtool show chain.graph.json", "show", str(path)),
                startup("python -c pass", code="pass")]


def startup(command: str, *arguments: str, code: str = "", times: int = 5) -> Row:
    """The least time of several starts; `code` is run in place of graphtool."""
    call = [sys.executable, *(["-c", code] if code else ["-m", "graphtool", *arguments])]
    least = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        done = subprocess.run(call, env=jobs.environment(), capture_output=True, check=False)
        least = min(least, time.perf_counter() - start)
        if done.returncode:
            return {"command": command, "error": f"exit code {done.returncode}"}
    return {"command": command, "seconds": least}
