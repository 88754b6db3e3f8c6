"""Timing: candidates in turns, the times that are kept, and whether a build became slower.

After a warm-up the candidates run alternately, so that a slow moment affects all of them. Who is
faster is said only where the bounds of the ratio leave no doubt. Two measurements at different
moments differ by more than the noise in each: the bounds of a base are those of all its runs
together, and the bounds of the comparison are wider by as much as the medians of these runs differ.
So each `--save` to one file makes the comparison more honest.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from graphtool.analysis.bounds import block_medians, median_bounds, ratios
from graphtool.errors import InputError, UsageError
from graphtool.escaping import visible
from graphtool.io import files
from graphtool.io.versions import Format, checked
from graphtool.machines import model as processor
from graphtool.report.findings import Finding, Outcome, outcome

BENCH = Format("graphtool/bench", "NAME.json", "GT3139", "GT3139",
               "`graphtool bench BUILD --save FILE` writes one")
DRIFT = 1.05  # how much runs differ, as long as fewer than ENOUGH are known
ENOUGH = 3
CALLS = 200_000  # calls: a small model must be timed for as long as a large one
LONGEST = 1e9  # ms of a call, eleven days
Verdict = Literal["slower", "faster", "same", "unclear"]
WARM_UP = 3
MOST = 1000  # rounds
LEAST = 6  # rounds; the median of fewer has no bounds of 95 %
LEAST_GAIN = 0.005  # a smaller difference is none
NARROW = 1.25  # the upper bound over the lower one, above which no factor is stated


class Timing(msgspec.Struct):
    """Times of one contestant's call in ms. `spread` is the interquartile range over the median."""

    name: str
    runs: int
    median_ms: float
    min_ms: float
    max_ms: float
    spread: float


class Bench(msgspec.Struct):
    """`bench --json`; schemas/bench.schema.json is made from it.

    `ratio` is the median of the other's time over ours: above 1, ours is faster. Its bounds of 95 %
    are `low` and `high`. `clear`: they exclude a ratio of 1, and are so close to each other that
    the ratio is a verdict. null: there is no other contestant, or there are too few runs.
    """

    threads: int
    timings: list[Timing]
    ratio: float | None
    low: float | None = None
    high: float | None = None
    clear: bool = False
    compared: Compared | None = None


def bench(contestants: Mapping[str, Callable[[], object]], threads: int,
          seconds: float = 2.0, most: int = MOST) -> Bench:
    """Time each contestant for about `seconds`. The first is ours, the second the one to compare
    with."""
    return compared(threads, race(contestants, seconds, most))


