"""The C of a build as two files, for packages that the user's compiler builds, with a third one by
which other languages ask for shapes."""

from __future__ import annotations

import re
from pathlib import Path

from graphtool.emit.single import single
from graphtool.emit.weights import Part, array
from graphtool.errors import UsageError
from graphtool.package.record import Subject

_INCBIN = re.compile(r'\.incbin \\"([\w.]+)\\", (\d+), (\d+)')
_MACRO = re.compile(r"#define (\w+)_(INPUT|OUTPUT)(\d+)_(RANK|SHAPE|BYTES)\b(\(dims\))? ?(.*)")


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
    text = path.read_text()
    match = _INCBIN.search(text)
    if match is None:
        return text
    start, size = int(match[2]), int(match[3])
    with (path.parent / match[1]).open("rb") as data:
        data.seek(start)
        name, _, index = path.stem.rpartition("_weights")
        return array(Part(name, int(index), 0, size), data.read(size))


def shapes(subject: Subject, header: str) -> str:
    """The text of NAME_shapes.c with the function `size_t NAME_shape(int port, const int64_t *dims,
    int64_t *shape)`: the bytes of a port, with its shape if `shape` is not NULL. Outputs follow the
    inputs; of one whose shape the run computes, the bytes are those that it needs at most."""
    name, rows = subject.name, list[str]()
    ports = {(m[2], int(m[3]), m[4]): (m[5] or "", m[6]) for m in _MACRO.finditer(header)}
    counts = {"INPUT": len(subject.manifest.inputs), "OUTPUT": len(subject.manifest.outputs)}
    at = 0
    for kind, count in counts.items():
        for i in range(count):
            stem = f"{name.upper()}_{kind}{i}"
            lines = [f"    case {at}: {{"]
            if (kind, i, "SHAPE") in ports:
                given = ports[kind, i, "SHAPE"][0]
                lines += [f"        const int64_t s[] = {stem}_SHAPE{given};",
                          f"        for (int i = 0; shape && i < {stem}_RANK; i++)",
                          "            shape[i] = s[i];"]
            given = ports[kind, i, "BYTES"][0]
            rows += [*lines, f"        return (size_t){stem}_BYTES{given};", "    }"]
            at += 1
    body = "\n".join(rows)
    return (f'#include "{name}.h"\n\n'
            "/* The bytes of a port for these sizes, and its shape. Outputs follow inputs. */\n"
            f"size_t {name}_shape(int port, const int64_t *dims, int64_t *shape);\n"
            f"size_t {name}_shape(int port, const int64_t *dims, int64_t *shape)\n{{\n"
            f"    (void)dims, (void)shape;\n    switch (port) {{\n{body}\n    default: return 0;\n"
            f"    }}\n}}\n")
