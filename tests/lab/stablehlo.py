"""Every operation of StableHLO × types × shapes: the evaluator and compiled C beside XLA."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import graphtool
from benchmarks import tables, work
from benchmarks.work import Journal, Row
from graphtool import interp
from graphtool.errors import GraphtoolError
from graphtool.importers.stablehlo import HANDLERS, import_text
from graphtool.ir.text import value_names
from tests.lab.stablehlo_cases.case import Case

HEAD = ("operation", "cases", "evaluator", "C", "what is refused, or differs")
TOGETHER = 24  # cases in one build
Array = np.ndarray[Any, Any]
Run = Callable[[str, Sequence[Array]], list[Array]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ops", type=lambda s: s.split(","),
                        help="cases whose names contain one of these")
    parser.add_argument("--eval-only", action="store_true", help="compile nothing")
    parser.add_argument("--redo", choices=("all", "bad"), help="do again what is in the journal")


def main(options: argparse.Namespace) -> int:
    from tests.lab.stablehlo_cases import all_cases
    journal = Journal(work.results("stablehlo.jsonl"), lambda r: (r["op"], ""))
    have = journal.rows()
    todo = []
    for case in all_cases():
        old = have.get((case.name, ""))
        wanted = not options.ops or any(o in case.name for o in options.ops)
        kept = old is not None and options.redo != "all" and not (options.redo and bad(old))
        if wanted and not kept:
            todo.append(case)
    for at in range(0, len(todo), TOGETHER):
        for row in done(todo[at:at + TOGETHER], not options.eval_only):
            journal.add({**row, **work.stamp()})
            if row["eval"] != "ok" or row["c"] not in ("ok", ""):
                print(" | ".join(str(row[k]) for k in ("op", "eval", "c", "why")), flush=True)
    rows = list(journal.rows().values())
    work.results("stablehlo.md").write_text(report(rows, options.command_line))
    print(f"{work.results('stablehlo.md')} written")
    return sum(bad(r) for r in rows)


def bad(row: Row) -> bool:
    """Whether something differs or fails; what is refused by name is not bad."""
    return any(row[k] in ("differs", "fails") for k in ("eval", "c"))


def done(cases: Sequence[Case], compiled: bool) -> Iterator[Row]:
    """The rows of some cases, of which those that evaluate are compiled together."""
    rows = {c.name: _row(c) for c in cases}
    wanted = {c.name: _expected(c, rows[c.name]) for c in cases}
    for c in cases:
        if wanted[c.name] is not None:
            _try(rows[c.name], "eval", partial(evaluated, c), wanted[c.name], c)
    ready = [c for c in cases if rows[c.name]["eval"] == "ok"] if compiled else []
    if ready:
        try:
            found = by_c([c for c in ready if c.text.startswith("func.func")])
        except Exception:  # one of them: each is built alone
            found = {}
        for c in ready:
            _try(rows[c.name], "c", partial(_found, found, c), wanted[c.name], c)
    yield from rows.values()


def _found(found: dict[str, list[Array]], case: Case) -> list[Array]:
    return found[case.name] if case.name in found else by_c([case])[case.name]


def _row(case: Case) -> Row:
    return {"op": case.name, "about": case.op, "eval": "", "c": "", "why": ""}


def _expected(case: Case, row: dict[str, Any]) -> list[Array] | None:
    if case.expected is not None:
        return list(case.expected)
    try:
        return by_xla(case.text, case.inputs)
    except Exception as error:  # what XLA's parser or its CPU does not take
        row["eval"], row["why"] = "no reference", str(error).strip().split("\n")[0][:200]
        return None


def _try(row: dict[str, Any], key: str, run: Callable[[], list[Array]], want: Any, case: Case
         ) -> None:
    try:
        row[key], row["why"] = verdict(run(), want, case)
    except GraphtoolError as error:
        items = "; ".join(f"{i.name}: {i.reason}" for i in getattr(error, "items", ()))
        row[key] = "refused" if error.exit_code == 4 else "fails"
        row["why"] = (items or error.message)[:300]
    except Exception as error:  # a fault of the compiler is a row of the table
        row[key], row["why"] = "fails", f"{type(error).__name__}: {error}"[:300]


def parts(arrays: Sequence[Array]) -> list[Array]:
    """The arrays with both parts in place of each complex one."""
    return [p for x in arrays for p in ((x.real.copy(), x.imag.copy()) if x.dtype.kind == "c"
                                        else (x,))]


def evaluated(case: Case) -> list[Array]:
    module = import_text(case.text)
    names = value_names(module.graph)
    given = zip(module.graph.inputs, parts(case.inputs), strict=True)
    return list(interp.run(module, {names[v]: x for v, x in given}).values())


def by_c(cases: Sequence[Case]) -> dict[str, list[Array]]:
    """The outputs of compiled C by the names of cases, which are one program."""
    text = cases[0].text if len(cases) == 1 else together(cases)
    counts = [sum(2 if "complex" in t else 1 for t in signature(c.text)[1]) for c in cases]
    module = import_text(text)
    names = value_names(module.graph)
    arrays = parts([x for c in cases for x in c.inputs])
    given = {names[v]: x for v, x in zip(module.graph.inputs, arrays, strict=True)}
    with tempfile.TemporaryDirectory(prefix="graphtool-stablehlo-") as folder:
        build = Path(folder) / "build"
        graphtool.build(module, str(build), name="model")
        made = iter(graphtool.load(str(build)).run(given).values())
        return {c.name: [np.array(next(made)) for _ in range(n)]
                for c, n in zip(cases, counts, strict=True)}


def together(cases: Sequence[Case]) -> str:
    """A program that calls the functions of all cases, each with inputs of its own."""
    texts, calls, takes, gives, results = [], [], [], [], []
    for i, c in enumerate(cases):
        kinds, outs = signature(c.text)
        texts.append(c.text.replace("func.func public @main(", f"func.func private @f{i}(", 1))
        names = [f"%i{i}_{j}" for j in range(len(kinds))]
        takes += [f"{n}: {t}" for n, t in zip(names, kinds, strict=True)]
        several = len(outs) > 1
        calls.append(f"  %o{i}{f':{len(outs)}' if several else ''} = func.call @f{i}("
                     f"{', '.join(names)}) : ({', '.join(kinds)}) -> ({', '.join(outs)})")
        results += [f"%o{i}#{j}" if several else f"%o{i}" for j in range(len(outs))]
        gives += outs
    return "\n".join([
        f"func.func public @main({', '.join(takes)}) -> ({', '.join(gives)}) {{", *calls,
        f"  return {', '.join(results)} : {', '.join(gives)}\n}}", *texts])


def signature(text: str) -> tuple[list[str], list[str]]:
    """The types of arguments and results of @main."""
    from graphtool.importers.stablehlo.text.parser import parse
    f = parse(text).functions["main"]
    return [str(a.kind) for a in f.arguments], [str(r.kind) for r in f.results]


def by_xla(text: str, inputs: Sequence[Array]) -> list[Array]:
    """The results of XLA's compiler for the CPU."""
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir
    jax.config.update("jax_enable_x64", True)
    client = jax.devices("cpu")[0].client
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        module.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
        made = compiler.backend_compile_and_load(
            client, module, devices,
            compiler.get_compile_options(num_replicas=1, num_partitions=1), [])
    return parts([np.asarray(x) for x in made.execute([jax.device_put(x) for x in inputs])])


