"""Builds: the same bytes every time, whole or not at all, and coded errors for what goes wrong."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool.compile.as_is import build
from graphtool.errors import CompilerError, GraphtoolError, InputError, UsageError
from graphtool.io.weights import Weight
from graphtool.native import cache, compiler, runtime
from graphtool.target import named
from tests.emit.samples import layer, moves

TARGET = named("generic", threads=2)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphtool"


BAD_COMPILERS = {  # what the script does besides telling its version
    "writes junk": "for x; do last=$x; done; echo junk > $last",
    "writes nothing": "for x; do last=$x; done; : > $last",
    "makes nothing": "exit 0",
    "says no UTF-8": "printf '\\377\\376 \\200 bad'; printf '\\377\\376 \\200 bad' >&2; exit 1",
    "dies": "kill -9 $$"}


@pytest.mark.parametrize("fault", BAD_COMPILERS)
def test_a_bad_compiler_is_one_error(fault: str, tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text(f"""#!/bin/sh
case "$*" in --version) printf 'bad \\377 1.0\\n'; exit 0;; esac
{BAD_COMPILERS[fault]}
""")
    script.chmod(0o755)
    with pytest.raises(CompilerError) as found:
        build(layer("generic"), tmp_path / "m", target=TARGET, cc=str(script))
    assert found.value.code == "GT2121" and left_behind(tmp_path) == ["cc"]


@pytest.mark.parametrize("command", ["gcc 'x", '"gcc', " ", "gcc \\", "gcc\0"])
def test_a_misquoted_compiler(command: str, tmp_path: Path,
                              monkeypatch: pytest.MonkeyPatch) -> None:
    for cc in (command, None):
        monkeypatch.setenv("CC", command.replace("\0", "'"))
        with pytest.raises(CompilerError) as found:
            build(layer("generic"), tmp_path / "m", target=TARGET, cc=cc)
        assert found.value.code == "GT2127"


def test_a_damaged_object_is_compiled_again(own_cache: Path, tmp_path: Path) -> None:
    first = contents(build(layer("generic"), tmp_path / "a", target=TARGET))
    entries = [p for *_, p in cache.entries()]
    for n, entry in enumerate(entries):
        held = bytearray(entry.read_bytes())
        held[len(held) * n // len(entries)] ^= 64
        entry.write_bytes(held[:len(held) - n % 2])
    assert entries and contents(build(layer("generic"), tmp_path / "b", target=TARGET)) == first


def test_a_changed_file_is_made_again(tmp_path: Path) -> None:
    first = contents(build(layer("generic"), tmp_path / "a", target=TARGET))
    for name in first.keys() - {"build.json"}:
        data = bytearray((tmp_path / "a" / name).read_bytes())
        data[len(data) // 2] ^= 1
        (tmp_path / "a" / name).write_bytes(data)
        if name.endswith((".so", ".safetensors")):
            with pytest.raises(InputError) as found:
                runtime.load(tmp_path / "a", verify=True)
            assert found.value.code == "GT2205" and name in (found.value.where or "")
        assert contents(build(layer("generic"), tmp_path / "a", target=TARGET)) == first
    runtime.load(tmp_path / "a", verify=True)


@pytest.mark.part(3)
@pytest.mark.parametrize("field", ["library", "weights", "header", "files"])
@pytest.mark.parametrize("name", ["../x.so", "/elsewhere/x.so", "", "..", "a/b", "a\\b", "a\0b"])
def test_a_build_names_no_file_elsewhere(field: str, name: str, tmp_path: Path) -> None:
    build(layer("generic"), tmp_path / "a", target=TARGET)
    path = tmp_path / "a" / "build.json"
    document = json.loads(path.read_text())
    document[field] = {name: ""} if field == "files" else name
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as found:
        runtime.load(tmp_path / "a")
    assert found.value.code == "GT2206"


def contents(path: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in path.iterdir()}


def left_behind(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir() if p.name != "cache")


# ---- determinism -------------------------------------------------------------------------------

def test_directory_and_jobs_do_not_show(tmp_path: Path) -> None:
    first = contents(build(layer("generic"), tmp_path / "a", target=TARGET, jobs=1))
    cache.clear()
    assert contents(build(layer("generic"), tmp_path / "b" / "c", target=TARGET, jobs=4)) == first


SCRIPT = """
import hashlib, sys
from graphtool.emit.c import emit
from graphtool.lower import lower
from graphtool.target import named
from tests.emit.samples import awkward
for symbolic in (False, True):
    program = lower(awkward("x86-64-v3", symbolic), named("x86-64-v3", threads=4))
    print(hashlib.sha256(repr(sorted(emit(program).items())).encode()).hexdigest())