def race(contestants: Mapping[str, Callable[[], object]], seconds: float = 2.0,
         most: int = MOST) -> dict[str, list[float]]:
    """Milliseconds of each contestant's calls, in turns, after a warm-up."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        for _ in range(WARM_UP):
            run()
    end = time.perf_counter() + seconds * len(contestants)
    while (time.perf_counter() < end or len(samples[next(iter(samples))]) < LEAST) and len(
            samples[next(iter(samples))]) < most:
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            samples[name].append(1000 * (time.perf_counter() - start))
    return samples


def compared(threads: int, samples: Mapping[str, Sequence[float]]) -> Bench:
    """The report of times in ms, by contestant in the order of the rounds."""
    timings = [_timing(name, list(times)) for name, times in samples.items()]
    if len(timings) < 2:
        return Bench(threads, timings, None)
    ours, others = list(samples.values())[:2]
    result = ratios(ours, others)
    low, high = median_bounds(result) or (None, None)
    clear = low is not None and high is not None and high <= NARROW * low and (
        low > 1 + LEAST_GAIN or high < 1 - LEAST_GAIN)
    return Bench(threads, timings, statistics.median(result), low, high, clear)


def _timing(name: str, times: list[float]) -> Timing:
    low, middle, high = statistics.quantiles(times, n=4)
    return Timing(name, len(times), middle, min(times), max(times), (high - low) / middle)


def bench_lines(b: Bench) -> list[str]:
    """The report as lines of text: milliseconds of each contestant, then the ratio."""
    width = max(len(t.name) for t in b.timings)
    out = [f"{t.name:<{width}}  {t.median_ms:9.3f} ms  (min {t.min_ms:.3f}, max {t.max_ms:.3f}, "
           f"spread {100 * t.spread:.1f} %, {t.runs} runs)" for t in b.timings]
    if b.ratio is not None:
        out.append(_verdict(b, b.ratio))
    return out + (compared_lines(b.compared) if b.compared else [])


def bench_outcome(b: Bench, build: str) -> Outcome:
    """A finding for each contestant, and one for the comparison with a rival or a base."""
    findings = [Finding("bench/time", t.name, "ok", f"{t.median_ms:.3f} ms (spread "
                        f"{100 * t.spread:.1f} %, {t.runs} runs)") for t in b.timings]
    if b.ratio is not None:
        findings.append(Finding("bench/ratio", build, "ok" if b.clear else "note",
                                _verdict(b, b.ratio)))
    if b.compared is not None:
        level = {"slower": "warning", "unclear": "note"}
        findings.append(Finding(
            f"bench/{b.compared.verdict}", build, "error" if b.compared.failed else
            level.get(b.compared.verdict, "ok"),  # type: ignore[arg-type]
            compared_lines(b.compared)[0], "", b.compared.base))
    lines = bench_lines(b)
    return outcome("bench", build, lines[-1], findings, lines)


def _verdict(b: Bench, ratio: float) -> str:
    """Who is faster, or why that cannot be said."""
    rival = f"{b.timings[1].name} at {b.threads} thread{'s' if b.threads != 1 else ''}"
    if b.low is None or b.high is None:
        return f"no verdict on {rival}: {b.timings[0].runs} runs are too few; give more --seconds"
    if not b.clear:
        why = "no difference is seen" if b.high <= NARROW * b.low else "the times vary too much"
        return (f"no verdict on {rival}: {why}; {b.low:.2f} to {b.high:.2f} times as fast, with "
                "95 % confidence")
    word = "faster" if ratio > 1 else "slower"
    low, factor, high = sorted((b.low, ratio, b.high) if ratio > 1 else (
        1 / b.low, 1 / ratio, 1 / b.high))
    return (f"{factor:.2f} times {word} than {rival} ({low:.2f} to {high:.2f} with 95 % "
            "confidence)")


# ---- against times that were kept ----------------------------------------------------------------

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
        base = msgspec.convert(document, Base)
    except msgspec.ValidationError as error:
        raise InputError("GT3139", f"malformed base: {error}", where=str(path)) from error
    if not base.runs or not all(base.runs):
        raise InputError("GT3139", "malformed base: a run without times", where=str(path))
    if odd := [x for r in base.runs for x in r if not 0 < x < LONGEST]:
        raise InputError("GT3139", f"malformed base: {odd[0]:g} ms is no time of a call",
                         where=str(path))
    return base


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
    """How much runs of one build differ at different moments, as a factor."""
    seen = max(medians) / min(medians)
    return seen if len(medians) >= ENOUGH else max(seen, DRIFT)


def in_turns(base: str, before: Sequence[float], after: Sequence[float], ratio: float,
             low: float | None, high: float | None, allowed: float) -> Compared:
    """The comparison of two builds that ran in turns: the bounds are those of their ratio, the
    base's time over ours."""
    bounds = (1 / high, 1 / low) if low is not None and high is not None else None
    comparison = _compared(base, statistics.median(before), statistics.median(after), bounds,
                           allowed, "" if bounds else "too few runs: give more --seconds")
    return msgspec.structs.replace(comparison, ratio=1 / ratio)


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
    words = {"same": "as fast as", "slower": "slower than", "faster": "faster than"}[c.verdict]
    word = f": more than the {100 * c.allowed:g} % that are allowed" if c.failed else ""
    return [f"{words} {c.base}{word}; {times}, {bounds}"]


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
