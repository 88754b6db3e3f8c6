"""The directory of a repro: it agrees where the C is right, and names a kernel where it is not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.cli.faults import run
from graphtool.dtypes import float32
from graphtool.errors import UnsupportedError
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Symbol, dim_of
from graphtool.target import named
from graphtool.verify.repro import write_repro
from tests.cli.conftest import DIGITS, Cli, gt  # noqa: F401  (a fixture)
from tests.passes.pass_samples import SAMPLES, module

TARGET = named("x86-64", 1)
CC = os.environ.get("CC", "cc")


def made(folder: Path) -> subprocess.CompletedProcess[str]:
    """The directory moved elsewhere, compiled and run, without graphtool."""
    moved = folder.rename(folder.with_name("moved"))
    return subprocess.run(["make", "-s", "-C", str(moved), f"CC={CC}", "CFLAGS=-O1 -Wall -Werror"],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(SAMPLES)[::4])
def test_right_code_agrees(name: str, tmp_path: Path) -> None:
    try:
        write_repro(SAMPLES[name], made_up.random_inputs(SAMPLES[name], 0), tmp_path / "r", TARGET)
    except UnsupportedError as error:
        assert error.code == "GT3142"
        return
    done = made(tmp_path / "r")
    assert done.returncode == 0 and "FAIL" not in done.stdout, done


def wrong(folder: Path, old: str, new: str, file: str = "*_kernels0.c") -> None:
    for path in folder.glob(file):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


def test_the_first_wrong_kernel_is_named(tmp_path: Path) -> None:
    m = module(lambda x: o.tanh(o.matmul(o.sin(x), x) * 3.0), "f32[8,8]", names=["x"])
    found = write_repro(m, made_up.random_inputs(m, 0), tmp_path / "r", TARGET)
    assert found.steps == 2 and found.outputs == 1
    wrong(tmp_path / "r", "3.0f", "3.5f")
    done = made(tmp_path / "r")
    assert done.returncode == 2 and "Error 1" in done.stderr  # of make
    assert re.search(r"ok +sin.*\n +FAIL tanh", done.stdout)
    assert "the first that differs: tanh" in done.stdout


@pytest.mark.part(2)
@pytest.mark.parametrize("cc", ["gcc", "clang", "g++", "clang++"])
def test_another_compiler(cc: str, tmp_path: Path) -> None:
    """It builds the same directory anew, with the flags that it knows."""
    if not shutil.which(cc):
        pytest.skip(f"there is no {cc}")
    m = module(lambda x: o.tanh(o.matmul(o.sin(x), x) * 3.0), "f32[8,8]", names=["x"])
    write_repro(m, made_up.random_inputs(m, 0), tmp_path / "r", TARGET)
    (tmp_path / "r" / "repro").write_text("of another machine")
    path = tmp_path / "r" / "Makefile"
    path.write_text(re.sub("^FLAGS =", "FLAGS = -fno-thread-jumps -fno-such-flag", path.read_text(),
                           flags=re.MULTILINE))
    done = subprocess.run(["make", "-s", "-C", tmp_path / "r", f"CC={cc}"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "ok   tanh" in done.stdout


def test_a_fault_of_the_whole_is_told_apart(tmp_path: Path) -> None:
    m = module(lambda x: o.tanh(o.matmul(o.sin(x), x) * 3.0), "f32[8,8]", names=["x"])
    write_repro(m, made_up.random_inputs(m, 0), tmp_path / "r", TARGET)
    wrong(tmp_path / "r", "3.0f", "3.5f", "model_kernels0.c")
    done = made(tmp_path / "r")
    assert done.returncode == 2
    assert "every kernel alone is right: a pass, or the plan of memory, is not" in done.stdout


@pytest.mark.parametrize("kind", ["f64", "f16", "bf16", "i32", "u8", "bool"])
def test_element_types(kind: str, tmp_path: Path) -> None:
    def fn(x: object) -> object:
        return o.eq(x, x) if kind == "bool" else o.add(x, x)
    m = module(fn, f"{kind}[5]", names=["x"])
    write_repro(m, made_up.random_inputs(m, 0), tmp_path / "r", TARGET)
    assert made(tmp_path / "r").returncode == 0


def test_open_sizes_weights_and_names(gt: Cli, tmp_path: Path) -> None:  # noqa: F811
    result = gt("repro", DIGITS, "--dim", "batch=3", "-o", tmp_path / "r", "--march", "x86-64")
    assert result.code == 0 and "6 kernels and 1 outputs to compare" in result.out
    done = made(tmp_path / "r")
    assert done.returncode == 0 and "ok   logits" in done.stdout
    wrongly = tmp_path / "moved" / "steps0.bin"
    wrongly.write_bytes(wrongly.read_bytes()[:100])
    rerun = subprocess.run([tmp_path / "moved" / "repro"], cwd=tmp_path / "moved",
                           capture_output=True, text=True, check=False)
    assert rerun.returncode == 2 and "cannot read steps0.bin" in rerun.stderr


@pytest.mark.compiled
def test_sizes_of_a_run_are_refused(gt: Cli, tmp_path: Path) -> None:  # noqa: F811
    n = dim_of(Symbol("n", 0, 5, None))
    m = module(lambda x: o.nonzero(x, size=n), "f32[5]", names=["x"])
    with pytest.raises(UnsupportedError, match="no directory"):
        write_repro(m, {"x": np.ones(5, np.float32)}, tmp_path / "r", TARGET)
    assert not (tmp_path / "r").exists()


def test_check_and_reduce_leave_one(gt: Cli, tmp_path: Path) -> None:  # noqa: F811
    m = module(lambda x: o.tanh(o.sin(x) * 3.0), "f32[8]", names=["x"])
    serial.save(m, tmp_path / "a.graph.json")
    text = (tmp_path / "a.graph.json").read_text()
    (tmp_path / "b.graph.json").write_text(text.replace('"op": "sin"', '"op": "cos"'))
    result = gt("check", tmp_path / "a.graph.json", tmp_path / "b.graph.json", "--repro",
                tmp_path / "r")
    assert result.code == 1 and (tmp_path / "r" / "Makefile").exists() and "make -C" in result.err
    done = made(tmp_path / "r")  # the kernels do what b says, which is not what a says
    assert done.returncode == 2 and done.stdout.count("FAIL") == 1
    assert "FAIL" in done.stdout.partition("the model as it is built")[2]
    assert gt("check", tmp_path / "a.graph.json", tmp_path / "a.graph.json", "--repro",
              tmp_path / "none").code == 0
    assert not (tmp_path / "none").exists()
    result = gt("reduce", tmp_path / "a.graph.json", "-o", tmp_path / "s.graph.json", "--command",
                "grep -q sin {graph} && exit 1; exit 0", "--repro", tmp_path / "small")
    assert result.code == 0 and (tmp_path / "small" / "repro.c").exists()


def test_a_model_beside_its_build(gt: Cli, tmp_path: Path) -> None:  # noqa: F811
    """Neither side is a graph; the model is imported for it."""
    assert gt("build", DIGITS, "-o", tmp_path / "b", "--name", "m").code == 0
    result = gt("check", DIGITS, tmp_path / "b", "--atol", "0", "--rtol", "0", "--repro",
                tmp_path / "r")
    assert result.code == 1 and "kernels and 1 outputs to compare" in result.err


@pytest.mark.compiled
def test_a_directory_of_something_else_stays(gt: Cli, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    assert gt("repro", DIGITS, "-o", tmp_path / "mine").code == 3
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Artifacts that compute n sin x, by n."""
    where = tmp_path_factory.mktemp("sides")
    for n in (3, 4, 5):
        serial.save(module(lambda x, n=n: o.sin(x) * float(n), "f32[8]", names=["x"]),
                    where / f"{n}.graph.json")
    (where / "net.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.sin(x) * 6\nnet = Net()\ninputs = torch.ones(8)\n")
    for words in ("build 4.graph.json -o 4.build", "opt 4.graph.json -o 4f.graph.json",
                  "lower 4f.graph.json -o 4.program.json", "export 5.graph.json -o 5.onnx"):
        assert run([str(where / w) if w[0].isdigit() else w for w in words.split()]) == 0
    return {"3": str(where / "3.graph.json"), "4": str(where / "4.graph.json"),
            "4build": str(where / "4.build"), "4program": str(where / "4.program.json"),
            "5onnx": str(where / "5.onnx"), "6torch": f"{where / 'net.py'}:net"}


