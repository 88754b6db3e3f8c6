"""Times that are kept, and whether a build is slower than they say.

Two measurements at different moments differ by more than the noise in each. The bounds of a base
are those of all its runs together, and the comparison's are wider by as much as the medians of
these runs differ. So each `--save` to one file makes the comparison more honest.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from graphtool.analysis.bounds import block_medians, median_bounds
from graphtool.errors import InputError, UsageError
from graphtool.escaping import visible
from graphtool.io import files
from graphtool.io.versions import Format, checked
from graphtool.machines import model as processor

BENCH = Format("graphtool/bench", "NAME.json", "GT3139", "GT3139",
               "`graphtool bench BUILD --save FILE` writes one")
LEAST_GAIN = 0.005  # a smaller difference is none
DRIFT = 1.05  # how much runs differ, as long as fewer than ENOUGH are known
ENOUGH = 3
MOST = 200_000  # calls: a small model must be timed for as long as a large one
LONGEST = 1e9  # ms of a call, eleven days
Verdict = Literal["slower", "faster", "same", "unclear"]


class Base(msgspec.Struct, forbid_unknown_fields=True):
    """A file of `bench --save`. `runs` has, for each time that it was saved, milliseconds: the
    medians of blocks of successive calls."""

    format: str
    version: int
    since: str
    name: str
    processor: str
    threads: int
    sizes: dict[str, int]
    runs: list[list[float]]


class Compared(msgspec.Struct):
    """Times against a base. `ratio`: ours over the base's, above 1 is slower; `low` and `high` are
    its bounds. `failed`: slower for certain, and by more than was allowed. `note`: why there is no
    clear verdict."""

    base: str
    before_ms: float
    after_ms: float
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    allowed: float
    failed: bool
    note: str = ""


def read_base(path: Path) -> Base:
    """Raises InputError GT3139 for a file that is no base, GT0334 for one of a newer version."""
    document = files.read_json(files.read_bytes(path), str(path))
    checked(BENCH, document, str(path))
    try:
        found = msgspec.convert(document, Base)
    except msgspec.ValidationError as error:
        raise InputError("GT3139", f"malformed base: {error}", where=str(path)) from error
    if not found.runs or not all(found.runs):
        raise InputError("GT3139", "malformed base: a run without times", where=str(path))
    if odd := [x for r in found.runs for x in r if not 0 < x < LONGEST]:
        raise InputError("GT3139", f"malformed base: {odd[0]:g} ms is no time of a call",
                         where=str(path))
    return found


def fresh(name: str, threads: int, sizes: Mapping[str, int]) -> Base:
    """A base without times, of a build on this machine."""
    return Base(**BENCH.head, name=name, processor=processor(), threads=threads, sizes=dict(sizes),
                runs=[])


def to_save(path: Path, new: Base) -> Base:
    """The base of a file to which times are added: `new`, or that of the same build on the same
    machine. Raises UsageError GT3135 otherwise, InputError GT3139."""
    base = read_base(path) if path.exists() else new
    _refuse(_differences(base, new), path, "another file, or remove this one")
    return base


def to_compare(path: Path, new: Base) -> Base:
    """The base of a file to compare with. Raises InputError as `read_base`, UsageError GT3135 for
    one of other sizes or threads."""
    base = read_base(path)
    same = msgspec.structs.replace(new, name=base.name, processor=base.processor)
    _refuse(_differences(base, same), path,
            "give the same --threads and --dim, or --save anew")
    return base


def _refuse(differences: Sequence[str], path: Path, hint: str) -> None:
    if differences:
        raise UsageError("GT3135", f"{path.name} has other times: {'; '.join(differences)}",
                         where=str(path), hint=hint)


def save(base: Base, path: Path, times: Sequence[float]) -> int:
    """Write the base with the times of a run, in ms, in addition; returns how many runs it has."""
    base.runs.append([round(x, 6) for x in block_medians(times)])
    files.write_bytes(path, visible(
        msgspec.json.format(msgspec.json.encode(base), indent=1).decode() + "\n").encode())
    return len(base.runs)


def _differences(base: Base, new: Base) -> list[str]:
    rows = (("build", base.name, new.name), ("threads", base.threads, new.threads),
            ("sizes", _sizes(base), _sizes(new)), ("processor", base.processor, new.processor))
    return [f"{what} {there}, here {here}" for what, there, here in rows if there != here]


def _sizes(base: Base) -> str:
    return " ".join(f"{name}={size}" for name, size in sorted(base.sizes.items())) or "fixed"


def against_base(base: Base, path: Path, times: Sequence[float], allowed: float) -> Compared:
    """Times in ms compared with a saved base. Another processor gives no verdict."""
    spans = [median_bounds(r) for r in base.runs]
    ours = block_medians(times)
    now = median_bounds(ours)
    before = statistics.median(statistics.median(r) for r in base.runs)
    after = statistics.median(ours)
    known = [s for s in spans if s is not None]
    if now is None or len(known) < len(spans):
        return _compared(str(path), before, after, None, allowed, "too few runs: give more "
                                                                  "--seconds")
    drift = _drift([statistics.median(r) for r in base.runs])
    bounds = (now[0] / max(high for _, high in known) / drift,
              now[1] / min(low for low, _ in known) * drift)
    other = base.processor != processor()
    note = f"the base is of another processor, {base.processor}" if other else ""
    return _compared(str(path), before, after, bounds, allowed, note)


def _drift(medians: Sequence[float]) -> float:
    """The factor by which runs of one build differ at different moments."""
    seen = max(medians) / min(medians)
    return seen if len(medians) >= ENOUGH else max(seen, DRIFT)


def in_turns(base: str, before: Sequence[float], after: Sequence[float], ratio: float,
             low: float | None, high: float | None, allowed: float) -> Compared:
    """The comparison of two builds that ran in turns: the bounds are those of their ratio, the
    base's time over ours."""
    bounds = (1 / high, 1 / low) if low is not None and high is not None else None
    found = _compared(base, statistics.median(before), statistics.median(after), bounds, allowed,
                      "" if bounds else "too few runs: give more --seconds")
    return msgspec.structs.replace(found, ratio=1 / ratio)


