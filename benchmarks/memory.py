"""How much memory compiled models take: the arena beside what lives at once, weights, processes."""

from __future__ import annotations

import argparse
import json

from benchmarks import building, jobs, prepare, stats, tables, work
from benchmarks.models import EXTRA, ZOO
from benchmarks.stats import OURS
from benchmarks.work import Row

MOST = 1.1  # an arena over what lives at once
HEAD = ("model", "parameters MB", "weights MB", "live at once kB", "arena kB", "arena / live",
        "process MB", "with 2 threads MB", "private MB")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(models=[*ZOO, *EXTRA])


def main(options: argparse.Namespace) -> int:
    """How many models fail, or have an arena that is too large."""
    rows = []
    for model in filter(prepare.ensure, options.models):
        rows.append(measured(model))
        print(" ".join(cells(rows[-1])), rows[-1].get("error", ""), flush=True)
    text = report(rows, options.command_line)
    work.results("memory.md").write_text(text)
    print(f"\n{text}\n{work.results('memory.md')} written")
    return sum("error" in row or row["arena"] > MOST * row["live"] for row in rows)


def measured(model: str) -> Row:
    """Bytes of a build, and MB of the processes that load it and run it twice."""
    row: Row = {"model": model, **building.built("peers", model, OURS, 1)}
    if "error" in row:
        return row
    folder = building.case_of("peers", model, OURS, 1).cache / "build"
    manifest = json.loads((folder / "build.json").read_text())
    row |= {"parameters": work.prepared(model).onnx.stat().st_size,
            "weights": manifest["weights_bytes"], "arena": manifest["arena"],
            "live": manifest["live"]}
    for threads in (1, 2):
        found = jobs.run("benchmarks.memory", "process", model, threads)
        if "error" in found:
            return row | found
        row |= {f"peak_{threads}": found["peak_mb"], "private": found["private_mb"]}
    return row


def process(model: str, threads: int) -> Row:
    """Of this process, as a job."""
    from benchmarks.worker import prepare
    return prepare("peers", model, OURS, threads)[1]


def report(rows: list[Row], command: str = "") -> str:
    stamp = work.stamp()
    good = [row for row in rows if "error" not in row]
    over = [row["arena"] / row["live"] for row in good if row["live"]]
    tail = [f"Arena over what lives at once: {max(over):.3f} at most, "
            f"{stats.geometric_mean(over):.3f} in the geometric mean, over {len(over)} models.",
            ""] if over else []
    return "\n".join([
        "# Memory of compiled models", "",
        f"{stamp['date']}, {stamp['cpu']}; float32. Parameters are the ONNX file, weights what is "
        "made of them for the kernels, mapped from a file; what lives at once is the largest sum "
        "of intermediate results that are still to be read; a process is Python, numpy and the "
        "runtime with all of that, at its peak after two runs; private of that is what is not "
        "mapped from a file."
        + (f" Command: `{command}`." if command else ""), "",
        tables.markdown(HEAD, [cells(row) for row in rows]), *tail,
        *(f"* {row['model']}: {row['error']}" for row in rows if "error" in row)])


def cells(row: Row) -> list[str]:
    def scaled(key: str, unit: float) -> str:
        return tables.number(row[key] / unit) if key in row else tables.GAP
    over = row["arena"] / row["live"] if row.get("live") else None
    return [row["model"], scaled("parameters", 1e6), scaled("weights", 1e6), scaled("live", 1e3),
            scaled("arena", 1e3), tables.number(over, 4), scaled("peak_1", 1), scaled("peak_2", 1),
            scaled("private", 1)]
