"""graphtool on systems other than this one: without locks, forks and folders that can be opened."""

from __future__ import annotations

import ast
import ctypes
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphtool.errors import CompilerError, InputError
from graphtool.io import host
from graphtool.io.directory import replacing
from graphtool.native import compiler
from graphtool.native.systems import MACOS, WINDOWS, here
from graphtool.target import named
from graphtool.verify.budget import deadline
from tests.test_layering import FILES, ROOT


def test_windows_refuses_nothing_that_graphtool_does(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.windows", str(tmp_path)],
                          cwd=ROOT.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "b", "g.graph.json", "g.safetensors", "mine", "y.npz"]
    assert (tmp_path / "mine" / "main.c").read_text() == "mine"


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "fcntl", None)
    monkeypatch.setattr(sys, "platform", "win32")


def test_a_directory_that_was_moved_away_comes_back_without_locks(windows: None, tmp_path: Path
                                                                  ) -> None:
    with replacing(tmp_path / "m") as work:
        (work / "build.json").write_text("1")
    (tmp_path / "m").rename(tmp_path / ".m.abcdefgh.old")  # and the writer was killed
    with pytest.raises(KeyError), replacing(tmp_path / "m"):
        raise KeyError
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_windows_maps_no_file_that_may_be_replaced(windows: None) -> None:
    assert isinstance(host.contents(Path(__file__)).obj, bytes)


def test_macos_exchanges_by_its_own_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: list[tuple[object, ...]] = []

    def swap(*args: object) -> int:
        called.append(args)
        return 0
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(renamex_np=swap))
    assert host.exchange(tmp_path / "a", tmp_path / "b")
    assert called[0][:2] == (str(tmp_path / "a").encode(), str(tmp_path / "b").encode())


@pytest.mark.parametrize(("system", "variables", "folder"), [
    ("linux", {}, "/own/.cache"), ("linux", {"XDG_CACHE_HOME": "/x"}, "/x"),
    ("darwin", {}, "/own/Library/Caches"),
    ("win32", {"LOCALAPPDATA": "/local"}, "/local"), ("win32", {}, "/own/.cache")])
def test_where_the_cache_is(system: str, variables: dict[str, str], folder: str,
                            monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/own", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    assert host.cache_folder() == Path(folder)


def test_a_path_of_windows_is_one_word(windows: None) -> None:
    command = r'"C:\Program Files\zig\zig.exe" cc -target x86_64-windows-gnu'
    assert host.words(command) == [r"C:\Program Files\zig\zig.exe", "cc", "-target",
                                   "x86_64-windows-gnu"]


@pytest.mark.parametrize(("name", "system", "library"), [
    ("Darwin", MACOS, "libnet.dylib"), ("Windows", WINDOWS, "net.dll")])
def test_libraries_of_a_system(name: str, system: object, library: str,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: name)
    assert here() is system and here().library.format("net") == library
    assert not named("x86-64").foreign


def test_a_compiler_with_the_flags_of_msvc_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler.shutil, "which", lambda name, **_: name)
    monkeypatch.setattr(compiler, "version_of", lambda command: "1")
    monkeypatch.setattr(compiler, "supports", lambda command, *flags, **_: command[0] == "clang")
    assert compiler.find(None, named("x86-64")).command == ("clang",)
    with pytest.raises(CompilerError, match="GT2120"):
        compiler.find("clang-cl", named("x86-64"))


def test_a_deadline_needs_no_signal_of_posix() -> None:
    with pytest.raises(InputError, match="GT3045"), deadline(1, "it"):
        while True:
            time.sleep(0.01)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        with deadline(60, "it"), pytest.raises(KeyboardInterrupt):
            ctypes.pythonapi.PyErr_SetInterrupt()
            time.sleep(1)
    finally:
        signal.signal(signal.SIGINT, before)


def test_texts_name_their_encoding() -> None:
    """Windows has another encoding, and writes other ends of lines."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                word, keywords = node.func.attr, {k.arg for k in node.keywords}
                at = f"{path}:{node.lineno}"
                assert word != "write_text", f"{at}: write_bytes(text.encode())"
                assert word != "read_text" or node.args or keywords, f'{at}: read_text("utf-8")'
                assert word != "run" or "text" not in keywords, f'{at}: encoding="utf-8"'
