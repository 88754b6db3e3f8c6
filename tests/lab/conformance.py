"""Takes each model through the compiler from both front ends, and says how exact the result is."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import jobs, prepare, tables, work
from benchmarks.work import Array, Journal, Row

ROUTES = ("onnx", "torch")
HEAD = ("model", "from", "import", "import s", "nodes", "torch's error", "evaluator", "compiled",
        "cold build s", "cached s", "C bytes")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--redo", action="store_true", help="do again what is in the journal")
    parser.add_argument("--no-evaluator", action="store_true",
                        help="leave the evaluator out, which takes most of the time")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("conformance.jsonl"), lambda r: (r["model"], r["route"]))
    for name in options.models:
        missing = [r for r in ROUTES if options.redo
                   or not covered(journal.rows().get((name, r)), not options.no_evaluator)]
        if not missing or not prepare.ensure(name):
            continue
        for route in missing:
            row = one(name, route, not options.no_evaluator)
            journal.add(row)
            print(line(row), flush=True)
    rows = [journal.rows()[m, r] for m in options.models for r in ROUTES
            if (m, r) in journal.rows()]
    work.results("conformance.json").write_text(json.dumps(rows, indent=1) + "\n")
    work.results("conformance.md").write_text(report(rows, options.command_line))
    print("\n" + report(rows, options.command_line))
    print(f"{work.results('conformance.md')} and conformance.json written")
    return sum("error" in row for row in rows)


def covered(row: Row | None, evaluator: bool) -> bool:
    """Whether a row has all that is asked for, or says why it has not."""
    return row is not None and ("error" in row or not evaluator or "evaluator_error" in row)


def one(name: str, route: str, evaluator: bool = True) -> Row:
    """A model by one route, compiled in a process whose compiler cache is empty at first."""
    with tempfile.TemporaryDirectory(prefix="graphtool-bench-") as folder:
        row = jobs.run("tests.lab.conformance", "check", name, route, folder, evaluator,
                       env={"XDG_CACHE_HOME": folder}, timeout=1800)
    return {"model": name, "route": route, **row, **work.stamp()}


def report(rows: list[Row], command: str = "") -> str:
    if not rows:
        return "Nothing was checked.\n"
    first = rows[-1]
    failures = [f"* {r['model']} from {r['route']}: {r['error']}" for r in rows if "error" in r]
    return "\n".join([
        "# From a model to compiled C, by both front ends", "",
        f"{first['date']}, {first['cpu']}, {first['cores']} cores"
        + (f"; command: `{command}`" if command else "") + ". Errors are the largest difference "
        "from torch in float64 over the largest output; torch's own error in float32 stands beside "
        "them. Build times are whole: import, passes, lowering, C compiler and packed weights.",
        "", tables.markdown(HEAD, [cells(r) for r in rows]), *failures]) + "\n"


def line(row: Row) -> str:
    """A row for whoever watches."""
    pairs = zip(HEAD[2:], cells(row)[2:], strict=True)
    return f"{row['model']} from {row['route']}: " + ", ".join(f"{h} {c}" for h, c in pairs) + (
        f"; {row['error']}" if "error" in row else "")


def cells(row: Row) -> list[str]:
    number, error = tables.number, tables.error
    bad = "error" in row
    return [row["model"], row["route"], "FAILED" if bad and "nodes" not in row else "ok",
            number(row.get("import_s")), str(row.get("nodes", tables.GAP)),
            error(row.get("torch_error")), error(row.get("evaluator_error")),
            error(row.get("compiled_error")), number(row.get("cold_s")),
            number(row.get("cached_s")), str(row.get("c_bytes", tables.GAP))]


# ---- in the process of one model ----------------------------------------------------------------


def check(name: str, route: str, folder: str, evaluator: bool) -> Row:
    """The figures of one row. What fails leaves those before it and an `error`."""
    row: Row = {}
    try:
        _check(row, name, route, Path(folder) / "build", evaluator)
    except Exception as error:
        row["error"] = jobs.short(error)
    return row


def _check(row: Row, name: str, route: str, out: Path, evaluator: bool) -> None:
    from graphtool import interp
    from graphtool.native import runtime
    model = work.prepared(name)
    inputs, want = model.arrays("in"), model.arrays("out64")
    row["torch_error"] = work.error_of(model.arrays("out"), want)
    load = _loader(name, route)
    for kind in ("cold", "cached"):
        start = time.perf_counter()
        module = load()
        imported = time.perf_counter()
        if kind == "cold":
            row |= {"import_s": imported - start, "nodes": len(module.graph.nodes)}
        row |= {f"{k}_{kind}_s": s for k, s in _build(module, out).items()}
        row[f"{kind}_s"] = time.perf_counter() - start
    row["c_bytes"] = sum(p.stat().st_size for p in out.iterdir() if p.suffix in (".c", ".h"))
    errors = []
    for threads in (1, 2):
        compiled = runtime.load(out, threads)
        outputs = compiled.run(_feeds([s.name for s in compiled.inputs], inputs))
        errors.append(work.error_of(list(outputs.values()), want))
    row["compiled_error"] = max(errors)
    if evaluator:
        feeds = _feeds([v.hint for v in module.graph.inputs], inputs)
        row["evaluator_error"] = work.error_of(list(interp.run(module, feeds).values()), want)


def _loader(name: str, route: str) -> Callable[[], Any]:
    """What imports the model; the torch module itself is made before, and not timed."""
    if route == "onnx":
        from graphtool import importers
        return lambda: importers.import_source(str(work.prepared(name).onnx))
    from benchmarks.models.seeded import build
    from graphtool.importers.torch import import_torch
    torch_model, torch_inputs = build(name)
    return lambda: import_torch(torch_model, torch_inputs)


def _build(module: Any, out: Path) -> dict[str, float]:
    from graphtool import optimize
    from graphtool.compile.as_is import build
    start = time.perf_counter()
    optimised = optimize(module, verify=False)
    middle = time.perf_counter()
    build(optimised, out)
    return {"passes": middle - start, "build": time.perf_counter() - middle}


def _feeds(names: list[str], arrays: list[Array]) -> dict[str, Array]:
    return dict(zip(names, arrays, strict=True))
