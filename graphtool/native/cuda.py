"""The compiler of CUDA: nvcc where it is installed, else the library NVRTC, which PyPI has too.

Neither needs a device. What they make of one text for one architecture is kept in the cache.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cache as once
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphtool.errors import CompilerError
from graphtool.io import release
from graphtool.native import cache
from graphtool.native.probes import TEXT, run

STANDARD = ("stdint.h", "math.h", "stddef.h", "string.h")  # headers that NVRTC has no files of
Image = tuple[str, int, bool, str, str]  # as emit/language.py has it


@dataclass(frozen=True, slots=True)
class Nvcc:
    """The command of a CUDA toolkit."""

    command: str
    version: str

    def compile(self, source: Path, machine: str, text: bool, to: Path, _: str = "") -> None:
        """Compile a .cu file in its folder, for one architecture or to PTX."""
        how = ["-ptx" if text else "-cubin", f"-arch={machine}"]
        done = run([self.command, *how, source.name, "-o", str(to)], source.parent)
        if done.returncode:
            raise _failed(self.command, done.stderr or done.stdout)


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """The compiler as a library."""

    library: Any
    version: str

    def compile(self, source: Path, machine: str, text: bool, to: Path, types: str = "") -> None:
        """Compile a .cu file in its folder, for one architecture or to PTX; `types` stands in for
        the standard headers."""
        names = (ctypes.c_char_p * len(STANDARD))(*(n.encode() for n in STANDARD))
        texts = (ctypes.c_char_p * len(STANDARD))(*[types.encode()] * len(STANDARD))
        program = ctypes.c_void_p()
        self._must("CreateProgram", ctypes.byref(program), source.read_bytes(),
                   source.name.encode(), len(STANDARD), texts, names)
        how = [f"-arch={machine}", f"-I{source.parent}"]
        options = (ctypes.c_char_p * len(how))(*(o.encode() for o in how))
        if self.library.nvrtcCompileProgram(program, len(how), options):
            raise _failed("NVRTC", self._taken(program, "ProgramLog").decode(errors="replace"))
        to.write_bytes(self._taken(program, "PTX" if text else "CUBIN"))
        self._must("DestroyProgram", ctypes.byref(program))

    def _taken(self, program: ctypes.c_void_p, what: str) -> bytes:
        """What the library has made: the log, the code or the text."""
        size = ctypes.c_size_t()
        self._must(f"Get{what}Size", program, ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value)
        self._must(f"Get{what}", program, room)
        return room.raw if what == "CUBIN" else room.value

    def _must(self, function: str, *args: Any) -> None:
        if status := getattr(self.library, f"nvrtc{function}")(*args):
            raise _failed("NVRTC", f"nvrtc{function} returned {status}")


def _failed(command: str, said: str) -> CompilerError:
    lines = [line for line in said.splitlines() if "error" in line] or said.splitlines()
    return CompilerError("GT2121", f"{command} failed", where=" / ".join(lines[:3])[:600])


@once
def find() -> Nvcc | Nvrtc:
    """nvcc of the path, else NVRTC. Raises CompilerError GT2131 where there is neither."""
    if nvcc := _nvcc():
        return nvcc
    for name in _libraries():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return Nvrtc(library, f"NVRTC {major.value}.{minor.value}")
    raise CompilerError("GT2131", "no compiler for CUDA found: nvcc or NVRTC",
                        hint=f"`{release.install('cuda')}`")


def _nvcc() -> Nvcc | None:
    """nvcc of the path, with the line of its `--version` that says the release."""
    command = shutil.which("nvcc")
    if command is None:
        return None
    try:
        said = subprocess.run([command, "--version"], capture_output=True, timeout=60, **TEXT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next((Nvcc(command, f"nvcc, {x}") for x in said.stdout.splitlines() if "release" in x),
                None)


def _libraries() -> list[str]:
    """Where NVRTC may be: in a package of PyPI, or where the system looks."""
    spec = find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    paths = [str(p) for place in places for p in sorted(Path(place).glob("*/lib/libnvrtc.so.*"))]
    return [*paths, *filter(None, [find_library("nvrtc")])]


def compile_images(source: Path, images: Iterable[Image], types: str, jobs: int | None) -> None:
    """Compile the kernels of a build directory into images beside them. `types` are those of the
    standard headers, for a compiler without them.

    Raises CompilerError GT2121, GT2131.
    """
    compiler, work = find(), source.parent
    texts = {p.name: p.read_text("utf-8") for p in sorted([*work.glob("*.h"), source])}

    def image(row: Image) -> None:
        file, _, text, machine, _ = row
        key = _key(texts, compiler.version, machine)
        if not cache.get(key, work / file):
            compiler.compile(source, machine, text, work / file, types)
            cache.put(key, work / file)
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        list(pool.map(image, images))


def _key(texts: Mapping[str, str], version: str, machine: str) -> str:
    h = hashlib.sha256()
    for part in (*(x for row in texts.items() for x in row), version, machine):
        h.update(part.encode() + b"\0")
    return h.hexdigest()
