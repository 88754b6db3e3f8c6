"""A shorter <immintrin.h> for the C that tests compile.

gcc takes 0.2 to 0.3 s to read the header of x86's vector instructions, often longer than for the
rest of a kernel, because it has the functions of all processors. Each of its parts says what
instructions it is for, and the short header includes only those of the machine that is compiled
for. The compiler finds it through C_INCLUDE_PATH, so no command line changes.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

FOLDER = Path(__file__).parents[1] / ".pytest_cache" / "include"
NAME = "immintrin.h"
LEVELS = ("native", "x86-64-v4", "x86-64-v3", "x86-64")
# how a part begins that compiles functions for instructions which the machine may lack
GUARD = re.compile(r"^#(ifndef|if) (.+)\n#pragma GCC push_options\n#pragma GCC target", re.M)


def shorten() -> None:
    """Let the C compilers of this process and of those it starts find the short header. Where there
    is no gcc, or its header has another form, nothing changes."""
    with suppress(OSError, subprocess.CalledProcessError):
        version = _said("gcc", "-dumpfullversion")
        folder = FOLDER / version
        if not (folder / NAME).exists():
            _write(folder, version)
        os.environ["C_INCLUDE_PATH"] = ":".join(filter(None, (
            str(folder), os.environ.get("C_INCLUDE_PATH"))))


def short(folder: Path, version: str) -> str:
    """The short header of a gcc whose headers are in `folder`; other compilers read their own."""
    lines = []
    for line in (folder / NAME).read_text().splitlines():
        part = re.match(r"#include <(.+)>", line)
        guard = part and GUARD.search((folder / part[1]).read_text())
        if guard and "general-regs-only" not in (folder / part[1]).read_text():
            lacks = f"!defined {guard[2]}" if guard[1] == "ifndef" else guard[2]
            lines += [f"#if !({lacks})", line, "#endif"]
        elif line.startswith("#"):
            lines.append(line)
    major, minor, *_ = version.split(".")
    return "\n".join([f"#if defined __clang__ || __GNUC__ != {major} || __GNUC_MINOR__ != {minor}",
                      f"#include_next <{NAME}>", "#else", *lines, "#endif", ""])


def _write(folder: Path, version: str) -> None:
    """Write the short header, if gcc can read it for each kind of machine."""
    text = short(Path(_said("gcc", "-print-file-name=include")), version)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as trial:
        (Path(trial) / NAME).write_text(text)
        for level in LEVELS:
            _said("gcc", f"-march={level}", "-O1", "-Werror", "-fsyntax-only", "-xc", NAME,
                  cwd=trial)
        os.replace(Path(trial) / NAME, folder / NAME)


def _said(*command: str, cwd: str | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()
