"""Names of ports and sizes as identifiers and as comments of any language.

A name of the model is never written as it is: an identifier has letters, digits and underscores,
and a comment has only characters that end no comment and no string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from graphtool.io.manifest_rows import PortRow

_WORDS = """
    abstract alignas alignof and arguments as asm assert async await become bool box break byte
    case catch chan char class const continue crate debugger def default defer del delete dims do
    double dyn elif else end enum eval except export extends extern fallthrough False final
    finally float fn for from func function global go goto if impl implements import in inline
    inputs instanceof int interface is lambda let long loop macro map match mod model module move
    mut new None nonlocal not np null or outputs override package pass priv private protected pub
    public raise range ref register restrict return run select self Self short signed sizeof
    static struct super switch this threads throw trait True true try type typedef typeof union
    unsafe unsigned unsized use var virtual void volatile weights where while with yield ctypes
    false std results Outputs
    """
RESERVED = frozenset(_WORDS.split())  # of all languages, and of the templates


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """An identifier for each name, all different in any case of letters; none is reserved."""
    known = {t.lower() for t in taken}
    out = []
    for name in names:
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:60] or "x"
        word = f"x_{word}" if word[0].isdigit() else f"{word}_" if word in RESERVED else word
        free, n = word, 2
        while free.lower() in known:
            free, n = f"{word}_{n}", n + 1
        known.add(free.lower())
        out.append(free)
    return out


def camel(word: str) -> str:
    """`last_hidden` as an exported name of Go: LastHidden."""
    parts = [p for p in word.split("_") if p]
    return "".join(p[0].upper() + p[1:] for p in parts) or "X"


def plain(text: str) -> str:
    """The text for a comment or a docstring: what could end one is left out."""
    return re.sub(r"[^\w .,:+\-()\[\]]", "?", text, flags=re.ASCII)[:120]


def shape(port: PortRow) -> str:
    """`f32[batch, 10]` for a comment."""
    return plain(f"{port.type}[{', '.join(map(str, port.shape))}]")


def listed(ports: Sequence[PortRow], words: Sequence[str]) -> list[str]:
    """A line for each port: its identifier, its type and its name in the model."""
    return [f"{w}: {shape(p)}" + ("" if w == p.name else f", in the model {plain(p.name)}")
            for p, w in zip(ports, words, strict=True)]
