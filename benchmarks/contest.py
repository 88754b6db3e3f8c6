"""One contest: a model, a number of threads, contestants in processes, timed in turns.

Whoever is not timed is stopped, so that threads which spin while they wait disturb nobody. As root
the one that is timed gets real-time priority, which keeps other load of the machine away.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import building, jobs, stats, work
from benchmarks.work import Row

MOST_CALLS, START_TIMEOUT, ROUND_TIMEOUT = 2000, 600.0, 120.0
REAL_TIME = 80


@dataclass
class Contestant:
    """A worker process, what it said of itself, and its samples by round."""

    name: str
    process: subprocess.Popen[str]
    row: Row = field(default_factory=dict)
    rounds: list[list[float]] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        return "error" not in self.row

    def hear(self, timeout: float) -> Any:
        """The next line it says; an error row where it ends, or says nothing for too long."""
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            return {"error": f"no answer within {timeout:.0f} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended with {self.process.wait()}"}

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # what was to be written, nobody reads any more
                if pipe:
                    pipe.close()


def contest(model: str, names: list[str], threads: int, rounds: int, seconds: float,
            league: str = "peers") -> Row:
    """Build, load and time them all; a row with what each one gave.

    `league` is the module that says who they are: PEERS, `case` and `facts`.
    """
    rows: dict[str, Row] = {}
    for name in names:
        rows[name] = building.built(league, model, name, threads)
    ready = [n for n in names if "error" not in rows[n]]
    with started(league, model, ready, threads) as live:
        for k in range(rounds):
            for c in live if k % 2 == 0 else live[::-1]:
                if c.alive:
                    turn(c, seconds)
        for c in live:
            timed = asdict(stats.summary(c.rounds)) if c.alive and c.rounds else {}
            rows[c.name] |= {**c.row, **timed}
    return {"model": model, "threads": threads, "rounds": rounds, "seconds": seconds,
            **work.stamp(), "contestants": rows}


@contextlib.contextmanager
def started(league: str, model: str, names: list[str],
            threads: int) -> Iterator[list[Contestant]]:
    """The workers, loaded one after another and stopped until their turn; ended at the end."""
    live: list[Contestant] = []
    try:
        for name in names:
            live.append(start(league, model, name, threads))
            live[-1].row = live[-1].hear(START_TIMEOUT)
            if live[-1].alive:
                os.killpg(live[-1].process.pid, signal.SIGSTOP)
        yield live
    finally:
        for c in live:
            c.stop()


def start(league: str, model: str, name: str, threads: int) -> Contestant:
    """A worker that begins to load the model."""
    log = work.root() / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    env = building.environment(league, model, name, threads)
    with log.open("a") as stderr:
        return Contestant(name, subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", league, model, name, str(threads)],
            env=jobs.environment({**counts, **env}), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True))


def turn(c: Contestant, seconds: float, urgent: bool = True) -> None:
    """One turn; `urgent`: as root in real time. A contestant that fails here is out, and its row
    says why."""
    assert c.process.stdin
    try:
        os.killpg(c.process.pid, signal.SIGCONT)
        if urgent:
            hurry(c.process.pid, True)
        c.process.stdin.write(f"{seconds} {MOST_CALLS}\n")
        c.process.stdin.flush()
        heard = c.hear(ROUND_TIMEOUT)
        if urgent:
            hurry(c.process.pid, False)
        os.killpg(c.process.pid, signal.SIGSTOP)
    except OSError as error:
        heard = {"error": jobs.short(error)}
    if isinstance(heard, dict):
        c.row = {"error": heard["error"]}
        c.stop()
    else:
        c.rounds.append(heard)


def hurry(pid: int, on: bool) -> None:
    """Real-time priority for all threads of a process, or an ordinary one; without the right to
    do so, or on another system than Linux, nothing happens."""
    if not sys.platform.startswith("linux"):
        return
    policy, level = (os.SCHED_FIFO, REAL_TIME) if on else (os.SCHED_OTHER, 0)
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(thread.name), policy, os.sched_param(level))
