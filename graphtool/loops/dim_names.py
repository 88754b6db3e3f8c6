"""Names in a program and in its author's source: of dims, and of the line of a node.

A kernel would mistake a dim `n` for its own iterator `n`. Every dim with such a name gets one more
`_`, whether or not it ends in some already, so that the author's name can be told from it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from graphtool.symbolic import Dim, Equation, Symbol, dim_of, substitute, symbols, text

# iterators, scalars and numbers of kernels, and the indices that templates hand to their hooks
_OWN = re.compile(r"((acc|at|c|i|j|k|num|o|r|u|v)\d+|acc|b|count|d|m|n|o|oh|ow|row|s|t)_*")


def in_program(name: str) -> str:
    """The name in a program of the dim that the author calls so."""
    return f"{name}_" if _OWN.fullmatch(name) else name


def by_author(name: str) -> str:
    """The author's name of a dim of a program."""
    return name[:-1] if name.endswith("_") and _OWN.fullmatch(name) else name


def symbol_by_author(s: Symbol) -> Symbol:
    """The symbol of a program under the author's name."""
    return replace(s, name=by_author(s.name))


def dim_by_author(d: Dim) -> Dim:
    """A size of a program in the author's names."""
    return substitute(d, {s.name: dim_of(new) for s in symbols(d)
                          if (new := symbol_by_author(s)) != s})


def equation_by_author(e: Equation) -> Equation:
    """What two sizes of a program must satisfy, in the author's names."""
    return Equation(dim_by_author(e.left), dim_by_author(e.right))


def author_text(d: Dim) -> str:
    """The text of a size of a program in the author's names."""
    return text(dim_by_author(d))


_AT = re.compile(r"(?P<file>[^\s:]+\.\w+):(?P<line>\d{1,9})\b")


def source_line(where: str) -> tuple[str, int] | None:
    """The file and the line of `mlp.py:20 MLP.forward`; None for a text that begins otherwise."""
    match = _AT.match(where)
    return (match["file"], int(match["line"])) if match and int(match["line"]) else None
