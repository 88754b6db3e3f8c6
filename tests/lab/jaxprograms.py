"""Whole programs of JAX: forward, gradient and training step beside JAX, and their speed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from math import exp, log
from typing import Any

import numpy as np

import graphtool
from benchmarks import tables, work
from benchmarks.work import Journal, Row
from graphtool import interp
from graphtool.errors import GraphtoolError
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Graph, Module
from graphtool.ir.text import value_names
from graphtool.transforms.reverse import grad
from tests.lab import jax_first
from tests.lab.jaxops import verdict
from tests.lab.stablehlo import parts

HEAD = ("program", "part", "nodes", "evaluator", "C", "our gradient", "1 thread: ms", "JAX",
        "times", "2 threads: ms", "JAX", "times", "why, or what differs")
ROUNDS, SECONDS = 21, 0.004
Array = np.ndarray[Any, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", type=lambda s: s.split(","), help="programs named so")
    parser.add_argument("--redo", choices=("all", "bad", "speed"), help="do again what is known")
    parser.add_argument("--first", action="store_true",
                        help="time how long the first result takes, and nothing else")
    parser.add_argument("--threads", type=int, help="time on so many threads, and nothing else")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("jaxprograms.jsonl"), lambda r: (r["op"], r["part"]))
    if options.threads:
        return speeds(options, journal)
    if options.first:
        return firsts(options, journal)
    from tests.lab.jax_programs import all_programs
    have = journal.rows()
    for p in all_programs():
        for part, fn, args in tasks(p):
            old = have.get((p.name, part))
            wanted = not options.only or any(o in p.name for o in options.only)
            if wanted and (old is None or options.redo == "all" or (options.redo and bad(old))):
                row = checked(p, part, fn, args)
                journal.add({**row, **work.stamp()})
                print(" | ".join(line(row)), flush=True)
    for what in (("--threads", "1"), ("--threads", "2"), ("--first",)):
        again = [sys.executable, "-m", "tests.lab", "jaxprograms", *what,
                 *(["--redo", "speed"] if options.redo else []),
                 *(["--only", ",".join(options.only)] if options.only else [])]
        subprocess.run(again, check=True)
    rows = list(Journal(work.results("jaxprograms.jsonl"),
                        lambda r: (r["op"], r["part"])).rows().values())
    work.results("jaxprograms.md").write_text(report(rows, options.command_line))
    return sum(bad(r) for r in rows)


def bad(row: Row) -> bool:
    return any(row[k] in ("differs", "fails") for k in ("eval", "c", "ours"))


def tasks(p: Any) -> list[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """What is done of a program: name, function, arguments."""
    import jax
    out: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [("forward", p.forward, p.args)]
    if p.loss is not None:
        args = (p.args[0], *(p.batch or p.args[1:]))
        out.append(("gradient", jax.value_and_grad(p.loss), args))
    if p.step is not None:
        out.append(("step", p.step, (*p.state, *p.batch)))
    return out


def exported(fn: Any, args: tuple[Any, ...]) -> tuple[str, list[Array], list[int]]:
    """The text of a function, the arrays that it reads, and which of all arrays these are."""
    import jax
    types = jax.tree.map(lambda v: jax.ShapeDtypeStruct(np.shape(v), np.asarray(v).dtype), args)
    made = jax.export.export(jax.jit(fn), platforms=["cpu"])(*types)
    flat = [np.asarray(v) for v in jax.tree.leaves(args)]
    kept = list(made.module_kept_var_idx)
    return made.mlir_module(), [flat[i] for i in kept], kept


def given(module: Module, arrays: Sequence[Array]) -> dict[str, Array]:
    names = value_names(module.graph)
    return {names[v]: x for v, x in zip(module.graph.inputs, parts(arrays), strict=True)}


def checked(p: Any, part: str, fn: Any, args: tuple[Any, ...]) -> Row:
    """The row of one part: the evaluator, C and our own gradient beside JAX."""
    import jax
    row: dict[str, Any] = {"op": p.name, "part": part, "nodes": 0, "eval": "", "c": "",
                           "ours": "", "why": ""}
    text, arrays, _ = exported(fn, args)
    want = parts([np.asarray(v) for v in jax.tree.leaves(jax.jit(fn)(*args))])

    def attempt(key: str, run: Callable[[], list[Array]], expected: Sequence[Array]) -> None:
        try:
            row[key], why = verdict(run(), expected, p.tolerance)
        except GraphtoolError as error:
            items = "; ".join(f"{i.name}: {i.reason}" for i in getattr(error, "items", ()))
            row[key] = "refused" if error.exit_code == 4 else "fails"
            why = (items or error.message)[:300]
        except Exception as error:  # a fault of the compiler is a row of the table
            row[key], why = "fails", f"{type(error).__name__}: {error}"[:300]
        row["why"] = row["why"] or why

    def evaluated() -> list[Array]:
        module = import_text(text)
        row["nodes"] = len(module.graph.nodes)
        return list(interp.run(module, given(module, arrays)).values())

    def compiled() -> list[Array]:
        module = import_text(text)
        with tempfile.TemporaryDirectory(prefix="graphtool-jaxprograms-") as folder:
            graphtool.build(module, f"{folder}/build", name="model")
            return [np.array(x) for x in graphtool.load(f"{folder}/build").run(
                given(module, arrays)).values()]
    attempt("eval", evaluated, want)
    if row["eval"] == "ok":
        attempt("c", compiled, want)
    if part == "gradient" and row["eval"] == "ok":
        attempt("ours", lambda: our_gradient(p, args), want)
    return row


def our_gradient(p: Any, args: tuple[Any, ...]) -> list[Array]:
    """The loss, and its gradients by the leaves of the first argument, made by graphtool."""
    import jax
    module, inputs, kept = own_gradient(p, args)
    value, *slopes = interp.run(module, inputs).values()
    leaves = jax.tree.leaves(args[0])
    used = [i for i in range(len(leaves)) if i in kept]
    found = iter(slopes[-len(used):])
    return [value, *(next(found) if i in kept else np.zeros_like(x) for i, x in enumerate(leaves))]


def own_gradient(p: Any, args: tuple[Any, ...]) -> tuple[Module, dict[str, Array], list[int]]:
    """The graph of the loss and its gradients that graphtool makes, its inputs, and which of all
    arrays these are."""
    import jax
    text, arrays, kept = exported(p.loss, args)
    module = import_text(text)
    first = len(jax.tree.leaves(args[0]))
    wrt = [module.graph.inputs[i] for i, at in enumerate(kept) if at < first]
    graph: Graph = grad(module.graph, 0, wrt)
    names = tuple(f"o{i}" for i in range(len(graph.outputs)))
    return Module(graph, names), given(module, arrays), kept


# ---- speed -------------------------------------------------------------------------------------

def speeds(options: argparse.Namespace, journal: Journal) -> int:
    """Time every part that is right in C on these cores, JAX and graphtool in turns."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    from tests.lab.jax_programs import all_programs
    have = journal.rows()
    key = f"ms{options.threads}"
    for p in all_programs():
        for part, fn, args in tasks(p):
            row = have.get((p.name, part))
            wanted = not options.only or any(o in p.name for o in options.only)
            if wanted and row is not None and row["c"] == "ok" and (
                    key not in row or options.redo):
                ours, theirs, ratio = measured(fn, args, options.threads)
                journal.add({**row, key: ours, f"jax{options.threads}": theirs,
                             f"times{options.threads}": ratio})
                print(f"{p.name} {part}: {ours:.3f} ms, JAX {theirs:.3f} ms, {ratio:.2f} times",
                      flush=True)
    return 0


