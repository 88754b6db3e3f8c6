"""How other build systems find a build: each compiles a program in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from graphtool.compile.as_is import build
from tests.loops.programs import TARGET, program, store

NAME = "convnet"
MAIN = """\
#include "net.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    net_weights w;
    printf("%s\\n", net_status_text(net_load(&w, argc > 1 ? argv[1] : NULL)));
    return 0;
}
"""
kinds = pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "an app"
    folder.mkdir()
    (folder / "app.c").write_text(MAIN)
    return folder


def moved(tmp_path: Path, static: bool) -> Path:
    """A build that was moved after it was made, to a folder with a space in its name."""
    made = build(program(NAME), tmp_path / "b", target=TARGET, static=static, name="net",
                 store=store(NAME))
    return made.rename(tmp_path / "a build")


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True,
                          env={**os.environ, **env}).stdout


def fine(app: Path, program: str, there: Path) -> None:
    assert run(app / program, there / "net.safetensors", cwd=Path("/")) == "it succeeded\n"


def test_the_compiler_alone(app: Path, tmp_path: Path) -> None:
    there = moved(tmp_path, False)
    run("cc", "app.c", f"-I{there}", there / "libnet.so", "-o", "app", cwd=app)
    assert run(app / "app", there / "net.safetensors", cwd=Path("/"),
               LD_LIBRARY_PATH=str(there)) == "it succeeded\n"
    assert "`cc app.c -IDIR -LDIR -lnet" in (there / "README.md").read_text()


@kinds
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_cmake(app: Path, tmp_path: Path, static: bool) -> None:
    there = moved(tmp_path, static)
    (app / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\nfind_package(net 1.0 REQUIRED)\n"
        "add_executable(app app.c)\ntarget_link_libraries(app net::net)\n"
        "file(WRITE weights \"${net_WEIGHTS}\")\n")
    run("cmake", "-B", "out", f"-Dnet_DIR={there}", cwd=app)
    run("cmake", "--build", "out", cwd=app)
    fine(app, "out/app", there)
    assert Path((app / "weights").read_text()).samefile(there / "net.safetensors")


@kinds
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config(app: Path, tmp_path: Path, static: bool) -> None:
    there = moved(tmp_path, static)
    run("sh", "-c", 'eval cc app.c $(pkg-config --cflags --libs net) -o app', cwd=app,
        PKG_CONFIG_PATH=str(there))
    fine(app, "app", there)
    path = run("pkg-config", "--variable=weights", "net", cwd=app, PKG_CONFIG_PATH=str(there))
    assert Path(path.strip().replace("\\ ", " ")).samefile(there / "net.safetensors")
