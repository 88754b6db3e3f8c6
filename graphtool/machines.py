"""The machine at hand, as its system describes it, and the table of known machines.

The rows of the table are the lines of machines.jsonl: how fast a core computes and reads. Kernels
are chosen by these figures. `graphtool machine` measures a machine and prints its line. A row
changes which kernels are chosen, never what C means; what a processor means for C is in target.py.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
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
    text = Path(__file__).with_name("machines.jsonl").read_text(encoding="utf-8")
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


def cores(root: Path = Path("/")) -> int:
    """The number of processors that this process may use: at most its affinity mask and the quotas
    of its cgroups, rounded down. `root` has the files of a machine."""
    status = _read(root / "proc/self/status")
    if match := re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE):
        most = sum(int(b or a) - int(a) + 1 for a, b in re.findall(r"(\d+)(?:-(\d+))?", match[1]))
    else:
        most = os.cpu_count() or 1
    return max(1, min([most, *map(int, _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """The quotas of this process's cgroups and of those above them, in processors."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        if line.count(":") < 2:
            continue
        _, names, group = line.split(":", 2)
        parts = [p for p in group.split("/") if p]
        if names and "cpu" not in names.split(","):
            continue
        for n in range(len(parts), -1, -1):
            if names:
                place = root.joinpath("sys/fs/cgroup/cpu", *parts[:n])
                words = [_read(place / f"cpu.cfs_{w}_us").strip() for w in ("quota", "period")]
            else:
                words = _read(root.joinpath("sys/fs/cgroup", *parts[:n], "cpu.max")).split()
            if len(words) == 2 and all(w.isdigit() and int(w) for w in words):
                yield int(words[0]) / int(words[1])


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""


def cpu_flags() -> frozenset[str]:
    """The CPU features that Linux names in /proc/cpuinfo; empty elsewhere."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def _cpuinfo(root: Path) -> dict[str, str]:
    """What Linux says of the first processor."""
    fields: dict[str, str] = {}
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields


def cpu(root: Path = Path("/")) -> str:
    """The processor as tables name it: `GenuineIntel/6/143` by vendor, family and model,
    `0x41/0xd0c` by implementer and part, `Apple M1`; empty if the system does not say."""
    info = _cpuinfo(root)
    for keys in (("vendor_id", "cpu family", "model"), ("CPU implementer", "CPU part")):
        if all(key in info for key in keys):
            return "/".join(info[key] for key in keys)
    return _apple() if sys.platform == "darwin" else ""


@cache
def _apple() -> str:
    """The first two words of the processor's name: `Apple M1`, also of a Pro or a Max."""
    import subprocess
    try:
        done = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True,
                              encoding="utf-8", timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return " ".join(done.stdout.split()[:2])


def model(root: Path = Path("/")) -> str:
    """The processor's own name and its numbers, as Linux has them in /proc/cpuinfo: `Intel(R)
    Xeon(R) Processor, family 6, model 143, stepping 8`. Elsewhere what Python calls the machine."""
    import platform
    info = _cpuinfo(root)
    name = info.get("model name") or info.get("Model") or platform.machine()
    numbers = (("family", "cpu family"), ("model", "model"), ("stepping", "stepping"),
               ("part", "CPU part"))
    return ", ".join((name, *(f"{word} {info[key]}" for word, key in numbers if key in info)))


def tiles_allowed() -> bool | None:
    """Whether Linux lets this process use the tiles of x86-64's matrix unit; None if there are
    none."""
    if "amx_tile" not in cpu_flags() or not sys.platform.startswith("linux"):
        return None
    from ctypes import CDLL
    # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
    return bool(CDLL(None).syscall(158, 0x1023, 18) == 0)


@cache
def caches() -> tuple[int, int, int]:
    """Bytes of the data caches of a core, according to Linux; 0 if unknown."""
    sizes = [0, 0, 0]
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, level, size = ((index / f).read_text("utf-8").strip()
                                 for f in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and level in ("1", "2", "3") and size[:-1].isdigit():
            sizes[int(level) - 1] = int(size[:-1]) << {"K": 10, "M": 20}.get(size[-1], 0)
    return sizes[0], sizes[1], sizes[2]
