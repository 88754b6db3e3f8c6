"""Which numbers and indices build.json may have: a runtime allocates by them, and hands them to the
library. Texts of sizes are checked where they are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from graphtool.dtypes import dtype
from graphtool.io.manifest_rows import (
    DimRow,
    EntryRow,
    Manifest,
    PortRow,
    ProgramRow,
    RolesRow,
    TrainingRow,
)

MOST = 1 << 62
"""More than any size or number of bytes: it and small multiples of it fit in an int64."""
ALIGN = 64
_MODES = ("file", "embed", "c")


class OutOfRange(ValueError):
    """A field that has a value of the right type which cannot be; the message names it."""


def check(m: Manifest) -> None:
    """Raises OutOfRange for the first field with a value that cannot be, InputError GT0301 for an
    unknown element type."""
    _range("weights_offset", m.weights_offset)
    _range("weights_bytes", m.weights_bytes)
    _want(m.weights_offset % ALIGN == 0, "weights_offset", f"no multiple of {ALIGN}")
    _want(m.weights_mode in _MODES, "weights_mode", f"none of {', '.join(_MODES)}")
    _want(m.name.isidentifier() and m.name.isascii(), "name", "no name of a function")
    _want(not m.entries or bool(m.entry), "entry", "empty, and there are further entry points")
    for level in m.levels:
        _range("levels", level, 1, 9)
    _entry("", m)
    for k, entry in m.entries.items():
        _entry(f"entries.{k}.", entry)
    for k, roles in (m.language.roles if m.language else {}).items():
        _want(k == m.entry or k in m.entries, f"language.roles.{k}", "no entry point")
        _roles(f"language.roles.{k}.", roles, m if k == m.entry else m.entries[k])
    if m.training is not None:
        _training(m.training)


def _entry(where: str, e: Manifest | EntryRow) -> None:
    _ports(where, e)
    if e.live is not None:
        _range(f"{where}live", e.live)
    for output, source in e.donations:
        _range(f"{where}donations", output, 0, len(e.outputs) - 1)
        _range(f"{where}donations", source, 0, len(e.inputs) - 1)
    for i, step in enumerate(e.steps):
        for number in (step.flops, step.bytes):
            _size(f"{where}steps[{i}]", number)
        _want(isfinite(step.error) and step.error >= 0, f"{where}steps[{i}].error", "no error")
    if e.threads is not None:
        _range(f"{where}threads.most", e.threads.most, 1, 1 << 20)
        _range(f"{where}threads.least", e.threads.least)
        _size(f"{where}threads.work", e.threads.work)


def _ports(where: str, e: Manifest | EntryRow | ProgramRow) -> None:
    _size(f"{where}arena", e.arena)
    _unique(f"{where}dims", [d.name for d in e.dims] + [s.name for s in e.sizes])
    for d in e.dims:
        _dim(f"{where}dims.{d.name}", d)
    for s in e.sizes:
        low, high = s.min or 0, MOST if s.max is None else s.max
        _range(f"{where}sizes.{s.name}", low, -MOST, high)
        _range(f"{where}sizes.{s.name}", high, low)
    for kind, ports in (("inputs", e.inputs), ("outputs", e.outputs)):
        _unique(f"{where}{kind}", (p.name for p in ports))
        for i, p in enumerate(ports):
            _port(f"{where}{kind}[{i}]", p)


def _port(where: str, p: PortRow) -> None:
    for d in (*p.shape, *p.below, *([] if p.room is None else [p.room])):
        _size(where, d)
    _product(where, [d for d in p.shape if isinstance(d, int)])
    dtype(p.type)


def _dim(where: str, d: DimRow) -> None:
    high = MOST if d.max is None else d.max
    _range(f"{where}.min", d.min, 0, high)
    _range(f"{where}.max", high)
    _range(f"{where}.step", d.step, 1)
    _range(f"{where}.offset", d.offset, -MOST)


def _roles(where: str, r: RolesRow, e: Manifest | EntryRow) -> None:
    for name, at in (("tokens", r.tokens), ("position", r.position)):
        _range(where + name, at, 0, len(e.inputs) - 1)
    for name, at in (("places", r.places), ("mask", r.mask)):
        _range(where + name, at, -1, len(e.inputs) - 1)
    _range(f"{where}logits", r.logits, 0, len(e.outputs) - 1)
    for name, count in (("size", r.size), ("room", r.room), ("least", r.least), ("most", r.most),
                        ("texts", r.texts)):
        _range(where + name, count, 1, 1 << 40)


def _training(t: TrainingRow) -> None:
    _range("training.state_bytes", t.state_bytes)
    _range("training.accumulate", t.accumulate, 1)
    _want(isfinite(t.lr), "training.lr", "not finite")
    end = 0
    for c in sorted(t.state, key=lambda c: c.offset):
        where = f"training.state.{c.name}"
        _range(f"{where}.offset", c.offset, end, t.state_bytes)
        _want(c.offset % ALIGN == 0, f"{where}.offset", f"no multiple of {ALIGN}")
        end = c.offset + _product(where, c.shape) * dtype(c.type).bytes
        _range(where, end, 0, t.state_bytes)
    _unique("training.state", (c.name for c in t.state))
    whole = -(-end // ALIGN) * ALIGN
    _want(t.state_bytes == whole, "training.state_bytes", f"not the {_short(whole)} of its arrays")
    _want({"init", "step"} <= t.programs.keys(), "training.programs", "without init or step")
    for c in t.fixed:
        where = f"training.fixed {c.name}"
        _want(c.offset >= 0 and c.offset % ALIGN == 0, f"{where}.offset", f"no multiple of {ALIGN}")
        _product(where, c.shape)
    held = {c.name for c in (*t.state, *t.fixed)}
    _want(all(p in held for parts in t.model.values() for p in parts), "training.model",
          "no part of the state")
    for part, row in t.programs.items():
        _ports(f"training.programs.{part}.", row)


def _product(where: str, shape: Sequence[int]) -> int:
    elements = 1
    for d in shape:
        _range(where, d)
        elements *= d
    _range(where, elements)
    return elements


def _unique(where: str, names: Iterable[str]) -> None:
    found = list(names)
    _want(len(set(found)) == len(found), where, "not of different names")


def _size(where: str, d: int | str) -> None:
    if isinstance(d, int):
        _range(where, d)


def _range(where: str, x: int, low: int = 0, high: int = MOST) -> None:
    _want(low <= x <= high, where, f"{_short(x)}, not within {_short(low)} to {_short(high)}")


def _short(x: int) -> str:
    return str(x) if abs(x) < 10**20 else f"{x:.2e}" if abs(x) < 10**300 else "a huge number"


def _want(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise OutOfRange(f"{where} is {what}")
