"""Which names a model may have in C: files and C identifiers begin with the name."""

from __future__ import annotations

from pathlib import Path

from graphtool.errors import UsageError
from graphtool.kernels import headers

_LONGEST = 100  # file systems take names of 255 bytes, endings included


def check_name(name: str) -> None:
    """Raises UsageError GT2110 for what is no identifier, too long, or a kernel header's name."""
    if not name.isidentifier() or not name.isascii():
        raise UsageError("GT2110", f"{name[:_LONGEST]!r} cannot name a C function",
                         hint="use letters, digits and underscores")
    if len(name) > _LONGEST:
        raise UsageError("GT2110", f"{name[:20]}… has {len(name)} letters, {_LONGEST} at most")
    if name in _taken():
        raise UsageError("GT2110", f"{name}.h is a header of the kernels",
                         hint=f"as in --name m_{name}")


def c_name(source: str) -> str:
    """A name that `check_name` takes, made from a file's name."""
    stem = "model" if source == "-" else Path(source.partition(":")[0]).name.split(".")[0]
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in stem).strip("_") or "model"
    return (f"m_{word}" if word[0].isdigit() or word in _taken() else word)[:_LONGEST]


def _taken() -> frozenset[str]:
    """The stems of the headers that are copied beside a model's own NAME.h."""
    return frozenset(name.removesuffix(".h") for name in headers.names())
