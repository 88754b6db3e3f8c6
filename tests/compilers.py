"""C compilers that tests call themselves, through the cache of objects that builds use.

A second run of the suite on the same machine then compiles only what has changed.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from graphtool.machines import cpu_flags
from graphtool.native import cache as objects
from graphtool.native.probes import version_of

TEXTS = {".c", ".h", ".cc", ".bin"}  # the last: weights that the assembler reads


def run_compiler(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a compiler in `folder`; what it printed, and its status.

    If it compiled the same texts with the same flags before, and printed nothing, it is not run:
    the file that it wrote (after `-o`) comes from the cache. Without `-o` no file is written then.
    """
    key = _key(command, folder)
    named = command[command.index("-o") + 1] if "-o" in command else "/dev/null"
    with tempfile.TemporaryDirectory() as apart:
        output = Path(apart) / "nothing" if named == "/dev/null" else folder / named
        output.unlink(missing_ok=True)  # a library that is loaded keeps the file that it has
        if objects.get(key, output):
            output.chmod(0o755)
            return subprocess.CompletedProcess(list(command), 0, "", "")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode == 0 and not done.stdout and not done.stderr:
            if named == "/dev/null":
                output.touch()
            objects.put(key, output)
        return done


def _key(command: Sequence[str], folder: Path) -> str:
    """A hash of all that the output depends on."""
    assert not any(w.startswith("-L") for w in command), "libraries are not in the key"
    included = [Path(w[2:]) for w in command if w.startswith("-I")]
    words = [w for before, w in pairwise(["", *command])  # wherever the output is written to
             if not w.startswith("-I") and (before != "-o" or w == "/dev/null")]
    h = hashlib.sha256(b"a test's own\0")
    for part in (version_of((command[0],)) or "", *words):
        h.update(part.encode() + b"\0")
    if "-march=native" in command:
        h.update(" ".join(sorted(cpu_flags())).encode())
    h.update(b"".join(_texts(folder)))
    for other in included:
        h.update(_texts_of_package(folder / other))
    for word in words:
        if word.startswith("/") and (path := Path(word)).is_file():
            h.update(path.read_bytes())
    return h.hexdigest()


@cache
def _texts_of_package(folder: Path) -> bytes:
    """A hash of the headers of a folder that no test writes to."""
    return hashlib.sha256(b"".join(_texts(folder))).digest()


def _texts(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.iterdir()):
        if path.suffix in TEXTS:
            yield path.name.encode() + b"\0" + path.read_bytes() + b"\0"
