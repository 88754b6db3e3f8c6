"""Weights in a file, embedded, or spelled out in C: the same results from each."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from graphtool import interp
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.compile.unit import MODES
from graphtool.emit.weights import divided, part_of, whole
from graphtool.errors import UsageError
from graphtool.native import compiler, runtime
from tests.loops.programs import TARGET, optimised, program, store
from tests.passes.pass_samples import SAMPLES

modes = pytest.mark.parametrize("mode", MODES)
NAME = "convnet"


def same(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    for key, w in want.items():
        np.testing.assert_allclose(got[key], w, rtol=1e-4, atol=1e-5)


@modes
def test_through_the_loader(mode: str, tmp_path: Path) -> None:
    path = build(optimised(NAME), tmp_path / "b", target=TARGET, weights=mode, jobs=2)
    assert (path / "model.safetensors").exists() == (mode == "file")
    xs = made_up.random_inputs(SAMPLES[NAME], 1)
    same(runtime.load(path).run(xs), interp.run(SAMPLES[NAME], xs))


@modes
def test_in_an_executable(mode: str, tmp_path: Path) -> None:
    path = build(optimised(NAME), tmp_path / "b", target=TARGET, weights=mode, exe=True, jobs=2)
    assert (path / "model.safetensors").exists() == (mode == "file")
    xs = made_up.random_inputs(SAMPLES[NAME], 1)
    np.savez(tmp_path / "in.npz", **xs)
    subprocess.run([path / "model", tmp_path / "in.npz", "-o", tmp_path / "out.npz"], check=True)
    same(dict(np.load(tmp_path / "out.npz")), interp.run(SAMPLES[NAME], xs))


@modes
def test_static_library_links_into_a_program(mode: str, tmp_path: Path) -> None:
    path = build(program(NAME), tmp_path / "b", target=TARGET, weights=mode, static=True, exe=True,
                 jobs=2, store=store(NAME))
    assert (path / "libmodel.a").exists() and not (path / "libmodel.so").exists()
    openmp = ["-fopenmp"] if compiler.find(None, TARGET).openmp else []
    subprocess.run(["cc", "-shared", "-o", tmp_path / "own.so", "-Wl,--whole-archive",
                    path / "libmodel.a", "-Wl,--no-whole-archive", *openmp, "-lm"], check=True)
    assert ctypes.CDLL(str(tmp_path / "own.so")).model_run


@pytest.mark.parametrize("mode", ["embed", "c"])
def test_the_callers_weights_go_first(mode: str, tmp_path: Path) -> None:
    """Built-in weights are what a null pointer means; another set may be given."""
    path = build(optimised(NAME), tmp_path / "b", target=TARGET, weights=mode, jobs=2)
    m = runtime.load(path)
    xs = made_up.random_inputs(SAMPLES[NAME], 1)
    first = runtime.load(path).run(xs)
    zeros = np.zeros(m.manifest.weights_bytes + 64, np.uint8)
    m._weights = -(-zeros.ctypes.data // 64) * 64
    assert not np.array_equal(next(iter(m.run(xs).values())), next(iter(first.values())))


def test_an_unknown_mode(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="weights cannot be") as found:
        build(optimised(NAME), tmp_path / "b", weights="cloud")
    assert found.value.code == "GT2113"


def test_modes_are_different_builds(tmp_path: Path) -> None:
    keys = {runtime.read_manifest(build(optimised(NAME), tmp_path / "b", target=TARGET, jobs=2,
                                        weights=mode)).key for mode in MODES}
    assert len(keys) == len(MODES)


def test_parts_cut_no_weight() -> None:
    spans = [(0, 100), (128, 700), (704, 3000), (3008, 3010), (3072, 3500)]
    parts = divided(NAME, spans, 1000)
    assert [(p.start, p.end) for p in parts] == [(0, 700), (704, 3000), (3008, 3500)]
    assert all(part_of(parts, a).start <= a and b <= part_of(parts, a).end for a, b in spans)
    assert whole(NAME, 0) == () and part_of(whole(NAME, 10), 0).end == 10
