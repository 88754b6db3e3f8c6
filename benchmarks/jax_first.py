"""The time to the first result of a program of JAX, from the start of a process.

JAX reads the exported program, so that it imports and compiles, but need not trace; graphtool
imports the same program and evaluates it, or builds and runs it, or runs what was built before.
"""

from __future__ import annotations

import os
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
HEAD = ("program", "JAX: s", "evaluated: s", "times", "build and run: s", "times",
        "built before: ms", "times")
OURS = ("first_eval", "first_build", "first_c")
_JAX = """
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
    """Seconds to the first result: JAX, graphtool from the text, and the program built before."""
    import jax

    from benchmarks.jaxprograms import given
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
        np.savez(folder / "jax.npz", *flat)
        module = import_text(text)
        arrays = given(module, kept)
        assert set(arrays) == set(value_names(module.graph)[v] for v in module.graph.inputs)
        np.savez(folder / "ours.npz", **arrays)  # type: ignore[arg-type]
        graphtool.build(module, str(folder / "built"), name="model", exe=True)
        return {"first_jax": _least([sys.executable, "-c", _JAX], folder),
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
    timed = [r for r in rows if all(k in r for k in ("first_jax", *OURS))]
    if not timed:
        return []
    ratios = [[r["first_jax"] / r[k] for k in OURS] for r in timed]
    lines = [[r["op"], f"{r['first_jax']:.2f}", f"{r['first_eval']:.2f}", f"{a:.1f}",
              f"{r['first_build']:.2f}", f"{b:.1f}", f"{r['first_c'] * 1e3:.1f}", f"{c:.0f}"]
             for r, (a, b, c) in zip(timed, ratios, strict=True)]
    means = [float(np.exp(np.mean(np.log([x[i] for x in ratios])))) for i in range(len(OURS))]
    least = [min(x[i] for x in ratios) for i in range(len(OURS))]
    return ["## Time to the first result", "",
            "From the start of a process to the result of the forward pass, the least of "
            f"{TIMES} processes. JAX imports, reads the program that jax.export wrote, compiles "
            "and runs it; it does not trace, which it would have to without that file. graphtool "
            "imports the text and evaluates it; or builds it with no object in its cache, and runs "
            "it; or the program that `build --exe` made runs. Geometric means: "
            f"{means[0]:.1f}, {means[1]:.1f} and {means[2]:.0f} times as fast as JAX, the least "
            f"{least[0]:.1f}, {least[1]:.1f} and {least[2]:.0f}.", "",
            tables.markdown(HEAD, lines), ""]
