"""The time to the first result of a program of JAX, from the start of a process.

JAX imports, traces and compiles the function, from the module that defines it; or it reads the
exported program, so that it need not trace. graphtool imports the exported program and evaluates
it, or builds and runs it, or runs what was built before.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphtool
from benchmarks import tables, work
from benchmarks.work import Row
from graphtool.importers.stablehlo import import_text
from graphtool.ir.text import value_names

TIMES = 3  # processes, of which the fastest counts
HEAD = ("program", "JAX: s", "JAX, exported: s", "evaluated: s", "times", "build and run: s",
        "times", "built before: ms", "times")
OURS = ("first_eval", "first_build", "first_c")
_TRACED = """
import pickle, jax
from {module} import {name} as function
with open("args.pickle", "rb") as f:
    args = pickle.load(f)
jax.block_until_ready(jax.jit(function)(*args))
"""
_EXPORTED = """
import jax, numpy as np
with open("p.bin", "rb") as f, np.load("jax.npz") as held:
    args = [held[k] for k in held.files]
    call = jax.export.deserialize(f.read()).call
jax.block_until_ready(call(*args))
"""
_EVALUATED = """
import numpy as np
from graphtool import interp
from graphtool.importers.stablehlo import import_text
module = import_text(open("p.mlir").read())
with np.load("ours.npz") as held:
    interp.run(module, dict(held))
"""
_BUILT = """
import numpy as np, graphtool
from graphtool.importers.stablehlo import import_text
module = import_text(open("p.mlir").read())
graphtool.build(module, "fresh", name="model")
with np.load("ours.npz") as held:
    graphtool.load("fresh").run(dict(held))
"""


def first(fn: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, float]:
    """Seconds to the first result: JAX from the function `fn` of a module and from what it
    exported, graphtool from the text, and the program built before."""
    import jax

    from tests.lab.jaxprograms import given
    leaves, tree = jax.tree.flatten(args)
    flat = [np.asarray(v) for v in leaves]
    types = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in flat]
    made = jax.export.export(jax.jit(lambda *a: jax.tree.leaves(fn(*jax.tree.unflatten(tree, a)))),
                             platforms=["cpu"])(*types)
    kept = [flat[i] for i in made.module_kept_var_idx]
    with tempfile.TemporaryDirectory(prefix="graphtool-first-") as name:
        folder = Path(name)
        text = made.mlir_module()
        (folder / "p.bin").write_bytes(made.serialize())
        (folder / "p.mlir").write_text(text)
        (folder / "args.pickle").write_bytes(pickle.dumps(args))
        np.savez(folder / "jax.npz", *flat)
        module = import_text(text)
        arrays = given(module, kept)
        assert set(arrays) == set(value_names(module.graph)[v] for v in module.graph.inputs)
        np.savez(folder / "ours.npz", **arrays)  # type: ignore[arg-type]
        graphtool.build(module, str(folder / "built"), name="model", exe=True)
        traced = _TRACED.format(module=fn.__module__, name=fn.__name__)
        return {"first_traced": _least([sys.executable, "-c", traced], folder),
                "first_jax": _least([sys.executable, "-c", _EXPORTED], folder),
                "first_eval": _least([sys.executable, "-c", _EVALUATED], folder),
                "first_build": _least([sys.executable, "-c", _BUILT], folder),
                "first_c": _least(["built/model", "ours.npz"], folder)}


def _least(command: Sequence[str], folder: Path) -> float:
    """The least seconds of a few processes, each of which finds nothing built or compiled before,
    but Python's bytecode, as in an installed package."""
    seconds = []
    for i in range(TIMES):
        own = {**os.environ, "XDG_CACHE_HOME": str(folder / f"cache{i}"),
               "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(work.root() / "bytecode"),
               "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
        shutil.rmtree(folder / "fresh", ignore_errors=True)
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, env=own, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def report(rows: Sequence[Row]) -> list[str]:
    """The table of the programs that were timed so."""
    timed = [r for r in rows if all(k in r for k in ("first_traced", "first_jax", *OURS))]
    if not timed:
        return []
    ratios = [[r["first_traced"] / r[k] for k in OURS] for r in timed]
    lines = [[r["op"], f"{r['first_traced']:.2f}", f"{r['first_jax']:.2f}",
              f"{r['first_eval']:.2f}", f"{a:.1f}", f"{r['first_build']:.2f}", f"{b:.1f}",
              f"{r['first_c'] * 1e3:.1f}", f"{c:.0f}"]
             for r, (a, b, c) in zip(timed, ratios, strict=True)]
    return ["## Time to the first result", "",
            "From the start of a process to the result of the forward pass, the least of "
            f"{TIMES} processes, no library or object of an earlier one being used. The times are "
            "those of the first column over ours.", "",
            "* *JAX*: imports jax and what the forward pass needs besides (flax or equinox; optax "
            "only trains), traces, compiles and runs the function. The parameters are read from a "
            "file, not initialised.",
            "* *JAX, exported*: imports jax, reads what jax.export wrote, compiles and runs it, "
            "without a trace.",
            "* *evaluated*: graphtool reads the text that jax.export wrote and evaluates it.",
            "* *build and run*: graphtool reads the text, builds with no object in its cache, and "
            "runs the library.",
            "* *built before*: the program that `build --exe` made runs.", "",
            f"Beside JAX {_means(timed, 'first_traced')}; beside JAX that reads the export "
            f"{_means(timed, 'first_jax')} (geometric means of *evaluated*, *build and run*, "
            "*built before*).", "",
            tables.markdown(HEAD, lines), ""]


def _means(rows: Sequence[Row], of: str) -> str:
    """The geometric means over the programs of a column over ours, and the least."""
    columns = [[r[of] / r[k] for r in rows] for k in OURS]
    means = ", ".join(f"{float(np.exp(np.mean(np.log(c)))):.1f}" for c in columns)
    return f"{means} times as fast, the least {', '.join(f'{min(c):.1f}' for c in columns)}"