def _compared(base: str, before: float, after: float, bounds: tuple[float, float] | None,
              allowed: float, note: str) -> Compared:
    ratio = after / before
    if bounds is None or note:
        low, high = bounds or (None, None)
        return Compared(base, before, after, ratio, low, high, "unclear", allowed, False, note)
    low, high = bounds
    verdict: Verdict = ("slower" if low > 1 + LEAST_GAIN else "faster" if high < 1 - LEAST_GAIN
                        else "same" if high <= 1 + max(allowed, LEAST_GAIN) else "unclear")
    return Compared(base, before, after, ratio, low, high, verdict, allowed,
                    verdict == "slower" and ratio > 1 + allowed,
                    "the times vary too much" if verdict == "unclear" else "")


def share(text: str) -> float:
    """`5%` as 0.05. Raises UsageError GT3136."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text.strip())
    if match is None:
        raise UsageError("GT3136", f"--fail-slower {text!r} is not a share", hint="as in 5%")
    return float(match[1]) / 100


def compared_lines(c: Compared) -> list[str]:
    """The verdict in words, with its bounds."""
    times = f"{c.before_ms:.3f} → {c.after_ms:.3f} ms"
    if c.low is None or c.high is None:
        return [f"no verdict against {c.base}: {c.note}; {times}"]
    bounds = f"{_change(c.ratio)} ({_change(c.low)} to {_change(c.high)} with 95 % confidence)"
    if c.verdict == "unclear":
        return [f"no verdict against {c.base}: {c.note}; {times}, {bounds}"]
    told = {"same": "as fast as", "slower": "slower than", "faster": "faster than"}[c.verdict]
    word = f": more than the {100 * c.allowed:g} % that are allowed" if c.failed else ""
    return [f"{told} {c.base}{word}; {times}, {bounds}"]


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
