"""Files as they were in a commit, by git's own name for them: `HEAD~1:model.onnx`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from graphtool.io import files


def at_revision(source: str, folder: Path) -> str:
    """The path of a file REV:PATH, which is written to the existing `folder`; a source that git
    does not know as one is returned as it is. PATH begins at the top of the repository, or with ./
    in the current folder."""
    _, colon, path = source.partition(":")
    if not colon or source.startswith("-") or Path(source).exists():
        return source
    try:
        found = subprocess.run(["git", "cat-file", "blob", source], capture_output=True,
                               check=False)
    except OSError:
        return source
    if found.returncode:
        return source
    out = folder / Path(path).name
    files.write_bytes(out, found.stdout)
    return str(out)
