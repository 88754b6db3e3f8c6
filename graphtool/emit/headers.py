"""Which kernel headers the emitted files include, and which files a build has to copy for them.

A header that only some models call is included only by the files that call it, so a build contains
no unused code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from graphtool.emit.language import C, Language
from graphtool.kernels import headers

_OF_PLAIN = re.compile(r"\bgt_\w+\(|\b(?:NAN|INFINITY)\b")


def called(text: str, language: Language = C, name: str = "") -> list[str]:
    """The headers that define the functions which this text of the program `name` calls, except
    those always included."""
    if language.plain:
        return [f"{name}_functions.h"] * bool(_OF_PLAIN.search(text))
    return [header for header, call in language.library.items() if call.search(text)]


def used_headers(texts: Iterable[str]) -> dict[str, str]:
    """The kernel headers that the files include, and those that these include in turn.

    An include that depends on a macro counts only if one of the files defines the macro.
    """
    result: dict[str, str] = {}
    pending = list(texts)
    given = {macro for text in pending for macro in re.findall(r"#define (GT_\w+)", text)}
    while pending:
        for header_name in _included(pending.pop(), given):
            text = headers.text(header_name)
            if text is not None and header_name not in result:
                result[header_name] = text
                pending.append(text)
    return dict(sorted(result.items()))


def _included(text: str, given: Collection[str]) -> list[str]:
    """The files that a text includes when these macros are defined; other conditions may hold."""
    names, open_ = [], list[bool]()
    for word, rest in re.findall(r"^#(\w+)(?: (.*))?$", text, re.MULTILINE):
        if word in ("if", "ifdef", "ifndef"):
            open_.append(word != "ifdef" or not rest.startswith("GT_") or rest in given)
        elif word in ("else", "elif") and open_:
            open_[-1] = True
        elif word == "endif" and open_:
            open_.pop()
        elif word == "include" and rest.startswith('"') and all(open_):
            names.append(rest.strip('"'))
    return names
