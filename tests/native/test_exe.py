"""`build --exe`: a program that stands alone, reads numpy's files, and says what is wrong."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.dtypes import float32
from graphtool.io import npz
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Equation, Symbol, floordiv, maximum, minimum, mod, symbol
from tests.compilers import run_compiler
from tests.loops.programs import TARGET, optimised
from tests.passes.pass_samples import SAMPLES

SYMBOLIC = "convnet"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(optimised(SYMBOLIC), tmp_path_factory.mktemp("exe") / "b", target=TARGET, exe=True,
                 jobs=2)


def model(built: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(built / "model"), *map(str, args)], capture_output=True, text=True,
                          errors="replace")


def inputs(module: Module) -> dict[str, Any]:
    return made_up.random_inputs(module, 3)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_outputs_equal_the_graphs(name: str, tmp_path: Path) -> None:
    made = build(optimised(name), tmp_path / "b", target=TARGET, exe=True, jobs=2)
    xs = inputs(SAMPLES[name])
    npz.save(xs, tmp_path / "in.npz")
    done = model(made, tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--repeat", 2)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "2 runs" in done.stderr
    with np.load(tmp_path / "out.npz") as got:
        for key, want in interp.run(SAMPLES[name], xs).items():
            np.testing.assert_allclose(got[key], want, rtol=1e-4, atol=1e-5)
            assert got[key].dtype == want.dtype


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_dims_come_from_the_inputs(built: Path, batch: int, tmp_path: Path) -> None:
    x = np.random.default_rng(batch).standard_normal((batch, 4, 6, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    assert model(built, tmp_path / "x.npy", "-o", tmp_path / "y.npy").returncode == 0
    (want,) = interp.run(SAMPLES[SYMBOLIC], {key(): x}).values()
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), want, rtol=1e-4, atol=1e-5)


def key() -> str:
    return SAMPLES[SYMBOLIC].graph.inputs[0].hint


def test_moved_elsewhere_with_its_weights(built: Path, tmp_path: Path) -> None:
    for file in ("model", "model.safetensors"):
        (tmp_path / file).write_bytes((built / file).read_bytes())
    (tmp_path / "model").chmod(0o755)
    np.save(tmp_path / "x.npy", np.ones((2, 4, 6, 6), np.float32))
    done = subprocess.run(["./model", "x.npy", "--threads", "2"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("y0: f4[2,3] ")
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 40)
    done = model(tmp_path, tmp_path / "x.npy")
    assert done.returncode == 3 and "the weights file is cut short" in done.stderr
    done = model(tmp_path, tmp_path / "x.npy", "--weights", tmp_path / "none")
    assert done.returncode == 3 and "none: the weights file cannot be read" in done.stderr


def test_help_names_what_the_model_takes(built: Path) -> None:
    done = model(built, "--help")
    assert done.returncode == 0 and f"input   {key()}: f32[B,4,6,6]" in done.stdout


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


@pytest.mark.parametrize(("array", "complaint"), [
    (ones(2, 4, 6, 6, dtype=np.float64), "f8[2,4,6,6]"), (ones(2, 4, 6), "f4[2,4,6]"),
    (ones(2, 4, 6, 7), "[2,4,6,7]"), (ones(9, 4, 6, 6), "at most 8"),
    (ones(0, 4, 6, 6), "at least 1"), (np.asfortranarray(ones(2, 4, 6, 6)), "Fortran"),
    (ones(2, 4, 6, 6, dtype=">f4"), "big-endian"), (ones(2, 4, 6, 6, dtype=np.complex64), "c8")])
def test_arrays_that_do_not_fit(built: Path, array: Any, complaint: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", array)
    done = model(built, tmp_path / "x.npy")
    assert done.returncode == 3 and complaint in done.stderr


@pytest.mark.parametrize("fill", [lambda r, n: r.standard_normal(n), lambda r, n: np.zeros(n),
                                  lambda r, n: np.arange(n) % 7])
def test_a_compressed_file(built: Path, fill: Any, tmp_path: Path) -> None:
    x = fill(np.random.default_rng(0), 8 * 4 * 36).reshape(8, 4, 6, 6).astype(np.float32)
    np.savez_compressed(tmp_path / "x.npz", **{key(): x})
    np.save(tmp_path / "x.npy", x)
    for file in ("x.npz", "x.npy"):
        done = model(built, tmp_path / file, "-o", tmp_path / f"{file}.out.npy")
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.npz.out.npy").read_bytes() == (tmp_path / "x.npy.out.npy").read_bytes()


@pytest.mark.parametrize(("args", "code"), [
    ([], 2), (["--what", "1"], 2), (["--threads", "many", "x"], 2), (["--repeat"], 2),
    (["missing.npy"], 3), (["nobody=missing.npy"], 3)])
def test_usage(built: Path, args: list[str], code: int) -> None:
    done = model(built, *args)
    assert done.returncode == code and done.stderr


def test_damaged_files_never_crash(built: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    npz.save({key(): ones(2, 4, 6, 6)}, tmp_path / "good.npz")
    np.savez_compressed(tmp_path / "packed.npz", **{key(): rng.random((2, 4, 6, 6), np.float32)})
    files = [(tmp_path / f).read_bytes() for f in ("good.npz", "packed.npz")]
    for trial in range(150):
        good = files[trial % 2]
        data = bytearray(good)
        if trial % 3 == 0:
            del data[rng.integers(len(data)):]
        for at in rng.integers(0, len(data) or 1, trial % 7):
            if at < len(data):
                data[at] = rng.integers(256)
        (tmp_path / "bad.npz").write_bytes(data)
        assert model(built, tmp_path / "bad.npz").returncode in (0, 3)


@pytest.mark.parametrize("std", ["gnu11", "c99", "c17"])
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_the_program_is_free_of_warnings(built: Path, cc: str, std: str, tmp_path: Path) -> None:
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    done = run_compiler([cc, f"-std={std}", "-O1", "-Wall", "-Wextra", "-Werror", "-c",
                         "model_main.c", "-o", str(tmp_path / "main.o")], built)
    assert done.returncode == 0, done.stderr[:2000]


def test_an_input_may_be_named(built: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ones(2, 4, 6, 6))
    assert model(built, f"{key()}={tmp_path / 'x.npy'}").returncode == 0
    done = model(built, f"{key()}={tmp_path / 'x.npy'}", tmp_path / "x.npy")
    assert done.returncode == 2


def sizes_of_all_kinds() -> Module:
    """Outputs whose sizes are a least, a greatest, a quotient and a rest; one must be equal."""
    n, m = symbol("N", 1, 64), symbol("M", 1, 64)
    shapes = (minimum(n, m), maximum(n, m), floordiv(n - m, 3) + 30, mod(n - m, 5) + 1)
    graph = trace(lambda x, y: tuple(o.broadcast(o.reduce_sum(x, axes=(0,)), shape=(d,))
                                     for d in shapes),
                  [TensorType(float32, (n,)), TensorType(float32, (m,))], ["x", "y"])
    rule = Equation(mod(n - m, 2) + floordiv(m - n, 2), floordiv(m - n, 2) + 1)
    return Module(graph, ("a", "b", "c", "d"), {s: Symbol(s, 1, 64) for s in "NM"},
                  requires=(rule,))


def test_sizes_of_all_kinds_are_computed(tmp_path: Path) -> None:
    module = sizes_of_all_kinds()
    made = build(passes.run(module, supply={"target": TARGET}), tmp_path / "b", target=TARGET,
                 exe=True, jobs=2)
    for n, m in ((3, 8), (8, 3), (4, 8)):
        xs = {"x": np.ones(n, np.float32), "y": np.ones(m, np.float32)}
        npz.save(xs, tmp_path / "in.npz")
        done = model(made, tmp_path / "in.npz", "-o", tmp_path / "out.npz")
        if (n - m) % 2 == 0:
            assert done.returncode == 3 and "GT2231" in done.stderr
            continue
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "out.npz") as got:
            for key, want in interp.run(module, xs).items():
                np.testing.assert_array_equal(got[key], want)
