"""Which kernel headers the emitted files include, and which files a build has to copy for them.

A header that only some models call is included only by the files that call it, so a build contains
no unused code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from graphtool.dtypes import TABLE
from graphtool.kernels import headers

_WHOLE, _PACKED = ("|".join(d.short for d in TABLE if d.is_integer and d.is_packed is packed)
                   for packed in (False, True))
_FLOATS = "|".join(d.short for d in TABLE if d.is_float and d.bits <= 8)
# header → the calls of what it defines
_CALLS = {
    "fields.h": re.compile(r"\bgt_fields?(_|\d)"),
    "integers.h": re.compile(rf"\bgt_(?!bitcast_|row_)\w+_({_WHOLE}|bool)\("),
    "narrow.h": re.compile(rf"\bgt_(?!fields_)(f64_to_odd|\w+_({_PACKED})|\w*({_FLOATS})\w*)\("),
    "nest.h": re.compile(r"\bgt_(floordiv|floormod|over_f32|bitcast_\w+)\("),
    "rows.h": re.compile(r"\bgt_row_(of|to|cast|round)_\w+\("),
    "special.h": re.compile(r"\bgt_(digamma|polygamma|erf_inv|igammac?|i[01]e)_f(32|64)\("),
}


def called(text: str) -> list[str]:
    """The headers that define the functions which this C text calls, except those always
    included."""
    return [header for header, call in _CALLS.items() if call.search(text)]


def used_headers(texts: Iterable[str]) -> dict[str, str]:
    """The kernel headers that the files include, and those that these include in turn.

    An include that depends on a macro counts only if one of the files defines the macro.
    """
    found: dict[str, str] = {}
    pending = list(texts)
    given = {macro for text in pending for macro in re.findall(r"#define (GT_\w+)", text)}
    while pending:
        for header_name in _included(pending.pop(), given):
            text = headers.text(header_name)
            if text is not None and header_name not in found:
                found[header_name] = text
                pending.append(text)
    return dict(sorted(found.items()))


def _included(text: str, given: Collection[str]) -> list[str]:
    """The files that a text includes when these macros are defined; other conditions may hold."""
    found, open_ = [], list[bool]()
    for word, rest in re.findall(r"^#(\w+)(?: (.*))?$", text, re.MULTILINE):
        if word in ("if", "ifdef", "ifndef"):
            open_.append(word != "ifdef" or not rest.startswith("GT_") or rest in given)
        elif word in ("else", "elif") and open_:
            open_[-1] = True
        elif word == "endif" and open_:
            open_.pop()
        elif word == "include" and rest.startswith('"') and all(open_):
            found.append(rest.strip('"'))
    return found
