"""Puts graphtool's drivers into a repository: `.git/config` and `.gitattributes`, nothing else."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from graphtool.errors import UsageError
from graphtool.io import files
from graphtool.report.git import DriverSetting, GitStatus

ATTRIBUTES = ("*.graph.json diff=graphtool merge=graphtool",
              "*.gt diff=graphtool",
              "*.safetensors -diff merge=graphtool-weights")
"""The lines of .gitattributes."""


def settings() -> dict[str, str]:
    """The keys of git's configuration with their values; the command is this Python's graphtool."""
    command = f"{shlex.quote(sys.executable)} -m graphtool git"
    return {"diff.graphtool.textconv": f"{command} textconv",
            "diff.graphtool.xfuncname": "^([^:]+: )",
            "merge.graphtool.name": "graphs by structure (graphtool)",
            "merge.graphtool.driver": f"{command} merge %O %A %B --path %P",
            "merge.graphtool-weights.name": "weights of graphs (graphtool)",
            "merge.graphtool-weights.driver": f"{command} merge-weights %O %A %B --path %P"}


def git(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A run of git. Raises UsageError GT3131 if there is no git."""
    try:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, encoding="utf-8",
                              check=False)
    except FileNotFoundError as error:
        raise UsageError("GT3131", "there is no git here", hint="install it, or add it to the "
                                                                "path") from error


def repository(folder: Path) -> Path:
    """The top of the working tree. Raises UsageError GT3130 outside of one."""
    answer = git("rev-parse", "--show-toplevel", folder=folder)
    if answer.returncode or not answer.stdout.strip():
        raise UsageError("GT3130", "this is not a working tree of git", where=str(folder),
                         hint="git init makes one; or change to one")
    return Path(answer.stdout.removesuffix("\n"))


def status(folder: Path) -> GitStatus:
    """What of the drivers is installed in the repository of a folder."""
    top = repository(folder)
    rows = []
    for key, value in settings().items():
        setting = git("config", "--local", "--get", key, folder=top).stdout.removesuffix("\n")
        rows.append(DriverSetting(".git/config", key, setting, setting == value))
    present = _lines(top / ".gitattributes")
    rows += [DriverSetting(".gitattributes", line.partition(" ")[0], line, line in present)
             for line in ATTRIBUTES]
    return GitStatus(str(top), all(r.ok for r in rows), rows)


def install(folder: Path) -> GitStatus:
    """Write the settings that are missing or different, and the lines that .gitattributes lacks.

    Raises UsageError GT3132 if git cannot write its configuration."""
    top = repository(folder)
    for key, value in settings().items():
        done = git("config", "--local", key, value, folder=top)
        if done.returncode:
            raise UsageError("GT3132", f"git cannot set {key}: {done.stderr.strip()}",
                             where=str(top))
    path = top / ".gitattributes"
    present = _lines(path)
    if missing := [line for line in ATTRIBUTES if line not in present]:
        _write(path, [*present, *missing])
    return status(folder)


def uninstall(folder: Path) -> GitStatus:
    """Remove what `install` has written; what others wrote stays."""
    top = repository(folder)
    for section in dict.fromkeys(key.rpartition(".")[0] for key in settings()):
        git("config", "--local", "--remove-section", section, folder=top)
    path = top / ".gitattributes"
    present = _lines(path)
    left = [line for line in present if line not in ATTRIBUTES]
    if present and not left:
        path.unlink()
    elif left != present:
        _write(path, left)
    return status(folder)


def _lines(path: Path) -> list[str]:
    return files.read_bytes(path).decode(errors="surrogateescape").splitlines() if (
        path.exists()) else []


def _write(path: Path, lines: list[str]) -> None:
    files.write_bytes(path, "".join(f"{line}\n" for line in lines).encode(
        errors="surrogateescape"))


def status_lines(s: GitStatus) -> list[str]:
    """The settings as lines of text."""
    out = [f"{'ok  ' if r.ok else 'FAIL'} {r.place}  {r.name}" for r in s.settings]
    how = "" if s.ok else "; `graphtool git install` installs them"
    return [*out, f"{'installed' if s.ok else 'not installed'} in {s.repository}{how}"]
