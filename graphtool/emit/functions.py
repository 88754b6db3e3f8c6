"""The scalar functions that a text calls, as plain C functions: the headers of the kernels without
their macros, their conditions and the functions that nothing calls.

The headers stay the one place of a function's text. A small preprocessor expands their macros as
for a machine without vectors, in strict numerics; a function that a macro makes keeps the lines
that it has there.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from graphtool.errors import InternalError
from graphtool.kernels import headers

HEADERS = ("arguments.h", "prelude.h", "vmath.h", "integers.h", "narrow.h", "special.h", "fields.h",
           "nest.h")
CALL = re.compile(r"\bgt_\w+(?=\()")
# what the text may rely on; a compiler's own functions have their names of C99
_GIVEN = {
    "GT_LANES": "1", "GT_IN_ORDER": "", "GT_INLINE": "static inline", "GT_STATIC": "static",
    "GT_INFINITY": "INFINITY", "GT_NAN": "NAN", "GT_CONSTANT": "1",
    "GT_PLAIN": "1", "__OPENCL_VERSION__": ""}
_TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"])*\"|[A-Za-z_]\w*"
                    r"|\.?\d(?:[eEpP][+-]|[\w.])*|\s+|##|.", re.S)
_DEFINE = re.compile(r"#define (\w+)(\([\w, .]*\))?\s*(.*)", re.S)
_TABLE = re.compile(r"(?:/\*.*?\*/|[^{=/])*=", re.S)  # what is braced gives it values
_HEAD = re.compile(r"static (?:inline )?[^=;{]*?(\w+)(?=\(|\[)")


@dataclass(frozen=True, slots=True)
class _Macro:
    """A macro: its parameters, None for one without, and the tokens that replace it."""

    params: tuple[str, ...] | None
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or a table of a header, with the comment above it."""

    name: str
    text: str


def functions(text: str) -> list[Definition]:
    """The definitions that a text needs, in the order of the headers: those of what it calls, and
    of what these use. Raises InternalError GT7203 for a function that no header defines."""
    known = definitions()
    needed: set[str] = set()
    pending = CALL.findall(text)
    while pending:
        name = pending.pop()
        if name in needed:
            continue
        if name not in known:
            raise InternalError("GT7203", f"no header defines {name} for plain C")
        needed.add(name)
        words = set(re.findall(r"\bgt_\w+", known[name].text))
        pending += [w for w in words if w in known and w != name]
    return [d for d in known.values() if d.name in needed]


@cache
def definitions() -> Mapping[str, Definition]:
    """All definitions of the headers by name, in order; of two the later one counts."""
    macros = {name: _Macro(("x",) if name == "GT_CONSTANT" else None, (body,))
              for name, body in _GIVEN.items()}
    found: dict[str, Definition] = {}
    for file in HEADERS:
        text = headers.text(file)
        assert text is not None, file
        for d in _items("".join(_preprocessed(text, macros))):
            found[d.name] = d
    return found


def _preprocessed(text: str, macros: dict[str, _Macro]) -> Iterator[str]:
    """The text behind the preprocessor; `macros` are known, and get those that it defines."""
    taken = [(True, True)]  # for each open condition: whether it holds, and whether one did before
    pending: list[str] = []
    for line in _logical_lines(text):
        word = re.match(r"#\s*(\w+)", line)
        if word is None:
            if taken[-1][0]:
                pending.append(line)
            continue
        yield _expanded("".join(pending), macros)
        pending = []
        rest = re.sub(r"/\*.*?\*/", "", line[word.end():], flags=re.S).strip()
        if word[1] in ("if", "ifdef", "ifndef"):
            holds = taken[-1][0] and _holds(word[1], rest, macros)
            taken.append((holds, holds or not taken[-1][0]))
        elif word[1] in ("elif", "else"):
            _, before = taken.pop()
            holds = not before and (word[1] == "else" or _holds("if", rest, macros))
            taken.append((holds, before or holds))
        elif word[1] == "endif":
            taken.pop()
        elif taken[-1][0] and word[1] == "define":
            _define(line, macros)
        elif taken[-1][0] and word[1] == "undef" and rest not in _GIVEN:
            macros.pop(rest, None)
    yield _expanded("".join(pending), macros)


def _logical_lines(text: str) -> Iterator[str]:
    """The lines of a text, a directive with those that continue it."""
    lines = iter(text.splitlines(keepends=True))
    for line in lines:
        while line.lstrip().startswith("#") and line.endswith("\\\n"):
            line = line[:-2].rstrip() + "\n" + next(lines)
        yield line


