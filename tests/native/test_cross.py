"""Compiled for other machines and systems, and run by an emulator where there is one: the
evaluator's results."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.analysis import made_up
from graphtool.emit.project import Project, config_files, readme
from graphtool.errors import InputError
from graphtool.io import npz
from graphtool.native import compiler, runtime
from graphtool.native.systems import LINUX, MACOS, WASM, WINDOWS, System, here, system_of
from graphtool.target import named
from tests.passes.pass_samples import SAMPLES

COMPILERS = {"zig": f"{sys.executable} -m ziglang cc -target aarch64-linux-musl",
             "gcc": "aarch64-linux-gnu-gcc"}
INSTALLED = {"zig": find_spec("ziglang") is not None,
             "gcc": shutil.which("aarch64-linux-gnu-gcc") is not None}
ROOT = "/usr/aarch64-linux-gnu"  # where Debian's cross libraries lie


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-user is not installed")
@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("cc", sorted(COMPILERS))
def test_arm(cc: str, name: str, tmp_path: Path) -> None:
    if not INSTALLED[cc]:
        pytest.skip(f"{COMPILERS[cc]} is not installed")
    built = graphtool.build(SAMPLES[name], tmp_path / "b", target="armv8-a", cc=COMPILERS[cc],
                            exe=True)
    xs = made_up.random_inputs(SAMPLES[name], 1)
    npz.save(xs, tmp_path / "in.npz")
    subprocess.run(["qemu-aarch64", "-L", ROOT, str(built / "model"), str(tmp_path / "in.npz"),
                    "-o", str(tmp_path / "out.npz")], check=True, capture_output=True)
    for key, want in interp.run(SAMPLES[name], xs).items():
        np.testing.assert_allclose(npz.load(tmp_path / "out.npz")[key], want, rtol=1e-4, atol=1e-5)


# target: the file of its library, what that begins with, the emulator of its program
SYSTEMS = {"aarch64-linux": ("libsmall.so", b"\x7fELF", "qemu-aarch64"),
           "armv7-linux": ("libsmall.so", b"\x7fELF", "qemu-arm"),
           "riscv64-linux": ("libsmall.so", b"\x7fELF", "qemu-riscv64"),
           "x86_64-windows": ("small.dll", b"MZ", "wine"),
           "aarch64-macos": ("libsmall.dylib", b"\xcf\xfa\xed\xfe", ""),
           "wasm32": ("small.wasm", b"\0asm", ""),
           "wasm32-relaxed": ("small.wasm", b"\0asm", ""),
           "wasm32-threads": ("small.wasm", b"\0asm", "")}
ROOTS = {"armv7-linux": "/usr/arm-linux-gnueabihf", "riscv64-linux": "/usr/riscv64-linux-gnu"}


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED["zig"], reason="ziglang is not installed")
@pytest.mark.parametrize("target", sorted(SYSTEMS))
def test_a_target_in_one_word(target: str, tmp_path: Path) -> None:
    file, begin, emulator = SYSTEMS[target]
    module, root = SAMPLES["convnet"], ROOTS.get(target, ROOT)
    runs = bool(emulator and shutil.which(emulator)) and (
        emulator == "wine" or Path(root).is_dir())
    built = graphtool.build(module, tmp_path / "b", name="small", target=target, exe=runs)
    assert (built / file).read_bytes().startswith(begin)
    if target != f"{platform.machine()}-{platform.system().lower()}":
        with pytest.raises(InputError, match="GT2203"):
            runtime.load(built)
    if not runs:
        return
    xs = made_up.random_inputs(module, 1)
    npz.save(xs, tmp_path / "in.npz")
    program = [emulator, "small.exe"] if emulator == "wine" else [emulator, "-L", root, "./small"]
    subprocess.run([*program, str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")],
                   cwd=built, check=True, capture_output=True)
    for key, want in interp.run(module, xs).items():
        np.testing.assert_allclose(npz.load(tmp_path / "out.npz")[key], want, rtol=1e-4, atol=1e-5)


THREADED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <windows.h>
#include <tlhelp32.h>
#include "net.h"
static int threads(void)
{
    THREADENTRY32 one = {.dwSize = sizeof one};
    const HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    int count = 0;
    for (BOOL more = Thread32First(all, &one); more; more = Thread32Next(all, &one))
        count += one.th32OwnerProcessID == GetCurrentProcessId();
    return count;
}
int main(void)
{
    static float x[512 * 64], y[512 * 10], z[512 * 10];
    const int64_t dims[] = {512};
    for (int i = 0; i < 512 * 64; i++) x[i] = (float)(i * 37 % 101) * 0.01f;
    net_weights weights;
    int status = net_load(&weights, "gr\xc3\xb6\xc3\x9f" "e.safetensors");
    void *arena = _aligned_malloc(net_arena_bytes(dims), 64);
    status |= net_run(weights.data, arena, dims, (const void *[]){x}, (void *[]){y}, 1);
    const int before = threads();
    for (int n = 0; n < 20; n++) {
        status |= net_run(weights.data, arena, dims, (const void *[]){x}, (void *[]){z}, 3);
        status |= memcmp(y, z, sizeof y) != 0;
    }
    printf("%d %d\n", status, threads() - before);
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("wine") and shutil.which("x86_64-w64-mingw32-gcc")),
                    reason="wine or MinGW-w64 is not installed")
def test_windows_has_threads_and_names_in_utf8(tmp_path: Path) -> None:
    cc = "x86_64-w64-mingw32-gcc"
    built = graphtool.build(graphtool.import_model("samples/digits.onnx"), tmp_path / "b", cc=cc,
                            name="net", target="x86_64-windows", precision="strict")
    (built / "net.safetensors").rename(built / "größe.safetensors")
    (built / "user.c").write_text(THREADED)
    subprocess.run([cc, "user.c", "net.lib", "-o", "user.exe"], cwd=built, check=True)
    ran = subprocess.run(["wine", "user.exe"], cwd=built, capture_output=True, text=True)
    assert ran.stdout == "0 2\n", ran.stderr


@pytest.mark.parametrize(("command", "system"), [
    ("zig cc -target x86_64-windows-gnu", WINDOWS), ("x86_64-w64-mingw32-gcc", WINDOWS),
    ("python -m ziglang cc -target aarch64-macos", MACOS), ("zig cc -target wasm32-wasi", WASM),
    ("clang --target=arm64-apple-darwin22", MACOS), ("aarch64-linux-gnu-gcc-12", LINUX),
    ("cc", here()), ("gcc-12", here())])
def test_a_command_names_its_system(command: str, system: System) -> None:
    assert system_of(tuple(command.split())) is system


def test_another_system_is_compiled_by_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler, "version_of", lambda command: "1")
    monkeypatch.setattr(compiler, "supports", lambda *_, **__: True)
    row = named("riscv64-linux")
    assert compiler.find(None, row).command == (sys.executable, *row.cross.split()[1:])
    assert compiler.find("other -target x", row).command == ("other", "-target", "x")
    monkeypatch.setenv("CC", "mine -target y")
    assert compiler.find(None, row).command == ("mine", "-target", "y")


def test_a_library_of_another_machine_is_not_loaded(tmp_path: Path) -> None:
    built = graphtool.build(SAMPLES["convnet"], tmp_path / "b")
    manifest = json.loads((built / "build.json").read_text())
    other = "aarch64-macos" if platform.machine() == "x86_64" else "x86_64-windows"
    (built / "build.json").write_text(json.dumps(manifest | {"target": other}))
    library = bytearray((built / manifest["library"]).read_bytes())
    library[18] ^= 0xff  # the machine in an ELF header
    (built / manifest["library"]).write_bytes(library)
    with pytest.raises(InputError, match=f"the library is for {other}"):
        runtime.load(built)


def test_projects_of_other_systems() -> None:
    dll = config_files(Project("net", "net.dll", library_at="../lib"))
    assert 'IMPORTED_IMPLIB "${CMAKE_CURRENT_LIST_DIR}/../lib/net.lib"' in dll["netConfig.cmake"]
    assert "rpath" not in dll["net.pc"] + readme(Project("net", "net.dll"), (), trains=False)
    assert config_files(Project("net", "net.wasm")) == {}
    assert "package DIR --as npm" in readme(Project("net", "net.wasm"), (), trains=False)
