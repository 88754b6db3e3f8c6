"""A build as two files: one NAME.c that needs only NAME.h, as an amalgamation does.

Headers stand where they were included. One with a guard stands there once; a template, which each
kernel includes with its own macros, as often as it is included, the later copies without comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphtool.errors import UsageError

_INCLUDE = re.compile(r'#include "(.+)"')
_GUARD = re.compile(r"(?:\s|/\*.*?\*/)*#ifndef (\w+_H)\n#define \1\n", re.S)
_FEATURE = re.compile(r"#define (_\w+_SOURCE) .*")  # must precede the headers of the system
_SETTING = re.compile(r"#define (GT_\w+)(?: (.*))?")
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_OPEN, _CLOSED = ("#if", "#ifdef", "#ifndef"), "#endif"
# what a file defines for itself: functions, types and tables
_PRIVATE = re.compile(r"^static [^=;(\n]*?\b(\w+)(?=\(|\[| = |;)|^\} (\w+);"
                      r"|^(?:__attribute__\(\(\w+\)\) )static [^=;(\n]*?\b(\w+)\(", re.M)


@dataclass
class Folding:
    """The texts by file, and the guarded headers that the file being written has already."""

    texts: Mapping[str, str]
    present: set[str] = field(default_factory=set)
    repeated: set[str] = field(default_factory=set)

    def lines(self, file: str, text: str, conditional: bool = False) -> Iterator[str]:
        """The lines of a text with each known header in place of its include; `conditional`: where
        the text stands, a condition may leave it out."""
        depth = -1 if _GUARD.match(text) else 0  # the guard's own condition does not count
        for line in text.splitlines():
            word = line.split(" ", 1)[0]
            depth += (word in _OPEN) - (word == _CLOSED)
            match = _INCLUDE.match(line)
            if match is None or match[1] not in self.texts or match[1] == file:
                yield line
            elif match[1] not in self.present:
                yield from self.header(match[1], conditional or depth > 0)

    def header(self, name: str, conditional: bool) -> Iterator[str]:
        """The lines of a header; one that a condition may leave out comes again elsewhere."""
        text = self.texts[name]
        if _GUARD.match(text):
            if not conditional:
                self.present.add(name)
        elif name in self.repeated:
            text = re.sub(r"\n(?:[ \t]*\n)+", "\n", _COMMENT.sub(_blank, text)).strip("\n")
        self.repeated.add(name)
        yield from self.lines(name, text, conditional)


def _blank(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n") if "\n" in comment[0] else " "


def single(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """NAME.c and NAME.h, which hold the C files and headers `texts`, and the programs among these,
    which include NAME.h.

    Raises UsageError GT2116 for programs that were lowered in different classes of numerics, whose
    kernels would rely on each other's settings.
    """
    programs = {f"{name}_example.c", f"{name}_main.c"} & texts.keys()
    header = folded(f"{name}.h", texts)
    public = {f for f in texts if f.endswith(".h") and f"#ifndef {_guard_of(f)}\n" in header}
    private = {f: t for f, t in texts.items() if f.endswith(".h") and f not in public}
    _check(private)
    sources = {f: t for f, t in sorted(texts.items(), key=_order)
               if f.endswith(".c") and f not in programs}
    return {f"{name}.h": header, f"{name}.c": _source(name, sources, private, public),
            **{f: _program(f, name, texts[f], private, public) for f in sorted(programs)}}


def _order(item: tuple[str, str]) -> tuple[bool, str]:
    """Kernels first: a template undefines all its macros, and drivers have one of the same name."""
    return not re.search(r"_kernels\d+\.c$", item[0]), item[0]


def _guard_of(header: str) -> str:
    return f"{header.removesuffix('.h').upper()}_H"


def folded(file: str, texts: Mapping[str, str]) -> str:
    """The text of a file with each known header in place of its first include."""
    return "\n".join(Folding(texts).lines(file, texts[file])) + "\n"


def _source(name: str, sources: Mapping[str, str], private: Mapping[str, str],
            public: set[str]) -> str:
    """The text of NAME.c."""
    features = dict.fromkeys(m[0] for t in sources.values() for m in _FEATURE.finditer(t))
    folding = Folding(private)
    out = [f"/* {name}: a compiled model as one file of C. Generated; do not edit.",
           f"       cc -O3 -c {name}.c */"]
    for line in features:
        macro = line.split()[1]
        out += [f"#ifndef {macro}", line, "#endif"]
    out += ["#ifdef __clang__ /* which expects a use of each function in this file */",
            '#pragma clang diagnostic ignored "-Wunused-function"', "#endif",
            f'#include "{name}.h"']
    for file, text in _apart(sources).items():
        out += ["", f"/* ---- {file} ---- */"]
        out += [line for line in folding.lines(file, text)
                if not _FEATURE.match(line) and not _of(line, public)]
    return "\n".join(out) + "\n"


def _program(file: str, name: str, text: str, private: Mapping[str, str], public: set[str]) -> str:
    """A program that includes NAME.h, with the other headers that it needs inside."""
    lines = [line for line in Folding(private).lines(file, text)
             if not _of(line, public - {f"{name}.h"})]
    return "\n".join(lines).replace("cc -O2 *.c", f"cc -O3 {name}.c {file}") + "\n"


def _of(line: str, headers: set[str]) -> bool:
    """Whether the line includes one of these headers."""
    match = _INCLUDE.match(line)
    return match is not None and match[1] in headers


def _apart(sources: Mapping[str, str]) -> dict[str, str]:
    """The files, with names of their own for what several of them define for themselves."""
    owners: dict[str, list[str]] = {}
    for file, text in sources.items():
        for name in dict.fromkeys(m[1] or m[2] or m[3] for m in _PRIVATE.finditer(text)):
            owners.setdefault(name, []).append(file)
    out = dict(sources)
    for name, files in owners.items():
        for file in files if len(files) > 1 else ():
            stem = file.removesuffix(".c")
            out[file] = re.sub(rf"(?<![.>\w]){name}\b", f"{stem}_{name}", out[file])
    return out


def _check(headers: Mapping[str, str]) -> None:
    """Raises UsageError GT2116 for kernels that rely on different settings."""
    settings = {f: {m[1]: m[2] for m in _SETTING.finditer(t)} for f, t in headers.items()
                if f.endswith("_kernels.h")}
    first = next(iter(settings.values()), {})
    if wrong := [f for f, value in settings.items() if value != first]:
        raise UsageError("GT2116", "these programs cannot be one file of C", where=wrong[0],
                         hint="lower them for one machine and in one class of numerics")
