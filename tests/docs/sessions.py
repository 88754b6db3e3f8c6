"""Runs the commands and the Python of a Markdown page, and compares or rewrites their outputs.

A page is one session: its blocks run in order in one empty folder that has `samples/`
and `plugins/`, the examples of plug-ins.

* ```` ```console ````: a line `$ COMMAND` is run by bash, the lines below it are its output (stdout
  and stderr). It must succeed; `…; echo "exit code $?"` shows a code that is not 0.
* ```` ```python ````: is executed; all blocks of a page share their names. What it prints stands in
  an ```` ```output ```` block right behind it.
* A comment above a block changes what it means: `<!-- file: NAME -->` writes the block to a file,
  `<!-- not run: WHY -->` leaves it alone.

In an expected output `…` stands for any text of a line, and a line `…` for any number of lines.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphtool import plugins
from graphtool.cli.faults import run

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n+)?^```(?P<lang>[\w-]+)\n(?P<body>.*?)^```$", re.S | re.M)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.M)
_WORD = r"""(?:[^\s|&;<>$`*?'"\\]|'[^']*'|"[^"$`\\]*")+"""
# a call of graphtool, where its stderr goes, and what is made of its stdout or its exit code
_CALL = re.compile(rf"graphtool((?:\s+{_WORD})+)(?:\s+2>(/dev/null|&1))?"
                   r"(?:\s*\|\s*(?!\|)(.*)|;\s*(echo \"exit code \$\?\"))?", re.S)
_VOLATILE = (  # what differs between runs or machines: times and speeds, errors, the last digits
    (re.compile(r"\b\d+(?:[.,]\d+)*(?= (?:ns|µs|ms|s|GB/s|GFLOP/s|examples/s)\b)"), "…"),
    (re.compile(r"arena_at\(s, (?:\(.*?\)|[^()]*)\)"), "arena_at(s, …)"),  # scratch of each thread
    (re.compile(r"sha256:[0-9a-f]+"), "sha256:…"),  # of weights that numpy computed
    (re.compile(r"(loss) \d[\d.e-]*"), r"\1 …"),
    (re.compile(r"\b(max abs|max rel) [^ ,]+"), r"\1 …"),
    (re.compile(r"(\d\.\d{3})\d{2,}( ?) *"), r"\1…\2"))


@dataclass
class Session:
    """A folder in which blocks run one after the other, and the names that Python has defined."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if "torch._dynamo" in sys.modules:  # it numbers what it compiled since a process began
            sys.modules["torch._dynamo"].reset()
        tools = self.folder / ".tools"
        tools.mkdir()
        (self.folder / "samples").symlink_to(ROOT / "samples")
        (self.folder / "plugins").symlink_to(ROOT / "docs" / "examples" / "plugins")
        for name, module in (("graphtool", "graphtool"), ("python", None)):
            words = [sys.executable, *(["-m", module] if module else [])]
            (tools / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (tools / name).chmod(0o755)

    def shell(self, command: str) -> str:
        """What a command prints to stdout and stderr, which must succeed.

        graphtool at its beginning runs in this process, where the imports are made already.
        """
        if call := _CALL.fullmatch(command.replace("\\\n", " ")):
            words, stderr, pipe, asked = call.groups()
            code, out, err = self.graphtool(shlex.split(words), stderr or ("" if pipe else "&1"))
            if pipe:
                out = err + self.bash(pipe, out)
            elif asked:
                out += f"exit code {code}\n"
            else:
                assert code == 0, f"{command}\n{out}{err}"
        else:
            out = self.bash(command)
        assert "exit code" in out or "error[" not in out, f"{command}\n{out}"
        return out

    def bash(self, command: str, stdin: str = "") -> str:
        """What bash prints to stdout and stderr for a command, which must succeed."""
        env = os.environ | {"PATH": f"{self.folder / '.tools'}:{os.environ['PATH']}",
                            "PYTHONPATH": str(ROOT), "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=env, text=True,
                              input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def graphtool(self, argv: list[str], stderr: str) -> tuple[int, str, str]:
        """The exit code of a verb, and what it prints to stdout and to stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.chdir(self.folder), \
                contextlib.redirect_stderr(out if stderr == "&1" else err):
            code = run(argv)
        for name in list(plugins.LOADED):
            plugins.unload(name)
        return code, out.getvalue(), "" if stderr else err.getvalue()  # or dropped

    def python(self, code: str, where: str) -> str:
        """What a piece of Python prints; it sees the names of the pieces before it."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.chdir(self.folder):
            exec(compile(code, where, "exec"), self.names)
        return out.getvalue()


def rewritten(page: Path, folder: Path) -> str:
    """The page as it should be: each output that no longer fits is the real one."""
    text, session = page.read_text(), Session(folder)
    out, at, printed = [], 0, ""
    for block in _BLOCK.finditer(text):
        body, note = block["body"], block["note"] or ""
        start, end = block.span("body")
        match (block["lang"], note.partition(":")[0]):
            case (_, "not run"):
                fresh = body
            case (_, "file"):
                (session.folder / note.partition(":")[2].strip()).write_text(body)
                fresh = body
            case ("console", _):
                fresh = _console(body, session)
            case ("python", _):
                fresh, printed = body, session.python(body, page.name)
            case ("output", _):
                fresh = _kept(body, printed)
            case _:
                fresh = body
        out += [text[at:start], fresh]
        at = end
    return "".join([*out, text[at:]])


def _console(body: str, session: Session) -> str:
    """The block with the outputs of its commands."""
    parts = _COMMAND.split(body)
    assert not parts[0].strip(), f"a console block begins with a command: {body!r}"
    fresh = []
    for command, output in zip(parts[1::2], parts[2::2], strict=True):
        fresh.append(f"$ {command}\n{_kept(output, session.shell(command))}")
    return "".join(fresh)


def _kept(expected: str, real: str) -> str:
    """The expected output if it fits the real one, else the real one without what is volatile."""
    real = "".join(f"{line.rstrip()}\n" for line in real.splitlines())
    if fits(expected, real):
        return expected
    for volatile, short in _VOLATILE:
        real = volatile.sub(short, real)
    return real


def fits(expected: str, real: str) -> bool:
    """Whether an output is as expected, where `…` stands for anything."""
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else
                      ".*".join(map(re.escape, line.split("…"))) + r"\n"
                      for line in expected.splitlines())
    return re.fullmatch(pattern, real) is not None


def check(page: Path, folder: Path, update: bool) -> None:
    """Assert that the page is as it should be; with `update` make it so."""
    fresh = rewritten(page, folder)
    if update:
        page.write_text(fresh)
    assert page.read_text() == fresh, "the outputs differ; --update-golden rewrites them"