@pytest.mark.part(3)
@pytest.mark.parametrize(("a", "b", "expected", "computed"), [
    ("3", "4", 3, 4), ("4", "3", 4, 3), ("3", "6torch", 3, 6), ("6torch", "3", 6, 3),
    ("3", "5onnx", 3, 5), ("5onnx", "6torch", 5, 6),
    ("3", "4build", 3, 3), ("4build", "3", 3, 3), ("4program", "3", 3, 3), ("3", "4program", 3, 3),
    ("4build", "5onnx", 5, 5), ("5onnx", "4build", 5, 5), ("4build", "6torch", 6, 6),
    ("6torch", "4build", 6, 6)])
def test_what_check_takes_as_expected(a: str, b: str, expected: int, computed: int,
                                      gt: Cli, sides: dict[str, str],  # noqa: F811
                                      tmp_path: Path) -> None:
    """The outputs of the first side against the C of the second; those of a build are never
    expected: then both are of the other side, whose C is right."""
    result = gt("check", sides[a], sides[b], "--repro", tmp_path / "r")
    assert result.code == 1 and "make -C" in result.err
    x, y = (np.fromfile(tmp_path / "r" / f"{n}0.bin", np.float32) for n in ("input", "model"))
    np.testing.assert_allclose(y, expected * np.sin(x), rtol=1e-5)
    done = made(tmp_path / "r")
    whole = done.stdout.partition("the model as it is built")[2]
    assert ("FAIL" not in whole) == (expected == computed)
    if expected != computed:
        factor, = re.findall(r"(\S+) expected, (\S+) found", whole)
        assert float(factor[1]) / float(factor[0]) == pytest.approx(computed / expected)


