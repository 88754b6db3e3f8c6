"""Functions of JAX through StableHLO: the evaluator and compiled C beside JAX itself."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphtool
from benchmarks import tables, work
from benchmarks.work import Journal, Row
from graphtool import interp
from graphtool.errors import GraphtoolError
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names

HEAD = ("function", "nodes", "evaluator", "C", "why, or what differs")
Array = np.ndarray[Any, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ops", type=lambda s: s.split(","),
                        help="functions whose names contain one of these")
    parser.add_argument("--eval-only", action="store_true", help="compile nothing")
    parser.add_argument("--redo", choices=("all", "bad"), help="do again what is in the journal")


def main(options: argparse.Namespace) -> int:
    from tests.lab.jax_cases import all_cases
    journal = Journal(work.results("jaxops.jsonl"), lambda r: (r["op"], ""))
    have = journal.rows()
    for case in all_cases():
        old = have.get((case.name, ""))
        wanted = not options.ops or any(o in case.name for o in options.ops)
        kept = old is not None and options.redo != "all" and not (options.redo and bad(old))
        if wanted and not kept:
            row = run(case, not options.eval_only)
            journal.add({**row, **work.stamp()})
            print(" | ".join(line(row)), flush=True)
    rows = list(journal.rows().values())
    work.results("jaxops.md").write_text(report(rows, options.command_line))
    print(f"{work.results('jaxops.md')} written")
    return sum(bad(r) for r in rows)


def bad(row: Row) -> bool:
    """Whether something differs or fails; what is refused by name is not bad."""
    return "differs" in (row["eval"], row["c"]) or "fails" in (row["eval"], row["c"])


def exported(case: Any) -> tuple[str, list[Array], list[Array]]:
    """The text of a case, the arrays that it reads, and JAX's own results."""
    import jax
    types = [jax.tree.map(lambda v: jax.ShapeDtypeStruct(np.shape(v), np.asarray(v).dtype), a)
             for a in case.args]
    jitted = jax.jit(case.fn)
    made = jax.export.export(jitted, platforms=["cpu"])(*types)
    flat = [np.asarray(v) for v in jax.tree.leaves(case.args)]
    want = [np.asarray(v) for v in jax.tree.leaves(jitted(*case.args))]
    return made.mlir_module(), [flat[i] for i in made.module_kept_var_idx], want


def run(case: Any, compiled: bool) -> Row:
    """The row of a case: what the evaluator and C give beside JAX."""
    row: dict[str, Any] = {"op": case.name, "nodes": 0, "eval": "", "c": "", "why": ""}
    began = time.monotonic()
    try:
        text, arrays, want = exported(case)
    except Exception as error:  # a function that this version of JAX does not have, or not so
        return {**row, "eval": "not traced", "why": f"{type(error).__name__}: {error}"[:200]}
    try:
        module = import_text(text)
        row["nodes"] = len(module.graph.nodes)
        names = value_names(module.graph)
        inputs = {names[v]: x for v, x in zip(module.graph.inputs, arrays, strict=True)}
        got = list(interp.run(module, inputs).values())
    except GraphtoolError as error:
        items = "; ".join(f"{i.name}: {i.reason}" for i in getattr(error, "items", ()))
        refused = "refused" if error.exit_code == 4 else "fails"
        return {**row, "eval": refused, "why": (items or error.message)[:300]}
    row["eval"], row["why"] = verdict(got, want, case.tolerance)
    if compiled and row["eval"] == "ok":
        try:
            row["c"], row["why"] = verdict(by_c(module, inputs), want, case.tolerance)
        except GraphtoolError as error:
            row["c"], row["why"] = "refused" if error.exit_code == 4 else "fails", error.message[
                :300]
        except Exception as error:  # a fault of the compiler is a row of the table
            row["c"], row["why"] = "fails", f"{type(error).__name__}: {error}"[:300]
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def by_c(module: Module, inputs: dict[str, Array]) -> list[Array]:
    """The outputs of compiled C."""
    with tempfile.TemporaryDirectory(prefix="graphtool-jaxops-") as folder:
        build = Path(folder) / "build"
        graphtool.build(module, str(build), name="model")
        return list(graphtool.load(str(build)).run(inputs).values())


def verdict(got: Sequence[Array], want: Sequence[Array], tolerance: float) -> tuple[str, str]:
    """`ok`, or `differs` and how."""
    if len(got) != len(want):
        return "differs", f"{len(got)} results for {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return "differs", f"result {i}: {g.dtype}{list(g.shape)} for {w.dtype}{list(w.shape)}"
        if g.dtype.kind in "fV":
            a, b = g.astype(np.float64), w.astype(np.float64)
            scale = max(1.0, float(np.max(np.abs(b), initial=0, where=np.isfinite(b))))
            wide = max(tolerance, 1e-2 if g.dtype.itemsize < 4 else 0)
            wrong = ~np.isclose(a, b, rtol=wide, atol=wide * scale, equal_nan=True)
        else:
            wrong = g != w
        if wrong.any():
            return "differs", (f"result {i}: {int(wrong.sum())} of {g.size}, "
                               f"{g[wrong][0]} for {w[wrong][0]}")
    return "ok", ""


def line(row: Row) -> list[str]:
    return [row["op"], str(row["nodes"]), row["eval"], row["c"] or "–", row["why"].split("\n")[0]]


def report(rows: Sequence[Row], command: str) -> str:
    evaluated = sum(r["eval"] == "ok" for r in rows)
    compiled = [r for r in rows if r["c"]]
    said = (f"`{command}`; functions of JAX, exported by jax.export and imported as StableHLO.\n\n"
            f"Of {len(rows)} functions the evaluator agrees with JAX on {evaluated}, and compiled "
            f"C on {sum(r['c'] == 'ok' for r in compiled)} of the {len(compiled)} that were "
            f"compiled; {sum(r['eval'] == 'refused' for r in rows)} are refused by name.")
    return "\n".join(["# Functions of JAX", "", said, "", tables.markdown(
        HEAD, [line(r) for r in sorted(rows, key=lambda r: str(r["op"]))])])
