"""Builds of several entry points: which there are, and what the manifest says of one of them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from graphtool.errors import UsageError, listed, near
from graphtool.io.manifest import read_manifest
from graphtool.io.manifest_rows import EntryRow, Manifest

FIELDS = tuple(f.name for f in fields(EntryRow))


def names(m: Manifest) -> tuple[str, ...]:
    """The entry points of a build, the first one first; none if it has a single function."""
    return (m.entry, *m.entries) if m.entry else ()


def base(m: Manifest) -> str:
    """The name of the build, from which the names of its entry points are made."""
    return m.header.removesuffix(".h")


def read_entry(build_dir: Path, entry: str | None = None) -> Manifest:
    """The manifest of a build, as if the entry point were its only one.

    Raises UsageError GT2222 if there are several and none is named, GT2223 for a name that the
    build does not have; else as `read_manifest`.
    """
    m = read_manifest(build_dir)
    known = names(m)
    if entry is None:
        if known:
            raise UsageError("GT2222", f"this build has {len(known)} entry points",
                             where=str(build_dir), hint=f"--entry NAME: {listed(known)}")
        return m
    if entry not in known:
        raise UsageError("GT2223", f"there is no entry point {entry!r}", where=str(build_dir),
                         hint=near(entry, known, f"the build has {listed(known)}" if known else
                                   "the build has one function; leave --entry out"))
    return chosen(m, entry)


def chosen(m: Manifest, entry: str) -> Manifest:
    """The manifest with the rows of one of its entry points."""
    row = m.entries.get(entry)
    rows = {} if row is None else {f: getattr(row, f) for f in FIELDS}
    return replace(m, name=f"{base(m)}_{entry}", entry=entry, entries={}, **rows)