"""


def test_hash_seeds_do_not_show() -> None:
    def run(seed: str) -> str:
        return subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                              check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
    assert len({run(seed) for seed in ("0", "1", "77")}) == 1


def test_unchanged_builds_ask_no_compiler(tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    build(layer("generic"), tmp_path / "m", target=TARGET)
    before = (tmp_path / "m" / "libmodel.so").stat().st_mtime_ns

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the compiler was called")
    monkeypatch.setattr(compiler.Compiler, "run", never)
    build(layer("generic"), tmp_path / "m", target=TARGET)
    assert (tmp_path / "m" / "libmodel.so").stat().st_mtime_ns == before


def test_a_damaged_build_is_made_again(tmp_path: Path) -> None:
    build(layer("generic"), tmp_path / "m", target=TARGET)
    (tmp_path / "m" / "libmodel.so").unlink()
    build(layer("generic"), tmp_path / "m", target=TARGET)
    assert (tmp_path / "m" / "libmodel.so").exists()


def test_another_model_takes_the_place_of_the_old(tmp_path: Path) -> None:
    build(layer("generic"), tmp_path / "m", target=TARGET)
    old = runtime.load(tmp_path / "m")
    build(moves("generic"), tmp_path / "m", target=TARGET)
    new = runtime.load(tmp_path / "m")
    x = np.ones((3, 16), np.float32)
    assert old(x0=x)["y0"].shape == (3, 24)
    y = np.ones((3, 40), np.float32)
    assert new(x0=y, x1=y[:2].T.copy())["y0"].shape == (5, 40)
    assert left_behind(tmp_path) == ["m"]


def test_builds_at_once_share_a_cache(tmp_path: Path) -> None:
    graph = layer("generic")
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: build(graph, tmp_path / f"m{n % 3}", target=TARGET),
                             range(6)))
    assert len({str(contents(p)) for p in made}) == 1
    assert left_behind(tmp_path) == ["m0", "m1", "m2"]


# ---- faults ------------------------------------------------------------------------------------

def fails(code: str, path: Path, kind: type[GraphtoolError], **options: Any) -> None:
    """The build ends in this error and leaves nothing in the directory."""
    before = left_behind(path.parent)
    with pytest.raises(kind) as caught:
        build(options.pop("module", None) or layer("generic"), path,
              **{"target": TARGET, **options})
    assert caught.value.code == code
    assert left_behind(path.parent) == before


def test_no_compiler(tmp_path: Path) -> None:
    fails("GT2120", tmp_path / "m", CompilerError, cc="no-such-compiler")


def test_a_compiler_that_fails(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("#!/bin/sh\n[ $1 = --version ] && echo bad 1 && exit 0\n"
                                  "echo 'boom: out of luck' >&2\nexit 1\n")
    (tmp_path / "bad").chmod(0o755)
    fails("GT2121", tmp_path / "m", CompilerError, cc=str(tmp_path / "bad"))


def test_a_compiler_that_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "lazy").write_text("#!/bin/sh\necho lazy 1\nexit 0\n")
    (tmp_path / "lazy").chmod(0o755)
    fails("GT2121", tmp_path / "m", CompilerError, cc=str(tmp_path / "lazy"))


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    fails("GT2112", tmp_path / "file", InputError)
    with pytest.raises(InputError) as caught:
        build(layer("generic"), tmp_path / "file" / "m", target=TARGET)
    assert caught.value.code == "GT0330"


def test_a_foreign_directory_is_kept(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.tex").write_text("years of work")
    fails("GT2112", tmp_path / "m", InputError)
    assert (tmp_path / "m" / "thesis.tex").exists()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(Path, "write_bytes", full)
    fails("GT0330", tmp_path / "m", InputError)


def test_a_disk_that_fills_up_before_the_weights(tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")
    build(moves("generic"), tmp_path / "m", target=TARGET)
    before = contents(tmp_path / "m")
    monkeypatch.setattr("graphtool.io.weights.save", full)
    fails("GT0330", tmp_path / "m", InputError)
    assert contents(tmp_path / "m") == before


def test_a_cache_that_cannot_be_written_is_no_fault(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    assert (build(layer("generic"), tmp_path / "m", target=TARGET) / "build.json").exists()


@pytest.mark.parametrize("name", ["a b", "1x", "x;y", "é", ""])
def test_names_that_c_does_not_take(name: str, tmp_path: Path) -> None:
    fails("GT2110", tmp_path / "m", UsageError, name=name)


def test_weights_that_are_missing(tmp_path: Path) -> None:
    from graphtool.lower import lower
    program, nothing = lower(layer("generic"), TARGET), dict[str, Weight]()
    with pytest.raises(InputError) as caught:
        build(program, tmp_path / "m", target=TARGET, store=nothing)
    assert caught.value.code == "GT2111"


@pytest.mark.parametrize(("made_for", "built_for"), [
    ("x86-64-v3", "generic"),    # 24 vectors of one float across a panel
    ("x86-64-v3", "x86-64-v4"),  # a vector and a half
    ("generic", "x86-64-v4"),    # half a vector
])
def test_weights_packed_for_another_target(made_for: str, built_for: str, tmp_path: Path) -> None:
    fails("GT2004", tmp_path / "m", UsageError, module=layer(made_for), target=named(built_for))


# ---- the cache ---------------------------------------------------------------------------------

def test_the_cache_is_private_and_can_be_cleared(tmp_path: Path, own_cache: Path) -> None:
    build(layer("generic"), tmp_path / "m", target=TARGET)
    assert own_cache.stat().st_mode & 0o077 == 0
    assert cache.entries() and cache.clear() > 0
    assert cache.entries() == []


def test_the_oldest_entries_go_first(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / "x").write_bytes(bytes(100))
        cache.put(f"{n:02}abc", tmp_path / "x")
        entry, = (cache.directory() / f"{n:02}").iterdir()
        os.utime(entry, (1e9 * 1.9 + n, 1e9 * 1.9 + n))
    assert cache.prune(limit=250 + 2 * cache.SUM) == 100 + cache.SUM
    assert [p.stem for *_, p in cache.entries()] == ["01abc", "02abc"]
