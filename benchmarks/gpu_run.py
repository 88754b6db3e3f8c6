"""Measures the prepared cases on a machine with a GPU, within a limit of seconds.

Contestants load, compile and record in processes beside each other; all but one are stopped while
that one is timed. Each result is written at once, so a run that is killed keeps what it has. A
contestant that fails is a row with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

from benchmarks import contest, jobs, stats, work
from benchmarks.contest import Contestant, turn
from benchmarks.gpu_peers import PEERS
from benchmarks.stats import OURS
from benchmarks.work import Journal, Row

ROUNDS = 3
LEAST = 20.0  # seconds that are left when nothing new is begun
SANITIZED = ("mlp_b1.float32", "mlp_b1.bf16", "train_mlp_b64.float32")
TOOLS = ("memcheck", "racecheck")
SANITIZER_LIMIT = 40.0  # seconds


@dataclass
class Running:
    """Contestants by their state; `end` is when the run has to be over."""

    journal: Journal
    end: float
    waiting: list[tuple[str, str]]
    live: dict[tuple[str, str], Contestant] = field(default_factory=dict)

    @property
    def left(self) -> float:
        return self.end - time.monotonic()


def journal() -> Journal:
    return Journal(work.results("gpu.jsonl"), lambda row: (row["case"], row["contestant"]))


def run(options: argparse.Namespace) -> int:
    """Measure what the journal lacks; returns how many of graphtool's rows are failures."""
    kept = journal()
    done = {} if options.redo else kept.rows()
    peers = [name for name, p in PEERS.items() if p.installed]
    there = [c for c in options.models if (work.root() / "gpu" / f"{c}.zip").exists()]
    wanted = [(c, name) for name in peers for c in there if "median" not in done.get((c, name), {})]
    state = Running(kept, time.monotonic() + options.limit, wanted)
    kept.add({"case": "machine", "contestant": "", **machine(), "limit": options.limit})
    try:
        while state.waiting or state.live:
            if state.left < LEAST:
                break
            start(state, options.parallel)
            for key in ready(state):
                measure(state, key, options.seconds)
    finally:
        for key, c in state.live.items():
            c.stop()
            note(state, key, {"error": "the time of the run was over"})
    for key in state.waiting:
        note(state, key, {"error": "the time of the run was over"})
    sanitize(state, there)
    rows = kept.rows()
    return sum("error" in rows.get((c, OURS), {"error": ""}) for c in there)


def machine() -> Row:
    """The GPU, its driver, and torch, as they name themselves."""
    said = _said(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm",
                  "--format=csv,noheader"])
    torch = _said([sys.executable, "-c", "import torch; print(torch.__version__)"])
    return {"gpu": said or "none that nvidia-smi names", "torch": torch, **work.stamp()}


def _said(command: list[str]) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.stdout.strip() if not done.returncode else ""
    return ""


def start(state: Running, most: int) -> None:
    """Begin contestants, until as many as allowed prepare themselves."""
    while state.waiting and len(state.live) < most:
        case, name = key = state.waiting.pop(0)
        state.live[key] = contest.start("gpu_peers", case, name, os.cpu_count() or 1)


def ready(state: Running) -> list[tuple[str, str]]:
    """Contestants that have said that they are ready, or that they are not going to be."""
    pipes = {c.process.stdout: key for key, c in state.live.items() if c.process.stdout}
    there, _, _ = select.select(list(pipes), [], [], min(5.0, max(state.left - LEAST, 0.0)))
    return [pipes[p] for p in there]


def measure(state: Running, key: tuple[str, str], seconds: float) -> None:
    """Time one contestant while the others are stopped, write its row, and end it."""
    c = state.live.pop(key)
    try:
        c.row = c.hear(5.0)
        if c.alive:
            with stopped(state.live.values()):
                for _ in range(ROUNDS):
                    if c.alive:
                        turn(c, seconds, urgent=False)
        timed = asdict(stats.summary(c.rounds)) if c.alive and c.rounds else {}
        note(state, key, {**c.row, **timed})
    finally:
        c.stop()


@contextlib.contextmanager
def stopped(others: Iterable[Contestant]) -> Iterator[None]:
    """Stops contestants, and lets them go on afterwards."""
    groups = [c.process.pid for c in others]

    def send(which: signal.Signals) -> None:
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, which)
    send(signal.SIGSTOP)
    try:
        yield
    finally:
        send(signal.SIGCONT)


def note(state: Running, key: tuple[str, str], row: Row) -> None:
    """Write a row, and say it in a line."""
    case, name = key
    state.journal.add({"case": case, "contestant": name, **row})
    said = row.get("error") or (f"{1e3 * row['median']:.1f} µs" if "median" in row else "no time")
    off = f", error {row['error_rms']:.1e}" if "error_rms" in row else ""
    print(f"{case} by {name}: {said}{off}", flush=True)


# ---- compute-sanitizer --------------------------------------------------------------------------


def sanitize(state: Running, cases: list[str]) -> None:
    """Small cases under compute-sanitizer; a row for each tool."""
    tool = shutil.which("compute-sanitizer")
    for case in (c for c in SANITIZED if c in cases):
        for how in TOOLS:
            key = (case, how)
            if tool is None:
                note(state, key, {"error": "compute-sanitizer is not there"})
            elif state.left < LEAST:
                note(state, key, {"error": "the time of the run was over"})
            else:
                note(state, key, sanitized(tool, how, case))


def sanitized(tool: str, how: str, case: str) -> Row:
    command = [tool, "--tool", how, "--error-exitcode", "9", sys.executable, "-m",
               "benchmarks.worker", "gpu_peers", case, OURS, "1"]
    try:
        done = subprocess.run(command, env=jobs.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=SANITIZER_LIMIT)
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {SANITIZER_LIMIT:.0f} s"}
    lines = [x for x in done.stdout.splitlines() if x.startswith("=====")]
    work.results(f"gpu_{case}_{how}.log").write_text(done.stdout + done.stderr)
    said = next((x.lstrip("= ") for x in lines if "SUMMARY" in x), f"exit code {done.returncode}")
    return {"error": said} if done.returncode else {"said": said}
