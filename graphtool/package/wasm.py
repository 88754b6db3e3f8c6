"""The modules of WebAssembly that not every engine takes, and what a module says of the memory that
it imports."""

from __future__ import annotations

from collections.abc import Iterator

_IMPORTS = 2  # the section
_FUNCTION, _TABLE, _MEMORY, _GLOBAL = range(4)  # kinds of imports
_HAS_MOST, _SHARED = 1, 2  # flags of limits


def beside(name: str, kind: str) -> str:
    """The file of a package with a module that not every engine takes: `threads`, `relaxed`."""
    return f"{name}.{kind}.wasm"


def shared_pages(module: bytes) -> int | None:
    """The pages of 64 KiB with which the memory begins that a module shares with others; None if
    it shares none. The format is that of WebAssembly's core specification, binary modules."""
    at = 8  # behind the magic number and the version
    while at < len(module):
        kind, (size, at) = module[at], _number(module, at + 1)
        if kind == _IMPORTS:
            return next((pages for flags, pages in _memories(module, at) if flags & _SHARED), None)
        at += size
    return None


def _memories(module: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The flags and the first size of each memory in a section of imports."""
    count, at = _number(module, at)
    for _ in range(count):
        for _ in range(2):  # the names of a module and of what it gives
            length, at = _number(module, at)
            at += length
        kind, at = module[at], at + 1
        if kind == _TABLE:
            at += 1  # the type of its elements
        if kind in (_TABLE, _MEMORY):
            flags, (least, at) = module[at], _number(module, at + 1)
            at = _number(module, at)[1] if flags & _HAS_MOST else at
            if kind == _MEMORY:
                yield flags, least
        elif kind == _FUNCTION:
            at = _number(module, at)[1]
        else:
            at += 2


def _number(module: bytes, at: int) -> tuple[int, int]:
    """An unsigned number in LEB128, and where it ends."""
    value = shift = 0
    while True:
        byte, at = module[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
