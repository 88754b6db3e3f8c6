"""The C headers: `c/compute` holds the kernels, `c/cuda` and `c/opencl` what these languages have
besides, `c/host` the code that runs and trains models.

The emitted files include a header by its bare name, so no two headers have the same name. One is
written here: template_end.h, which undefines all that templates and their uses define.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from graphtool.loops.contract import CONTRACTS, HOOK

FOLDERS = ("compute", "cuda", "opencl", "host")
END = "template_end.h"
COMMON = ("NAME", "PARAMS", "ARGS", "PIECES", "WAIT", "PHASE", "COMMON",
          HOOK.upper())  # of every template
ADDED: dict[str, str] = {}  # the texts of plug-ins' headers, by name


def names() -> frozenset[str]:
    """The file names of all headers, such as `gemm.h`."""
    return _own_names() | ADDED.keys() | {END}


def is_kernel(name: str) -> bool:
    """Whether a header holds code of kernels, and not of what runs them."""
    return name in ADDED or (resources.files("graphtool.kernels") / "c" / "compute" / name
                             ).is_file()


@cache
def _own_names() -> frozenset[str]:
    root = resources.files("graphtool.kernels") / "c"
    return frozenset(f.name for part in FOLDERS for f in (root / part).iterdir())


def text(name: str) -> str | None:
    """The text of the header called `name`; None if there is no such header."""
    return template_end() if name == END else ADDED.get(name) or _own_text(name)


@cache
def _own_text(name: str) -> str | None:
    root = resources.files("graphtool.kernels") / "c"
    path = next((root / part / name for part in FOLDERS if (root / part / name).is_file()), None)
    return None if path is None else path.read_text("utf-8")


def template_end() -> str:
    """The header that ends each template: it undefines the macros of all uses, which contracts
    list, and those that templates and their parts define themselves."""
    given = {name for c in CONTRACTS.values() for name in (
        *(m.name for m in c.macros), *(p.name for p in c.pointers))}
    added = {name for text in ADDED.values() for name in of_templates(text)}
    undefined = sorted({*COMMON, *given, *added, *_own_macros()})
    return ("/* Ends the code of a template: undefines what it and its use have defined. */\n"
            "#pragma GCC diagnostic pop\n" + "".join(f"#undef GT_{x}\n" for x in undefined))


@cache
def _own_macros() -> frozenset[str]:
    return frozenset(name for file in _own_names() for name in of_templates(_own_text(file) or ""))


def of_templates(text: str) -> frozenset[str]:
    """The macros GT_NAME that a header defines each time it is included."""
    names, depth, once = set[str](), 0, 0  # once: the depth of a part that is included once
    for line in text.splitlines():
        word = re.match(r" *#(if|endif|define GT_(\w+))", line)
        if word is None:
            continue
        if word[1] == "if":
            depth += 1
            once = once or (depth if re.fullmatch(r"#ifndef \w+_H", line) else 0)
        elif word[1] == "endif":
            once = 0 if once == depth else once
            depth -= 1
        elif not once:
            names.add(word[2])
    return frozenset(names)
