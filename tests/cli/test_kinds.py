"""What a file is: by its first bytes, then by its name, and the same answer from every verb."""

from __future__ import annotations

import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool.errors import GraphtoolError
from graphtool.importers import what
from tests.cli.conftest import DIGITS, Cli

HEADER = b'{"x": {}}'
FILES = {  # name: its bytes, the kind
    "m.py": (b"x = 1\n", "source"), "w.safetensors": (struct.pack("<Q", 9) + HEADER, "weights"),
    "w.onnx": (struct.pack("<Q", 9) + HEADER, "weights"), "lib.so": (b"\x7fELF\2\1", "library"),
    "lib.onnx": (b"\x7fELF\2\1", "library"), "x.npy": (b"\x93NUMPY\1\0", "arrays"),
    "empty": (b"", "empty"), "e.onnx": (b"", "empty"), "e.graph.json": (b"", "empty"),
    "p.onnx": (b"version https://git-lfs.github.com/spec/v1\n", "pointer"),
    "s.pkl": (b"\x80\4K\1.", "pickle"), "t.tgz": (b"\x1f\x8b\x08", "archive"),
    "log.jsonl": (b"{}\n", "log"), "a.json": (b'{"format": "graphtool/graph"}', "graph"),
    "a.txt": (b'{"format": "graphtool/program"}', "program"), "b.json": (b"{}", "json"),
    "any": (b"words", "other"), "m.mlir": (b"module {}", "stablehlo"),
    "m.txt": (b"\nmodule {}", "stablehlo"), "m.pt": (b"PK\3\4", "torchscript"),
    "m.jit": (b"PK\3\4", "torchscript"),
    "m.graph.json": (b"{", "graph"), "m.gt": (b"return x\n", "graph")}
FOREIGN = {"source", "weights", "library", "arrays", "empty", "pointer", "pickle", "archive",
           "log"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    for name, (data, _) in FILES.items():
        (folder / name).write_bytes(data)
    shutil.copy(DIGITS, folder / "digits.bin")
    np.savez(folder / "x", x=np.zeros(2))
    with zipfile.ZipFile(folder / "z.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    (folder / "folder").mkdir()
    return folder


@pytest.mark.parametrize("name", FILES)
def test_each_kind(name: str, made: Path) -> None:
    assert what(str(made / name)).name == FILES[name][1]


@pytest.mark.parametrize(("name", "kind"), [
    ("digits.bin", "onnx"), ("x.npz", "arrays"), ("z.zip", "archive"), ("folder", "directory"),
    ("none", "missing"), ("none.onnx", "onnx"), ("none.gt", "graph"), ("none.so", "library")])
def test_other_kinds(name: str, kind: str, made: Path) -> None:
    assert what(str(made / name)).name == kind


@pytest.mark.parametrize("name", [n for n, (_, kind) in FILES.items() if kind in FOREIGN])
def test_every_verb_says_what_it_is(name: str, made: Path, gt: Cli) -> None:
    path = made / name
    title = what(str(path)).title
    with pytest.raises(GraphtoolError, match="GT0340"):
        graphtool.read(path)
    for verb, code in (("show", "GT0340"), ("build -o /none/out", "GT0340"), ("import", "GT1110"),
                       ("support", "GT3018"), (f"check {DIGITS}", "GT3042")):
        result = gt(*verb.split(), path)
        assert code in result.err and title in result.err and result.out == "", verb


def test_a_model_without_its_suffix(made: Path, gt: Cli) -> None:
    assert gt("show", made / "digits.bin").out == gt("show", DIGITS).out


def test_a_pipe_keeps_its_bytes(tmp_path: Path) -> None:
    import os
    os.mkfifo(tmp_path / "pipe")
    assert what(str(tmp_path / "pipe")).name == "missing"
