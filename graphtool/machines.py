"""The table of known machines: how fast a core computes and reads, by which kernels are chosen.

The rows are the lines of machines.jsonl; `graphtool machine` measures a machine and prints its
line. A row changes which kernels are chosen, never what C means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from graphtool.errors import InputError, UsageError, one_of
from graphtool.escaping import visible
from graphtool.io import files
from graphtool.io.rows import RowError, decode

NAME = r"[\w.-]{1,60}"
GENERIC = "generic"  # the name of a target's own figures


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine.

    `cpus` is how its system names the processor: vendor, family and model, separated by slashes, or
    on Arm implementer and part; `isa` the target that it is. `lanes` are the f32 lanes of its units
    and `f32` the 10⁹ operations a second that a core does with them, a multiply-add being two;
    `rates` are multiples of that for other types and instructions: f64, f16, bf16 (dot products of
    pairs), int8 (of four), tile_bf16 and tile_int8 (a matrix unit). Caches are in bytes a core;
    `gbps` are GB/s that one core reads from each of them, and of 64 MB; `all_gbps` what all cores
    together read of the latter, 0 if unknown. `meet` are microseconds until two threads have met.
    `source` says whence the figures are.
    """

    name: str
    title: str
    cpus: list[str]
    isa: str
    lanes: int
    f32: float
    rates: dict[str, float]
    l1: int
    l2: int
    l3: int
    gbps: tuple[float, float, float, float]
    source: str
    all_gbps: float = 0.0
    meet: float = 0.2

    def line(self) -> str:
        """The row as a line of the table."""
        return visible(json.dumps(asdict(self), ensure_ascii=False))


@cache
def table() -> Mapping[str, Machine]:
    """All rows by name."""
    text = (resources.files("graphtool") / "machines.jsonl").read_text(encoding="utf-8")
    rows = [_row(json.loads(line), "machines.jsonl") for line in text.splitlines()]
    return {m.name: m for m in rows}


def of_cpu(cpu: str) -> Machine | None:
    """The row of the processor that its system calls `cpu`, if it is known."""
    return next((m for m in table().values() if cpu in m.cpus), None)


def machine(word: str) -> Machine | None:
    """The row called `word`, or that of a file whose name ends in .json; None for the word
    `generic`: the target's own figures.

    Raises UsageError GT2103 for an unknown name, InputError GT2104 for a file that is no row.
    """
    if word == GENERIC:
        return None
    if word.endswith(".json"):
        return _row(files.read_json(files.read_bytes(Path(word)), word), word)
    if word not in table():
        raise UsageError("GT2103", f"unknown machine {word!r}",
                         hint=one_of(word, (GENERIC, *table()))
                         + "; or a .json file, as `graphtool machine -o` writes it")
    return table()[word]


def _row(raw: Any, where: str) -> Machine:
    """A row out of JSON, checked. Raises InputError GT2104."""
    try:
        return check(decode(raw, Machine), where)
    except RowError as error:
        raise InputError("GT2104", f"this is not the row of a machine: {error}", where=where,
                         hint="graphtool machine -o row.json measures this one") from error


def check(row: Machine, where: str) -> Machine:
    """The row, whose numbers make sense. Raises InputError GT2104."""
    try:
        numbers = (row.lanes, row.f32, row.l1, row.l2, row.l3, *row.gbps, *row.rates.values())
        if not all(0 < x < float("inf") for x in numbers):
            raise RowError("expected numbers above 0")
        if len(row.gbps) != 4 or row.all_gbps < 0 or row.meet < 0:
            raise RowError("expected four numbers and no negative one", ".gbps")
        if not re.fullmatch(NAME, row.name):
            raise RowError("expected letters, digits, - and .", ".name")
    except RowError as error:
        raise InputError("GT2104", f"this is not the row of a machine: {error}", where=where,
                         hint="graphtool machine -o row.json measures this one") from error
    return row
