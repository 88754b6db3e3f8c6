"""A shorter <immintrin.h> for the C that tests compile.

gcc takes 0.2 to 0.3 s to read the header of x86's vector instructions, often longer than for the
rest of a kernel, because it has the functions of all processors. Each of its parts says what
instructions it is for: the short header includes only the parts of the machine that is compiled
for, and of AVX-512's 5,000 functions only the ones that this project names. The objects are the
same byte by byte. The compiler finds it through C_INCLUDE_PATH, so no command line changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".pytest_cache" / "include"
NAME = "immintrin.h"
PARTS = "parts"
LEVELS = ("native", "sapphirerapids", "x86-64-v4", "x86-64-v3", "x86-64")
# how a part begins that compiles functions for instructions which the machine may lack
GUARD = re.compile(r"^#(ifndef|if) (.+)\n#pragma GCC push_options\n#pragma GCC target", re.M)
# a function of a part, and its name; a macro, and its name
FUNCTION = re.compile(r"^(?P<indent> *)extern __inline\b[^{;]*?^ *(?!__attr)(?P<name>\w+) *"
                      r"\([^{;]*\)\s*\{.*?^(?P=indent)\}\n", re.M | re.S)
MACRO = re.compile(r"^#[ \t]*define[ \t]+(?P<name>\w+)(?:.*\\\n)*.*", re.M)
WORD = re.compile(r"\b_\w+")
PASTED = re.compile(r"^  __MM512_REDUCE_OP \((\w+)\);", re.M)  # of all widths
# a name that a macro of a kernel makes of several: _mm512_##cvt##ps_epi32
NAMED = re.compile(r"\b_\w+(?:\s*##\s*\w+)*")


def shorten() -> None:
    """Let the C compilers of this process and of those it starts find the short header. Where there
    is no gcc, or its header has another form, nothing changes."""
    known = os.environ.get("C_INCLUDE_PATH")
    if known and known.startswith(str(FOLDER)):
        return  # pytest-xdist has started this process, and its parent has done it
    with suppress(OSError, subprocess.CalledProcessError):
        version = _said("gcc", "-dumpfullversion")
        named = sorted(set(_named()))
        folder = FOLDER / f"{version}-{hashlib.sha256(repr(named).encode()).hexdigest()[:16]}"
        if not (folder / NAME).exists():
            _write(folder, version, named)
        os.environ["C_INCLUDE_PATH"] = ":".join(filter(None, (str(folder), known)))


def _named() -> Iterator[str]:
    """The names of this project's C and Python that may be functions of the header."""
    for top in ("graphtool", "tests", "benchmarks", "docs"):
        for path in (ROOT / top).rglob("*.*"):
            if path.suffix in (".h", ".c", ".py", ".md") and "_mm" in (
                    text := path.read_text(errors="replace")):
                yield from NAMED.findall(text)


def short(parts: dict[str, str], header: str, version: str) -> str:
    """The short header of a gcc whose own is `header`; it includes these parts of it from a folder
    of their own. Other compilers read theirs."""
    lines = []
    for line in header.splitlines():
        part = re.match(r"#include <(.+)>", line)
        if part and (text := parts.get(part[1])) is not None:
            guard = GUARD.search(text)
            assert guard
            lacks = f"!defined {guard[2]}" if guard[1] == "ifndef" else guard[2]
            lines += [f"#if !({lacks})", f'#include "{PARTS}/{part[1]}"', "#endif"]
        elif line.startswith("#"):
            lines.append(line)
    major, minor, *_ = version.split(".")
    return "\n".join([f"#if defined __clang__ || __GNUC__ != {major} || __GNUC_MINOR__ != {minor}",
                      f"#include_next <{NAME}>", "#else", *lines, "#endif", ""])


def used(texts: list[str], named: list[str]) -> set[str]:
    """The functions and macros of these texts that the names stand for, with all that they use."""
    bodies: dict[str, set[str]] = {}
    for text in texts:
        for found in (*FUNCTION.finditer(text), *MACRO.finditer(text)):
            bodies.setdefault(found["name"], set()).update(
                WORD.findall(found[0]), (f"_mm{bits}_{op}" for op in PASTED.findall(found[0])
                                         for bits in ("", "256", "512")))
    patterns = re.compile("|".join(re.sub(r"\s*##\s*\w+(\s*##\s*)?", r"\\w*", n) for n in named))
    todo = [name for name in bodies if patterns.fullmatch(name)]
    out = set(todo)
    while todo:
        new = (bodies[todo.pop()] & bodies.keys()) - out
        out |= new
        todo += new
    return out


def _write(folder: Path, version: str, named: list[str]) -> None:
    """Write the short header and its parts, if gcc can read it for each kind of machine."""
    real = Path(_said("gcc", "-print-file-name=include"))
    header = (real / NAME).read_text()
    included = {n: (real / n).read_text() for n in re.findall(r"^#include <(.+)>", header, re.M)}
    parts = {n: t for n, t in included.items()
             if GUARD.search(t) and "general-regs-only" not in t}
    kept = used(list(parts.values()), named)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        trial = Path(made) / "trial"
        (trial / PARTS).mkdir(parents=True)
        (trial / NAME).write_text(short(parts, header, version))
        for name, text in parts.items():
            (trial / PARTS / name).write_text(
                FUNCTION.sub(lambda f: f[0] if f["name"] in kept else "", text))
        for level in LEVELS:
            for optimised in ("-O0", "-O1"):
                _said("gcc", f"-march={level}", optimised, "-Werror", "-fsyntax-only", "-xc", NAME,
                      cwd=str(trial))
        with suppress(OSError):  # another process has just written it
            trial.rename(folder)


def _said(*command: str, cwd: str | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()