def verdict(got: Sequence[Array], want: Sequence[Array], case: Case) -> tuple[str, str]:
    """`ok`, or `differs` and how."""
    if len(got) != len(want):
        return "differs", f"{len(got)} results for {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return "differs", f"result {i}: {g.dtype}{list(g.shape)} for {w.dtype}{list(w.shape)}"
        if g.dtype.kind == "f" or (g.dtype.kind == "V" and "float" in g.dtype.name):
            a, b = g.astype(np.float64), w.astype(np.float64)
            scale = float(np.max(np.abs(b), initial=0, where=np.isfinite(b) & (np.abs(b) < 1e6)))
            wide = {2: 1e-2, 1: 0.13}.get(g.dtype.itemsize, case.tolerance)
            wrong = ~np.isclose(a, b, rtol=wide, atol=wide * max(scale, 1e-3), equal_nan=True)
        else:
            wrong = np.asarray(g != w)
        if wrong.any():
            return "differs", (f"result {i}: {int(wrong.sum())} of {g.size}, "
                               f"{g[wrong][0]} for {w[wrong][0]}")
    return "ok", ""


def report(rows: Sequence[Row], command: str) -> str:
    about: dict[str, list[Row]] = defaultdict(list)
    for r in rows:
        about[r["about"]].append(r)
    judged = [r for r in rows if r["eval"] != "no reference"]
    compiled = [r for r in judged if r["c"]]
    lines = []
    for op, own in sorted(about.items()):
        told = Counter(r["why"].split("\n")[0] for r in own if r["why"])
        lines.append([op, str(len(own)), str(sum(r["eval"] == "ok" for r in own)),
                      str(sum(r["c"] == "ok" for r in own)),
                      "; ".join(f"{w[:90]} ({n})" for w, n in told.most_common(2))])
    never = sorted(n for n in HANDLERS if n.startswith(("stablehlo.", "chlo.")) and not any(
        o in (n, n.removeprefix("stablehlo.")) for o in about))
    said = (f"`{command}`; each case is an operation in a program of its own, on one element type "
            f"and shape, beside XLA's own result on the CPU.\n\nOf {len(judged)} cases the "
            f"evaluator agrees on {sum(r['eval'] == 'ok' for r in judged)}, compiled C on "
            f"{sum(r['c'] == 'ok' for r in compiled)} of the {len(compiled)} that were compiled; "
            f"{sum(r['eval'] == 'refused' for r in judged)} are refused by name.")
    return "\n".join(["# Operations of StableHLO", "", said, "", tables.markdown(HEAD, lines), "",
                      f"Without a case of their own: {', '.join(never)}.", ""])