def test_two_builds_leave_none(gt: Cli, sides: dict[str, str], tmp_path: Path) -> None:  # noqa: F811
    assert gt("build", sides["3"], "-o", tmp_path / "b").code == 0
    result = gt("check", sides["4build"], tmp_path / "b", "--repro", tmp_path / "r")
    assert result.code == 1 and "no repro: neither side" in result.err
    assert not (tmp_path / "r").exists()


def test_a_kernel_that_ends_with_a_gather_is_compared(tmp_path: Path) -> None:
    m = module(lambda x, i: o.gather(o.transpose(o.exp(x), perm=(1, 0)), o.reshape(
        i, shape=(3, 1)), axes=(0,)), "f32[8,8]", "i64[3]", names=["x", "i"])
    inputs = {"x": np.ones((8, 8), np.float32), "i": np.array([1, 7, 0])}
    found = write_repro(m, inputs, tmp_path / "r", TARGET)
    assert found.steps >= 1 and found.outputs == 1
    done = made(tmp_path / "r")
    assert done.returncode == 0 and "FAIL" not in done.stdout, done


def test_a_dim_called_like_an_iterator(tmp_path: Path) -> None:
    n = dim_of(Symbol("n", 1, 8))
    graph = trace(lambda x: o.softmax(o.exp(x), axis=1), [TensorType(float32, (n, 4))], ["x"])
    m = Module(graph, ("y",), {"n": Symbol("n", 1, 8)})
    write_repro(m, {"x": np.ones((3, 4), np.float32)}, tmp_path / "r", TARGET)
    done = made(tmp_path / "r")
    assert done.returncode == 0 and "FAIL" not in done.stdout, done
