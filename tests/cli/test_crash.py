"""What an internal error leaves: a graph, and C that compiles without graphtool, or why not."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
from functools import reduce
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS, Cli
from tests.compilers import run_compiler

CC = os.environ.get("CC", "cc")
C_OPTIONS = ("-O0", "-Wno-unused-function", "-xc")


def broken(name: str, *args: object, gt: Cli, monkeypatch: pytest.MonkeyPatch,
           tmp_path: Path) -> tuple[Path, str]:
    """The directory that a verb leaves if the function of that name fails, and what it said."""
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault")
    (place := tmp_path / "left").mkdir()
    module, attribute = name.split(":")  # a pass hides the module of its name
    *outer, last = attribute.split(".")
    monkeypatch.setattr(reduce(getattr, outer, importlib.import_module(module)), last, fail)
    monkeypatch.setattr("tempfile.tempdir", str(place))
    result = gt(*args)
    assert result.code == 70 and "ZeroDivisionError: a fault" in result.err
    made = next(p for p in place.iterdir() if p.name.startswith("graphtool-crash-"))
    for line in result.err.splitlines()[2:]:
        assert line.removeprefix("  help: ") in (made / "README.txt").read_text()
    return made, result.err


def compiled(folder: Path) -> subprocess.CompletedProcess[str]:
    """The C of a folder, compiled by a bare compiler and run."""
    run_compiler([CC, *C_OPTIONS, *sorted(p.name for p in folder.glob("*.c")), "-xnone", "-o",
                  "it", "-lm", "-lpthread"], folder).check_returncode()
    return subprocess.run(["./it"], cwd=folder, capture_output=True, text=True, check=False)


def words_of(words: str, files: Path, out: Path) -> list[str]:
    return shlex.split(words.format(
        graph=files / "digits.graph.json", inputs=files / "in.npz",
        program=out / "d.program.json", out=out / "out"))


REPRO = [  # the function that fails, the verb, whether the passes fail as well
    ("graphtool.passes.fuse:too_often", "opt {graph}", True),
    ("graphtool.passes.fuse:too_often", "build {graph} -o {out}", True),
    ("graphtool.passes.fold:together", "opt {graph}", True),
    ("graphtool.cli.pipeline:before_after", "opt {graph} --stats", False),
    ("graphtool.compile.build:compile_all", "build {graph} -o {out}", False),
    ("graphtool.compile.build:compile_all", f"build {DIGITS} -o {{out}}", False),
    ("graphtool.verify.check:compare", "check {graph} {graph} --inputs {inputs}", False),
    ("graphtool.verify.reducer:Reducer.run",
     "reduce {graph} --command 'false {{graph}}' -o {out}.graph.json", False),
]


@pytest.mark.part(4)
@pytest.mark.parametrize(("name", "words", "passes"), REPRO, ids=[f"{w} {n}" for n, w, _ in REPRO])
def test_a_repro(name: str, words: str, passes: bool, gt: Cli, folder: Path,
                 monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left, said = broken(name, *words_of(words, folder, tmp_path), gt=gt, monkeypatch=monkeypatch,
                        tmp_path=tmp_path)
    assert "make -C repro" in said and "no C" not in said
    assert ("because they fail" in said) == passes
    done = compiled(left / "repro")
    assert done.returncode == 0 and "ok   logits" in done.stdout and "ok   relu" in done.stdout


def test_of_a_program(gt: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch,
                      tmp_path: Path) -> None:
    """Only its outputs are compared: what its kernels compute has no names."""
    for words in ("opt {graph} -o {out}.graph.json", "lower {out}.graph.json -o {program}"):
        assert gt(*words_of(words, folder, tmp_path)).code == 0
    left, _ = broken("graphtool.compile.build:compile_all",
                     *words_of("build {program} -o {out}", folder, tmp_path), gt=gt,
                     monkeypatch=monkeypatch, tmp_path=tmp_path)
    done = compiled(left / "repro")
    assert done.returncode == 0 and "ok   logits" in done.stdout and "relu" not in done.stdout


def test_of_a_build(gt: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch,
                    tmp_path: Path) -> None:
    assert gt(*words_of("build {graph} -o {out}", folder, tmp_path)).code == 0
    left, said = broken("graphtool.native.runtime:load",
                        *words_of("run {out} --random", folder, tmp_path), gt=gt,
                        monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "out/: the build, with its C" in said and "no C" not in said
    assert compiled(left / "out").returncode == 0


def test_without_an_evaluator(gt: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch,
                              tmp_path: Path) -> None:
    left, said = broken("graphtool.interp:run", *words_of("eval {graph} --random", folder,
                                                          tmp_path),
                        gt=gt, monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "no expected outputs, because the evaluator fails" in said
    assert compiled(left / "c").returncode == 0


FAILS = "no C, because making it fails: ZeroDivisionError"
NO_C = [
    ("graphtool.lower:plan_arena", "build {graph} -o {out}", FAILS),
    ("graphtool.emit.c:header", "emit {graph} -o {out}", FAILS),
    ("graphtool.cli.sources:read", "show {graph}", "no C: the error came before"),
]


@pytest.mark.parametrize(("name", "words", "why"), NO_C, ids=[n for n, _, _ in NO_C])
def test_no_c(name: str, words: str, why: str, gt: Cli, folder: Path,
              monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The text says why; a graph in hand is kept, and the command beside it fails again."""
    left, said = broken(name, *words_of(words, folder, tmp_path), gt=gt, monkeypatch=monkeypatch,
                        tmp_path=tmp_path)
    assert why in said and not (left / "repro").exists()
    if "again: " in said:
        monkeypatch.chdir(left)
        again = said.partition("again: graphtool ")[2].split()
        assert gt(*again).code == 70
        monkeypatch.undo()
        assert gt(*(str(left / w) if w.startswith("stage") else w for w in again[:-1]),
                  tmp_path / "r").code == 0
        assert compiled(tmp_path / "r").returncode == 0
    else:
        assert name == "graphtool.cli.sources:read"


def test_large_weights_are_not_copied(gt: Cli, folder: Path,
                                      monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("graphtool.verify.crash.MOST", 1 << 16)
    left, said = broken("graphtool.compile.build:compile_all",
                        *words_of("build {graph} -o {out}", folder, tmp_path), gt=gt,
                        monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "no C: the model's weights have" in said and not (left / "repro").exists()
