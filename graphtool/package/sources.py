"""The C of a build as two files, for packages that the user's compiler builds."""

from __future__ import annotations

import re
from pathlib import Path

from graphtool.emit.single import single
from graphtool.emit.weights import Part, array
from graphtool.errors import UsageError
from graphtool.package.record import Subject

_INCBIN = re.compile(r'\.incbin \\"([\w.]+)\\", (\d+), (\d+)')


def sources(subject: Subject) -> dict[str, str]:
    """NAME.c, NAME.h, and NAME_example.c or NAME_main.c where the build has one.

    Raises UsageError GT2242 for a build that has versions for several levels, or a device's code.
    """
    m = subject.manifest
    if m.levels or m.device:
        raise UsageError("GT2242", "this build is no single file of C", where=str(subject.folder),
                         hint="build for one processor: --march x86-64-v3")
    texts = {p.name: _spelled(p) for p in sorted(subject.folder.iterdir())
             if p.suffix in (".c", ".h") and p.name in m.files}
    if not any(re.fullmatch(r"\w+_kernels\.h", f) for f in texts):
        return texts  # it was built as two files
    return single(subject.name, texts)


def _spelled(path: Path) -> str:
    """The text of a C file; weights that an assembler would include become an array."""
    text = path.read_text("utf-8")
    match = _INCBIN.search(text)
    if match is None:
        return text
    start, size = int(match[2]), int(match[3])
    with (path.parent / match[1]).open("rb") as data:
        data.seek(start)
        name, _, index = path.stem.rpartition("_weights")
        return array(Part(name, int(index), 0, size), data.read(size))
