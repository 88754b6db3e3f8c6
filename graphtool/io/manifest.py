"""Reading build.json, of a model or of one of several entry points; compile/build.py writes it.

A runtime allocates by its numbers and hands its indices to the library, so their ranges are checked
here. Texts of sizes are checked where they are parsed. Nothing of the compiler is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from math import isfinite
from pathlib import Path

from graphtool.dtypes import dtype
from graphtool.errors import InputError, UsageError, listed, near
from graphtool.io import files
from graphtool.io.manifest_rows import (
    DimRow,
    EntryRow,
    Manifest,
    PortRow,
    ProgramRow,
    RolesRow,
    TrainingRow,
)
from graphtool.io.rows import RowError, decode
from graphtool.io.versions import BUILD, checked

MOST = 1 << 62
"""More than any size or number of bytes: it and small multiples of it fit in an int64."""
ALIGN = 64
_MODES = ("file", "embed", "c")


class OutOfRange(ValueError):
    """A field that has a value of the right type which cannot be; the message names it."""


def check_ranges(m: Manifest) -> None:
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
        _size(f"{where}threads.memory", e.threads.memory)


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
    _want(isfinite(p.scale) and p.scale >= 0, f"{where}.scale", "no scale")
    _range(f"{where}.zero", p.zero, -128, 255)
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
    seen = list(names)
    _want(len(set(seen)) == len(seen), where, "not of different names")


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


def read_manifest(build_dir: Path) -> Manifest:
    """build.json, checked. Raises InputError GT0339 for a file, GT2201 for another build.json."""
    path = build_dir / "build.json"
    if build_dir.is_file():
        name = "FILE" if len(str(build_dir)) > 60 else str(build_dir)
        if (build_dir.parent / "build.json").is_file():
            raise InputError("GT0339", "a build directory is wanted, and this is a file in one",
                             where=str(build_dir), hint=f"name the directory: {build_dir.parent}")
        raise InputError("GT0339", "a build directory is wanted, and this is a file",
                         where=str(build_dir),
                         hint=f"graphtool build {name} -o build/ compiles a graph, a program or a "
                              f"model\ngraphtool eval {name} --random runs a graph or a model "
                              "without compiling it")
    if not build_dir.exists():
        from graphtool.io.directory import recover
        recover(build_dir.resolve())
    if build_dir.is_dir() and not path.exists():
        inside = sorted(str(p.parent) for p in build_dir.glob("*/build.json"))
        hint = f"it contains {listed(inside)}" if inside else (
            "graphtool build MODEL -o build makes one")
        raise InputError("GT0339", "a build directory is wanted, and this one has no build.json",
                         where=str(build_dir), hint=hint)
    raw = files.read_json(files.read_bytes(path), str(path))
    try:
        m = decode(checked(BUILD, raw, str(path)), Manifest)
        check_ranges(m)
    except (RowError, OutOfRange) as error:
        raise InputError("GT2201", f"malformed build.json: {error}", where=str(path)) from error
    tokens = m.language.tokenizer if m.language else "-"
    for name in (m.library, m.header, m.weights, m.executable or "-", tokens, *m.files):
        if name in ("", ".", "..") or any(c in name for c in "/\\\0"):
            raise InputError("GT2206", f"{name[:80]!r} is not the name of a file of the build",
                             where=str(path))
    return m


def check_hashes(m: Manifest, build_dir: Path) -> None:
    """Raises InputError GT2205 if the library or the weights have changed since the build."""
    import hashlib
    for name in (m.library, m.weights):
        if name not in m.files:
            continue
        try:
            with (build_dir / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            digest = error.strerror or "unreadable"
        if digest != m.files[name]:
            raise InputError("GT2205", f"{name} is not as it was built",
                             where=str(build_dir / name), hint="build again")


FIELDS = tuple(f.name for f in fields(EntryRow))


def entry_names(m: Manifest) -> tuple[str, ...]:
    """The entry points of a build, the first one first; none if it has a single function."""
    return (m.entry, *m.entries) if m.entry else ()


def entry_base(m: Manifest) -> str:
    """The name of the build, from which the names of its entry points are made."""
    return m.header.removesuffix(".h")


def read_entry(build_dir: Path, entry: str | None = None) -> Manifest:
    """The manifest of a build, as if the entry point were its only one.

    Raises UsageError GT2222 if there are several and none is named, GT2223 for a name that the
    build does not have; else as `read_manifest`.
    """
    m = read_manifest(build_dir)
    known = entry_names(m)
    if entry is None:
        if known:
            raise UsageError("GT2222", f"this build has {len(known)} entry points",
                             where=str(build_dir), hint=f"--entry NAME: {listed(known)}")
        return m
    if entry not in known:
        raise UsageError("GT2223", f"there is no entry point {entry!r}", where=str(build_dir),
                         hint=near(entry, known, f"the build has {listed(known)}" if known else
                                   "the build has one function; leave --entry out"))
    return one_entry(m, entry)


def one_entry(m: Manifest, entry: str) -> Manifest:
    """The manifest with the rows of one of its entry points."""
    row = m.entries.get(entry)
    rows = {} if row is None else {f: getattr(row, f) for f in FIELDS}
    return replace(m, name=f"{entry_base(m)}_{entry}", entry=entry, entries={}, **rows)
