"""The compiler: what an object depends on, and how foreign machines and archivers are named."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from graphtool.errors import CompilerError
from graphtool.native import compiler
from graphtool.native.compiler import Compiler, archiver, crosses, march_flags
from graphtool.target import named

ZIG = ("python", "-m", "ziglang", "cc")


@pytest.mark.parametrize(("command", "ar"), [
    (("gcc",), ("ar",)), (("/usr/bin/cc", "-m64"), ("ar",)), (("no-such-machine-gcc",), ("ar",)),
    (("zig", "cc"), ("zig", "ar")), ((*ZIG, "-target", "x"), (*ZIG[:3], "ar"))])
def test_archivers(command: tuple[str, ...], ar: tuple[str, ...]) -> None:
    assert archiver(command) == ar


def test_a_cross_compilers_own_archiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "arm-linux-ar"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert archiver(("arm-linux-gcc",)) == ("arm-linux-ar",)


@pytest.mark.parametrize(("words", "answer"), [
    ((), False), (("-target", "aarch64-linux-gnu"), True), (("--target=riscv64",), True),
    (("-DTARGET",), False)])
def test_cross_commands(words: tuple[str, ...], answer: bool) -> None:
    assert crosses(("clang", *words)) == answer


def test_objects_depend_on_command_and_machine() -> None:
    made = Compiler(("zig", "cc"), "1", ("-O3",), False, "avx2")
    others = [Compiler(("zig", "cc", "-target", "x"), "1", ("-O3",), False, "avx2"),
              Compiler(("zig", "cc"), "1", ("-O3",), False, "sse2"),
              Compiler(("zig", "cc"), "1", ("-O2",), False, "avx2"),
              Compiler(("zig", "cc"), "2", ("-O3",), False, "avx2")]
    assert len({c.identity for c in (made, *others)}) == 5


def test_native_means_this_machine() -> None:
    assert compiler.find(None, named("native")).machine
    assert not compiler.find(None, named("generic")).machine


@pytest.mark.parametrize(("knows", "march", "flags"), [
    ("-march=x86-64-v3", "x86-64-v3", "-march=x86-64-v3"),
    ("-mcpu=x86_64_v3", "x86-64-v3", "-mcpu=x86_64_v3"), ("", "armv8-a", None)])
def test_zigs_names_of_machines(knows: str, march: str, flags: str | None,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "supports", lambda _, *found: " ".join(found) == knows)
    cross = (*ZIG, "-target", "some-linux-musl")  # of another machine, or of this one
    assert next(iter(march_flags(named(march), cross)), None) == flags


@pytest.mark.parametrize(("knows", "march", "flags"), [
    ("-march=x86-64-v4 -mprefer-vector-width=512", "x86-64-v4", "-march=x86-64-v4"),
    ("-mcpu=x86_64_v3", "x86-64-v3", "-mcpu=x86_64_v3"), ("", "x86-64", None)])
@pytest.mark.parametrize("openmp", [False, True])
def test_each_spelling_is_tried(knows: str, march: str, flags: str | None, openmp: bool,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a usual compiler too, such as one that spells machines as zig does."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(compiler, "supports", lambda _, *found: " ".join(found) == (
        "-fopenmp " * openmp + knows) and bool(knows))
    assert next(iter(march_flags(named(march), ("cc",))), None) == flags


def test_what_a_wrapper_knows(tmp_path: Path) -> None:
    """A real compiler that refuses -march=x86-64-v2 and takes -mcpu, made of the one here."""
    cc = tmp_path / "mine-cc"
    cc.write_text("""#!/bin/sh
for a in "$@"; do
    case $a in -march=*) echo "unknown $a" >&2; exit 1;; -mcpu=x86_64_v2) ;; *) set -- "$@" "$a";;
    esac
    shift
done
exec cc "$@"
""")
    cc.chmod(0o755)
    found = compiler.find(str(cc), replace(named("x86-64-v2"), machines=()))
    assert "-mcpu=x86_64_v2" in found.flags and "-march=x86-64-v2" not in found.flags
    (tmp_path / "a.c").write_text("int f(void) { return 1; }")
    assert found.compile(tmp_path / "a.c", "").is_file()


def test_a_usual_compiler_that_knows_no_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(compiler, "supports", lambda *_: False)
    with pytest.raises(CompilerError, match="GT2124"):
        march_flags(named("x86-64-v4"), ("cc",))


def test_an_unknown_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "supports", lambda *_: False)
    with pytest.raises(CompilerError) as found:
        march_flags(named("native"), (*ZIG, "-target", "aarch64-linux-gnu"))
    assert found.value.code == "GT2124"


def test_libgomp_is_no_part_of_what_does_not_use_it(tmp_path: Path) -> None:
    """Some linkers keep every library that they are given."""
    if shutil.which("gcc") is None or shutil.which("readelf") is None:
        pytest.skip("gcc and readelf")
    found = compiler.find("gcc -Wl,--no-as-needed", named("x86-64-v2"))
    (tmp_path / "a.c").write_text("int f(void) { return 1; }")
    (tmp_path / "b.c").write_text("#include <omp.h>\nint g(void) { return omp_get_max_threads(); }")
    for name, wanted in (("a", False), ("b", found.openmp)):
        found.link([found.compile(tmp_path / f"{name}.c", "")], tmp_path / f"{name}.so")
        said = subprocess.run(["readelf", "-d", tmp_path / f"{name}.so"], capture_output=True,
                              text=True, check=True).stdout
        assert ("libgomp" in said) == wanted
