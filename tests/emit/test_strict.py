"""Emitted C under strict compilers and sanitizers; what a library may ask of its host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.native import compiler
from graphtool.native.compiler import BASE
from graphtool.target import named
from tests.compilers import run_compiler
from tests.emit.samples import awkward, mixture
from tests.lower.compiling import compiled, faults

HOST = {"malloc", "calloc", "realloc", "free", "printf", "puts", "fprintf", "exit", "abort",
        "pthread_create", "fopen", "__assert_fail"}
HOSTILE = ['*/ int main(void){} /*', 'a"b\\', "??/", "x\ny", "é中", "int", "", "%s%n", "#define A",
           "a" * 3000, "\x00nul"]


def strict(module: Module, path: Path, cc: str, march: str, *flags: str) -> None:
    """Every C file of the module compiles without a warning."""
    if shutil.which(cc) is None:
        pytest.skip(f"{cc} is not installed")
    for name, text in emit(lower(module, named(march, threads=4))).items():
        (path / name).write_text(text)
    wide = [] if march == "generic" else [f"-march={march}"]
    files = sorted(p.name for p in path.glob("*.c"))
    done = run_compiler([cc, *PLAIN, "-O1", "-Werror", *wide, *flags, "-c", *files], path)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.part(2)
@pytest.mark.parametrize(("step", "each"), [(28, 5), pytest.param(14, 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("cc", "march", "flags"), [
    ("gcc", "x86-64-v3", ("-fopenmp",)), ("gcc", "generic", ()),
    ("clang", "x86-64", ("-fopenmp-simd", "-DGT_OPENMP_SIMD")), ("clang", "x86-64-v3", ())])
def test_no_warnings(cc: str, march: str, flags: tuple[str, ...], step: int,
                     each: int, tmp_path: Path) -> None:
    if shutil.which(cc) is None:  # before the modules are made
        pytest.skip(f"{cc} is not installed")
    for n, module in enumerate((mixture(march, step, each=each)[0], awkward(march),
                                awkward(march, symbolic=True))):
        (tmp_path / str(n)).mkdir()
        strict(module, tmp_path / str(n), cc, march, *flags)


def named_all(name: str) -> Module:
    """A small module in which everything that has a name or a place has this one."""
    graph = trace(lambda x: o.tanh(o.exp(x)), [TensorType(dtypes.float32, (4,))], [name])
    nodes, seen = [], {graph.inputs[0]: graph.inputs[0]}
    for n in graph.nodes:
        (out,) = n.outputs
        seen[out] = Value(out.type, name)
        ins = tuple(seen[x] for x in n.inputs if isinstance(x, Value))
        nodes.append(Node(n.op, ins, n.attrs, (seen[out],), name))
    return Module(Graph(graph.inputs, tuple(nodes), (seen[graph.outputs[0]],)), (name + "!",))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_reach_the_c_as_comments_only(name: str) -> None:
    plain = emit(lower(named_all("x"), named("generic", threads=1)))
    for file, text in emit(lower(named_all(name), named("generic", threads=1))).items():
        assert uncommented(text) == uncommented(plain[file])


def uncommented(text: str) -> str:
    """The text as a compiler sees it, comments gone."""
    done = subprocess.run(["gcc", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c", "-"],
                          input=text, capture_output=True, text=True, check=True)
    return done.stdout


def test_hostile_names_run(tmp_path: Path) -> None:
    for n, name in enumerate(HOSTILE[:4]):
        out = compiled(named_all(name), tmp_path / str(n)).run({name: np.zeros(4, np.float32)})
        np.testing.assert_allclose(out[name + "!"], np.tanh(1), rtol=1e-6)


def wanted(library: Path) -> set[str]:
    """What a shared library takes from others."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", str(library)],
                            capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines()}


def test_a_library_asks_little_of_its_host(tmp_path: Path) -> None:
    """With threads: memory for them, and the files that say how many; without: nothing."""
    module, _ = mixture(step=50, each=6)
    build(module, tmp_path / "m")
    build(module, tmp_path / "alone", threads_by="none")
    assert wanted(tmp_path / "m" / "libmodel.so") & HOST <= {"calloc", "free", "pthread_create",
                                                             "fopen"}
    assert not wanted(tmp_path / "alone" / "libmodel.so") & HOST
    shown = subprocess.run(["nm", "-D", "--defined-only", str(tmp_path / "m" / "libmodel.so")],
                           capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in shown.splitlines()} == {
        f"model_{f}" for f in ("run", "arena_bytes", "status_text", "load", "free")}


CHILD = """
import sys, numpy as np
from graphtool.native import runtime
model = runtime.load(sys.argv[1], threads=1)
with np.load(sys.argv[2]) as z:
    out = model.run({spec.name: z[k].view(spec.dtype.numpy)  # numpy's files do not know bfloat16
                     for spec, k in zip(model.inputs, z.files)})
np.savez(sys.argv[3], *out.values())
"""
# without it the -O0 of SANITIZED, which stands before these flags, has no effect
PLAIN = tuple(f for f in BASE if f != "-O3")
SANITIZED = "gcc -fsanitize=address,undefined -fno-sanitize-recover=all -O0 -g0"


@pytest.mark.parametrize("what", [
    "cases", pytest.param("graphs", marks=pytest.mark.slow), "sizes"])
def test_sanitizers_find_nothing(what: str, tmp_path: Path) -> None:
    if what == "cases":
        module, inputs = mixture("x86-64-v3", 36, 5, 6)  # the slow test takes all
    else:
        module = awkward("x86-64-v3", symbolic=what == "sizes")
        inputs = made_up.random_inputs(module, 0, {"B": 3, "T": 5} if what == "sizes" else None)
    sanitized(module, inputs, "x86-64-v3", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("march", ["native", "x86-64-v3", "x86-64", "generic"])
@pytest.mark.parametrize("start", range(12))
def test_sanitizers_find_nothing_anywhere(start: int, march: str, tmp_path: Path) -> None:
    sanitized(*mixture(march, 12, start), march, tmp_path)


def sanitized(module: Module, inputs: Mapping[str, Any], march: str, tmp_path: Path) -> None:
    """Compiled for addresses and undefined behaviour to be watched, the module runs and agrees."""
    asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                          text=True).stdout.strip()
    if not os.path.isabs(asan):
        pytest.skip("gcc has no libasan")
    with patch.object(compiler, "BASE", PLAIN):
        build(module, tmp_path / "m", cc=SANITIZED, target=named(march), threads_by="none")
    np.savez(tmp_path / "in.npz", *inputs.values())
    done = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "m"),
                           str(tmp_path / "in.npz"), str(tmp_path / "out.npz")],
                          env={**os.environ, "LD_PRELOAD": asan, "ASAN_OPTIONS": "detect_leaks=0"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    want = interp.run(module, inputs)
    with np.load(tmp_path / "out.npz") as z:
        got = {k: z[f].view(w.dtype) for f, (k, w) in zip(z.files, want.items(), strict=True)}
    assert faults(got, want) == []
