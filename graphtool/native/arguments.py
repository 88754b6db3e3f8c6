"""The arguments of a run: arrays of the caller as compiled code takes them, and its results."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtool.dtypes import dtype
from graphtool.errors import InputError, listed, near
from graphtool.io.manifest_rows import PortRow
from graphtool.native import memory_map

if TYPE_CHECKING:
    from graphtool.symbolic import Dim

Array = np.ndarray[Any, Any]
Seen = list[tuple[str, np.dtype[Any], tuple[int, ...]]]  # name, type and shape of each input
Result = tuple[str, tuple[int, ...], np.dtype[Any]]  # name, shape and type of an output


def as_before(seen: Seen, given: Mapping[str, Any]) -> list[Array] | None:
    """The named arrays, if types, shapes and layouts are those seen before; None if any is not."""
    arrays = []
    for name, kind, shape in seen:
        x = given.get(name)
        if type(x) is not np.ndarray or x.shape != shape or x.dtype != kind or not (
                x.flags.c_contiguous and x.flags.aligned):
            return None
        arrays.append(x)
    return arrays


def _address_reader() -> Callable[[Array], int]:
    """A fast way to the address of an array: `a.ctypes.data` takes 2 µs, as long as a tiny model.

    In CPython the pointer is the first field of numpy's public struct; that is tried out here.
    """
    field, head = ctypes.c_size_t.from_address, object.__basicsize__

    def quick(a: Array) -> int:
        return field(id(a) + head).value

    def slow(a: Array) -> int:
        return int(a.ctypes.data)
    probe = np.arange(12)
    usable = sys.implementation.name == "cpython" and head == 2 * ctypes.sizeof(ctypes.c_void_p)
    return quick if usable and all(quick(a) == slow(a) for a in (probe, probe[3:])) else slow


address = _address_reader()


def as_array(name: str, x: Any) -> Array:
    """An input as an array; its memory is used without a copy if possible."""
    if isinstance(x, np.ndarray):
        return x
    try:
        return np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError("GT2217", f"{name} cannot be read as an array: {error}",
                         hint="give a numpy array, or a tensor on the CPU, detached") from error


def numbers(shape: Sequence[Dim], sizes: Mapping[str, Dim]) -> tuple[int, ...]:
    """The shape for these sizes, which must be all that it mentions."""
    fixed = tuple(d for d in shape if isinstance(d, int))
    if len(fixed) == len(shape):
        return fixed
    from graphtool.symbolic import substitute
    return tuple(int(substitute(d, sizes)) for d in shape)  # type: ignore[arg-type]


class SizedPort:
    """A port with its dims as polynomials."""

    def __init__(self, row: PortRow, table: Mapping[str, Dim]) -> None:
        self.name, self.dtype = row.name, dtype(row.type)
        self.shape, self.below = _dims(row.shape, table), _dims(row.below, table)
        self.scale, self.zero = row.scale, row.zero
        self.room: Dim | None = None  # elements at most, where the run computes the shape
        if row.room is not None:
            self.room, = _dims([row.room], table)


def _dims(rows: Sequence[int | str], table: Mapping[str, Dim]) -> tuple[Dim, ...]:
    if all(isinstance(d, int) for d in rows):
        return tuple(rows)  # type: ignore[arg-type]
    from graphtool.symbolic.parse import parse
    return tuple(d if isinstance(d, int) else parse(d, table) for d in rows)


def extents(spec: SizedPort, sizes: Mapping[str, Dim]) -> tuple[int, ...]:
    """The shape of an output's array; one line of its room where only the run tells."""
    shape = spec.shape if spec.room is None else (spec.room,)
    return numbers(shape, sizes)


def given_results(wanted: Sequence[Result], out: Mapping[str, Array]) -> dict[str, Array]:
    """The results' arrays: those of the caller, and new ones for the rest.

    Raises InputError GT2218 for a name of no output, GT2216 for an array that does not fit.
    """
    known = [name for name, _, _ in wanted]
    if unknown := [n for n in out if n not in known]:
        raise InputError("GT2218", f"unknown output {unknown[0]!r}",
                         hint=near(unknown[0], known, f"the model gives {listed(known)}"))
    results = {}
    for name, shape, kind in wanted:
        r = out.get(name)
        if r is None:
            r = memory_map.result(shape, kind)
        elif type(r) is not np.ndarray or r.shape != shape or r.dtype != kind or not (
                r.flags.carray):
            raise InputError("GT2216", f"out[{name!r}] must be a writable contiguous {kind} array "
                                       f"of shape {list(shape)}")
        results[name] = r
    return results
