"""What graph files and program files write alike: sizes, symbols, numbers, tables, and the name of
the weights file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.errors import InputError
from graphtool.io.files import tagged_float
from graphtool.symbolic import Dim, Symbol, text

SPECIAL = ("nan", "inf", "-inf")  # the floats that JSON has no number for


def size_text(d: Dim) -> int | str:
    """A size as JSON has it: a number, or text."""
    return d if isinstance(d, int) else text(d)


def symbol_bounds(s: Symbol) -> dict[str, Any]:
    """A symbol's bounds, and its step if it has one."""
    step = {"step": s.step, "offset": s.offset} if s.step > 1 else {}
    return {"min": s.lo, "max": s.hi, **step}


def number(x: Any) -> Any:
    """A number of Python or numpy, or a string, as JSON has it."""
    if hasattr(x, "item"):
        x = x.item() if x.dtype.kind in "biuf" else float(x)
    return tagged_float(x) if isinstance(x, float) else x


def table(rows: Sequence[str], indent: str = " ") -> str:
    """A list with a row on each line."""
    return f"[\n{indent}" + f",\n{indent}".join(rows) + f"\n{indent[1:]}]" if rows else "[]"


def check_side_name(name: str, kind: str, where: str) -> None:
    """Raises InputError GT0343 if the weights file is in another folder than the document."""
    if "/" in name or "\\" in name or name in (".", ".."):
        raise InputError("GT0343", f"the weights file {name!r} is not {kind}", where=where)
