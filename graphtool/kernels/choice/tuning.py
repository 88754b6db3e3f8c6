"""The tuning file: measured times of candidates, in JSON. Each line is one site on one kind of
machine.

The first line is the head: format and version. A head applies to the lines after it, so that files
can be joined. Lines are in canonical order, so that files can be merged as text; of two lines with
the same key the later one counts. A line is used only on machines with the instruction set and
cache sizes on which it was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.versions import TUNING, checked
from graphtool.ir.plan import Plan, plan
from graphtool.kernels.choice.sites import Attention, Conv, Product, Site
from graphtool.target import Target, isa

DTYPE, LAYOUT = "f32", "channels last"


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line: the key, and microseconds for each candidate. schemas/tuning.schema.json shows
    it."""

    site: str
    dtype: str
    layout: str
    isa: str
    l1: int
    l2: int
    l3: int
    threads: int
    us: dict[str, float]


Key = tuple[str, str, str, str, int, int, int, int]


@dataclass(frozen=True)
class Tuning:
    """All measurements by key. `repeated` lists the sites of lines that a later line replaced."""

    rows: Mapping[Key, Row] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()

    def find(self, site: Site, target: Target) -> list[tuple[Plan, float]]:
        """Candidates with their times, measured with the same number of threads, or else with
        the nearest number."""
        same = [r for r in (self.rows.get(key(measured(site), target, n))
                            for n in _nearest(self, target.threads)) if r is not None]
        return [(plan(c), us) for c, us in same[0].us.items()] if same else []


def _nearest(tuning: Tuning, threads: int) -> list[int]:
    counts = {k[-1] for k in tuning.rows}
    return sorted(counts, key=lambda n: (abs(n - threads), n))


def measured(site: Site) -> str:
    """The key of the site whose times are measured: numbers that are 0 take as long as others.
    """
    if isinstance(site, Attention):
        return str(replace(site, hidden=False))
    if isinstance(site, Product):
        return str(replace(site, zeros=False, dropped=False, large=False))
    return str(replace(site, zeros=False, large=False) if isinstance(site, Conv) else site)


def key(site: str, target: Target, threads: int) -> Key:
    """The key of a site's times: they are valid only for the same caches and instructions."""
    return site, DTYPE, LAYOUT, isa(target), target.l1, target.l2, target.l3, threads


def row(site: Site, target: Target, us: Mapping[Plan, float]) -> Row:
    """A line of the file for what was measured on the target."""
    ordered = sorted((str(c), float(f"{t:.4g}")) for c, t in us.items())
    return Row(*key(measured(site), target, target.threads), us=dict(ordered))


def key_of(r: Row) -> Key:
    """The key of a line."""
    return r.site, r.dtype, r.layout, r.isa, r.l1, r.l2, r.l3, r.threads


def merged(*many: Iterable[Row]) -> Tuning:
    """All rows; of two rows with the same key the later one counts."""
    rows: dict[Key, Row] = {}
    repeated = []
    for r in (r for rows_ in many for r in rows_):
        if key_of(r) in rows and rows[key_of(r)] != r:
            repeated.append(r.site)
        rows[key_of(r)] = r
    return Tuning(rows, tuple(dict.fromkeys(repeated)))


def load(path: Path) -> Tuning:
    """The rows of the file. Raises InputError GT0632 for a malformed line, GT0334 for a newer
    file."""
    rows = []
    for n, line in enumerate(files.read_bytes(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            if "format" in record:
                checked(TUNING, record, str(path))
                continue
            r = msgspec.convert(record, Row)
            if not r.us or not all(us > 0 for us in r.us.values()):
                raise ValueError("no candidate has a time")
            for c in r.us:
                plan(c)
        except (msgspec.DecodeError, ValueError, RecursionError, InputError) as error:
            if isinstance(error, InputError) and error.code == "GT0334":
                raise
            said = error.message if isinstance(error, InputError) else str(error)
            raise InputError("GT0632", f"line {n} is not a measurement: {said}", where=str(path),
                             hint="if lines conflict after a merge, keep either side") from error
        rows.append(r)
    return merged(rows)


def save(tuning: Tuning, path: Path) -> None:
    """Write the head, then the rows, sorted by key."""
    lines = [files.compact(TUNING.head),
             *(files.compact(msgspec.to_builtins(tuning.rows[k])) for k in sorted(tuning.rows))]
    files.write_bytes(path, "".join(line + "\n" for line in lines).encode())