def _define(line: str, macros: dict[str, _Macro]) -> None:
    match = _DEFINE.match(line)
    assert match is not None, line
    if match[1] not in _GIVEN:
        params = None if match[2] is None else tuple(
            p.strip() for p in match[2][1:-1].split(",") if p.strip())
        macros[match[1]] = _Macro(params, tuple(_TOKEN.findall(match[3].strip())))


def _holds(word: str, rest: str, macros: Mapping[str, _Macro]) -> bool:
    """Whether a condition holds; a name that is not defined is 0."""
    if word != "if":
        return (rest in macros) == (word == "ifdef")
    text = re.sub(r"'(.)'", lambda m: str(ord(m[1])), rest)
    text = re.sub(r"defined *(?:\((\w+)\)|(\w+))",
                  lambda m: str(int((m[1] or m[2]) in macros)), text)
    text = re.sub(r"[A-Za-z_]\w*", lambda m: "".join(macros[m[0]].body) if m[0] in macros else "0",
                  text)
    text = text.replace("||", " or ").replace("&&", " and ").replace("!=", "≠")
    text = text.replace("!", " not ").replace("≠", "!=")
    if not re.fullmatch(r"[\d\s()<>=!]|(?:[\d\s()<>=!]|or|and|not)+", text):
        raise InternalError("GT7203", f"a condition of a header is not known: {rest}")
    return bool(eval(text, {"__builtins__": {}}))


def _expanded(text: str, macros: Mapping[str, _Macro], hidden: frozenset[str] = frozenset()) -> str:
    """The text with its macros replaced; those that are `hidden` stay."""
    tokens, out, at = _TOKEN.findall(text), [], 0
    while at < len(tokens):
        token, at = tokens[at], at + 1
        macro = None if token in hidden else macros.get(token)
        if macro is None:
            out.append(token)
            continue
        args: list[str] = []
        if macro.params is not None:
            if at >= len(tokens) or tokens[at] != "(":
                out.append(token)
                continue
            args, at = _arguments(tokens, at)
        out.append(_replaced(macro, args, macros, hidden | {token}))
    return "".join(out)


def _arguments(tokens: list[str], at: int) -> tuple[list[str], int]:
    """The arguments of a call whose `(` is at `at`, and where the tokens go on."""
    args, depth = [""], 0
    while True:
        token, at = tokens[at], at + 1
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return [a.strip() for a in args], at
        if token == "," and depth == 1:
            args.append("")
        elif depth > 1 or token != "(":
            args[-1] += token


def _replaced(macro: _Macro, args: list[str], macros: Mapping[str, _Macro],
              hidden: frozenset[str]) -> str:
    """The replacement of a call, its parameters replaced and its macros expanded in turn."""
    names = macro.params or ()
    if names and names[-1] == "...":
        args = [*args[:len(names) - 1], ", ".join(args[len(names) - 1:])]
        names = (*names[:-1], "__VA_ARGS__")
    values = dict(zip(names, args, strict=False))
    pasted = {i + d for i, t in enumerate(macro.body) if t == "##" for d in (-1, 1)}
    text = "".join(
        "" if t == "##" else t if t not in values else
        values[t] if i in pasted else _expanded(values[t], macros, hidden)
        for i, t in enumerate(macro.body))
    return _expanded(text, macros, hidden)


def _items(text: str) -> Iterator[Definition]:
    """The functions and tables of a text without directives, each with the comment before it."""
    depth, item, comment = 0, "", ""
    for token in _TOKEN.findall(text):
        if not item and (token.isspace() or token == ";"):
            continue
        if not item and token.startswith("/*"):
            comment = token
            continue
        item += token
        depth += (token == "{") - (token == "}")
        if depth == 0 and (token == ";" or (token == "}" and not _TABLE.match(item))):
            if (head := _HEAD.match(item)) and not item.startswith("typedef"):
                yield Definition(head[1], _laid_out(item, "" if "----" in comment else comment))
            item, comment = "", ""


def _laid_out(item: str, comment: str) -> str:
    """The text of a definition; a function that stands on one line gets lines of its own."""
    if "\n" in item:
        first, rest = item.split("\n", 1)
        item = f"{first.rstrip()}\n{textwrap.dedent(rest)}"
    elif item.endswith("}"):
        head, body = item[:-1].split("{", 1)
        item = f"{head.rstrip()}\n{{\n    {body.strip()}\n}}"
    lines = [line.rstrip() for line in item.splitlines() if line.strip()]
    text = "\n".join(f"    {line}" if 1 < i < len(lines) - 1 and not line.startswith(" ") else line
                     for i, line in enumerate(lines))
    text = re.sub(r"^(\s*)(?=mem(?:cpy|set)\()", r"\1(void)", text, flags=re.M)
    return (f"{comment}\n" if comment else "") + text
