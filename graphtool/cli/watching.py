"""--watch: run a verb again whenever a file that it reads has changed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from graphtool.cli import terminal
from graphtool.errors import UsageError

PERIOD = 0.3  # seconds between two looks at the files
_AGAIN = {"view": ("--no-open",)}  # what the later runs of a verb get
_OUTPUTS = ("-o", "--out", "--dump-dir", "--journal")


def watched(argv: Sequence[str]) -> list[Path]:
    """The files that a command line reads; with a Python file, the others of its folder, which it
    may import."""
    out: list[Path] = []
    for before, word in zip(("", *argv), argv, strict=False):
        path = Path(word if Path(word).exists() else word.rpartition(":")[0])
        if before in _OUTPUTS or word.startswith("-") or not path.name:
            continue
        if path.is_dir():
            out.append(path / "build.json")
        elif path.is_file():
            out += sorted(path.parent.glob("*.py")) if path.suffix == ".py" else [path]
    return list(dict.fromkeys(out))


def _times(paths: Sequence[Path]) -> list[int]:
    return [p.stat().st_mtime_ns if p.exists() else 0 for p in paths]


def loop(argv: Sequence[str]) -> int:
    """Run the command line without --watch, each time in a process of its own, until Ctrl-C; the
    exit code is then that of the last run. Raises UsageError GT3143 if it names no file."""
    words = [w for w in argv if w != "--watch"]
    paths = watched(words)
    if not paths:
        raise UsageError("GT3143", "there is no file to watch", hint="--watch is for verbs that "
                                                                     "read files, not stdin")
    code, again = 0, tuple[str, ...]()
    try:
        while True:
            before = _times(paths)
            code = subprocess.run([sys.executable, "-m", "graphtool", *words, *again], check=False
                                  ).returncode
            again = _AGAIN.get(words[0], ())
            terminal.note(f"watching {', '.join(map(str, paths[:4]))}"
                          + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")
                          + "; Ctrl-C ends")
            while _times(paths) == before:
                time.sleep(PERIOD)
    except KeyboardInterrupt:
        terminal.note("")
        return code