def firsts(options: argparse.Namespace, journal: Journal) -> int:
    """Time the first result of every forward pass that is right in C, each in fresh processes."""
    from tests.lab.jax_programs import all_programs
    have = journal.rows()
    for p in all_programs():
        row = have.get((p.name, "forward"))
        wanted = not options.only or any(o in p.name for o in options.only)
        if wanted and row is not None and row["c"] == "ok" and (
                "first_traced" not in row or options.redo):
            found = jax_first.first(p.forward, p.args)
            journal.add({**row, **found})
            print(f"{p.name}: " + ", ".join(f"{k} {v:.3f} s" for k, v in found.items()), flush=True)
    return 0


def measured(fn: Any, args: tuple[Any, ...], threads: int) -> tuple[float, float, float]:
    """Median milliseconds of graphtool and of JAX, and the median of the ratios of the turns."""
    import jax
    text, arrays, _ = exported(fn, args)
    module = import_text(text)
    inputs = given(module, arrays)
    jitted, placed = jax.jit(fn), jax.device_put(args)
    with tempfile.TemporaryDirectory(prefix="graphtool-jaxprograms-") as folder:
        graphtool.build(module, f"{folder}/build", name="model")
        model = graphtool.load(f"{folder}/build", threads=threads)
        out = model.run(inputs)

        def ours() -> object:
            return model.run(inputs, out=out)

        def theirs() -> object:
            return jax.block_until_ready(jitted(*placed))
        counts = []
        for run in (ours, theirs):
            run()
            began = time.perf_counter()
            run()
            counts.append(max(1, int(SECONDS / max(time.perf_counter() - began, 1e-7))))
        a, b = [], []
        for _ in range(ROUNDS):
            a.append(_turn(ours, counts[0]))
            b.append(_turn(theirs, counts[1]))
    ratios = sorted(y / x for x, y in zip(a, b, strict=True))
    return float(np.median(a)), float(np.median(b)), ratios[len(ratios) // 2]


def _turn(run: Callable[[], object], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - began) / count * 1e3


# ---- the page ----------------------------------------------------------------------------------

def line(row: Row) -> list[str]:
    def number(key: str, digits: int) -> str:
        return f"{row[key]:.{digits}f}" if key in row else "–"
    timed = [v for t in (1, 2) for v in (number(f"ms{t}", 3), number(f"jax{t}", 3),
                                         number(f"times{t}", 2))]
    return [row["op"], row["part"], str(row["nodes"]), row["eval"], row["c"] or "–",
            row["ours"] or "–", *timed, row["why"].split("\n")[0]]


def report(rows: Sequence[Row], command: str) -> str:
    from graphtool import machines
    said = [f"`{command}`; {len({r['op'] for r in rows})} programs, exported by jax.export, "
            f"on {machines.model()}. JAX and graphtool run in turns on the same cores; the "
            "ratio is the median of those of the turns.", ""]
    for t in (1, 2):
        ratios = [r[f"times{t}"] for r in rows if f"times{t}" in r]
        if ratios:
            mean = exp(sum(map(log, ratios)) / len(ratios))
            said.append(f"* {t} thread{'s' if t > 1 else ''}: {mean:.2f} times as fast as JAX "
                        f"(geometric mean of {len(ratios)}), {sum(x < 1 for x in ratios)} below "
                        f"1, the least {min(ratios):.2f}.")
    right = [sum(r[k] == "ok" for r in rows) for k in ("eval", "c")]
    own = [r for r in rows if r["ours"]]
    said += [f"* Right: the evaluator {right[0]} of {len(rows)} parts, compiled C {right[1]}; our "
             f"own gradient of the imported loss {sum(r['ours'] == 'ok' for r in own)} of "
             f"{len(own)}.", ""]
    return "\n".join(["# Programs of JAX", "", *said, tables.markdown(
        HEAD, [line(r) for r in rows]), "", *jax_first.report(rows)])
