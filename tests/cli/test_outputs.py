"""Where `-o` may point: devices, pipes, open files, folders, a full disk. One error, nothing half
written, and no file beside what is no file."""

from __future__ import annotations

import json
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphtool.ir import serial
from tests.cli.conftest import DIGITS, Cli

LINES = {
    "import": f"import {DIGITS} --no-check", "opt": "opt {g}", "jvp": "jvp {g}", "vmap": "vmap {g}",
    "grad": "grad {g} --loss cross_entropy --optimizer sgd", "quantise": "quantise {g}",
    "lower": "lower {o}", "draw": "draw {g} --format svg", "view": "view {g}",
    "export": "export {g}",
    "stablehlo": "export {g} --format stablehlo", "eval": "eval {g} --random",
    "external": "export {g} --external-data", "schema": "schema build",
    "arguments": "export {g} --format stablehlo --weights arguments",
    "tokenizer": "tokenizer train {g} --size 300"}
FOLDERS = {"build": "build {g}", "emit": "emit {g}", "repro": "repro {g}"}


@pytest.fixture(scope="module")
def optimised(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from graphtool import optimize
    path = tmp_path_factory.mktemp("optimised") / "o.graph.json"
    serial.save(optimize(serial.load(folder / "digits.graph.json")), path)
    return path


def words(line: str, folder: Path, optimised: Path) -> list[str]:
    return [w.format(g=folder / "digits.graph.json", o=optimised) for w in line.split()]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system refuses to write more than so many bytes into a file, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("verb", [
    pytest.param(v, marks=pytest.mark.slow) if v == "quantise" else v for v in LINES])
def test_a_full_disk(verb: str, gt: Cli, folder: Path, optimised: Path, tmp_path: Path) -> None:
    """As a device, and as a file that cannot grow; a folder in its place is refused too."""
    given = words(LINES[verb], folder, optimised)
    before = set(os.listdir("/dev"))
    full = gt(*given, "-o", "/dev/full")
    assert full.code == 3 and full.err.count("error[") == 1 and "GT0330" in full.err
    assert set(os.listdir("/dev")) == before
    with files_of_at_most(64):
        cut = gt(*given, "-o", tmp_path / "out.json")
    assert cut.code == 3 and "GT0330" in cut.err and list(tmp_path.iterdir()) == []
    assert gt(*given, "-o", tmp_path).code == 3 and list(tmp_path.iterdir()) == []
    assert gt(*given, "-o", tmp_path / "none" / "x.json").code == 3


@pytest.mark.compiled
@pytest.mark.parametrize("verb", FOLDERS)
def test_a_folder_that_cannot_be(verb: str, gt: Cli, folder: Path, optimised: Path, tmp_path: Path
                                 ) -> None:
    given = words(FOLDERS[verb], folder, optimised)
    full = gt(*given, "-o", "/dev/full")
    assert full.code == 3 and full.err.count("error[") == 1
    with files_of_at_most(64):
        cut = gt(*given, "-o", tmp_path / "out")
    assert cut.code in (3, 5) and cut.err.count("error[") == 1, cut.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["pipe", "fifo", "open file"])
def test_a_whole_graph_goes_into_what_is_no_file(kind: str, gt: Cli, folder: Path, tmp_path: Path
                                                 ) -> None:
    path, got = tmp_path / "out", list[bytes]()
    if kind == "fifo":
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
        out = str(path)
    else:
        if kind == "pipe":
            end, begin = os.pipe()
        else:
            begin = os.open(path, os.O_RDWR | os.O_CREAT)
            end = os.open(path, os.O_RDONLY)
        out = f"/dev/fd/{begin}"

        def read() -> None:
            with os.fdopen(end, "rb") as file:
                got.append(file.read())
        reader = threading.Thread(target=read)
    if kind != "open file":
        reader.start()
    done = gt("opt", folder / "digits.graph.json", "--passes", "dce", "-o", out)
    if kind != "fifo":
        os.close(begin)
    if kind == "open file":
        reader.start()
    reader.join(60)
    assert done.code == 0, done.err
    assert serial.loads(got[0]).graph.nodes and "sha256:" not in json.dumps(
        json.loads(got[0])["params"])
    assert {p.name for p in tmp_path.iterdir()} <= {"out"}


def test_a_pipe_without_a_reader(gt: Cli, folder: Path) -> None:
    end, begin = os.pipe()
    os.close(end)
    done = gt("opt", folder / "digits.graph.json", "-o", f"/dev/fd/{begin}")
    os.close(begin)
    assert done.code == 3 and "Broken pipe" in done.err
