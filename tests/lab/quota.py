"""Builds, runs and training with two threads where there is one processor, or half of one.

A thread that waits has to let the other one work: no run may hang, give another number, or take
many times as long as with one thread. Half a processor is a group of processes with a quota (the
right to make one is needed); it stops all threads wherever they are. How often it did stop them is
counted: on a busy machine half a processor is no less than they get, and `--share` makes it less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import tables, work
from benchmarks.work import Journal, Row
from graphtool.io import npz
from tests.lab.faults import SAMPLES

GROUPS = Path("/sys/fs/cgroup/cpu")
GROUP = "graphtool-lab"
PERIOD = 100_000  # µs
SECONDS = 300
MOST = 10.0  # times as long with two threads as with one
BEFORE = ("graphtool import {samples}/digits.onnx --no-check -o m.graph.json",
          "graphtool grad m.graph.json --loss cross_entropy --optimizer sgd -o t.graph.json",
          "graphtool build m.graph.json -o b --name digits --exe",
          "graphtool build t.graph.json -o t --name digits --exe")
COMMANDS = {
    "run": "b/digits in.npz -o out.npz --threads {threads} --repeat 300",
    "train": "t/digits --data {samples}/digits_train.npz --epochs 2 --batch 500 --threads {threads}"
             " --checkpoint run",
    "build": "graphtool build m.graph.json -o again --jobs {threads}",
    "graphtool run": "graphtool run b --inputs in.npz -o out.npz --threads {threads}",
    "bench": "graphtool bench b --threads {threads}",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--commands", default=",".join(COMMANDS), help="separated by commas")
    parser.add_argument("--share", type=float, default=0.5, help="of a processor, the quota")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("quota.jsonl"), lambda r: (r["command"], r["processors"]))
    with tempfile.TemporaryDirectory(prefix="graphtool-quota-") as name:
        folder = Path(name)
        for line in BEFORE:
            subprocess.run(line.format(samples=SAMPLES).split(), cwd=folder, check=True,
                           capture_output=True)
        data = np.load(SAMPLES / "digits_train.npz")
        np.savez(folder / "in.npz", image=data["image"][:64])
        for command in options.commands.split(","):
            for row in tried(command, folder, options.share):
                journal.add({**row, **work.stamp()})
                print(row, flush=True)
    rows = list(journal.rows().values())
    work.results("quota.md").write_text(report(rows, options.command_line))
    return sum(r["outcome"] not in ("right", "not possible here") for r in rows)


def tried(command: str, folder: Path, quota: float) -> Iterator[Row]:
    """A row for each share of the processors."""
    known: dict[str, np.ndarray] | None = None
    little = "half" if quota == 0.5 else f"{quota:g}"
    for share, begin in (("all", lambda: None), ("one", one), (little, partial(part, quota))):
        times, outcome, before = [0.0, 0.0], "right", stops()
        try:
            for i in range(2):
                times[i] = timed(COMMANDS[command].format(samples=SAMPLES, threads=i + 1), folder,
                                 begin)
            got = npz.load(folder / "out.npz") if "run" in command else {}
            known = known or got
            if any(not np.allclose(got[k], known[k], 1e-5, 1e-6) for k in known):
                outcome = "wrong"
            elif times[1] > MOST * times[0]:
                outcome = "slow"
        except PermissionError:
            outcome = "not possible here"
        except (subprocess.SubprocessError, OSError) as error:
            outcome = f"{type(error).__name__}: {getattr(error, 'stderr', b'')!r}"[:200]
        yield {"command": command, "processors": share, "outcome": outcome,
               "seconds": [round(t, 2) for t in times],
               **({"stops": stops() - before} if share == little else {})}


def timed(line: str, folder: Path, begin: Callable[[], None]) -> float:
    """The seconds of a command that starts under these conditions."""
    start = time.perf_counter()
    subprocess.run(line.split(), cwd=folder, check=True, capture_output=True, timeout=SECONDS,
                   preexec_fn=begin)
    return time.perf_counter() - start


def one() -> None:
    """This process, and what it starts, on one processor."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def part(share: float) -> None:
    """This process, and what it starts, on a share of one processor's time."""
    group = GROUPS / GROUP
    group.mkdir(exist_ok=True)
    (group / "cpu.cfs_period_us").write_text(str(PERIOD))
    (group / "cpu.cfs_quota_us").write_text(str(int(PERIOD * share)))
    (group / "tasks").write_text(str(os.getpid()))


def stops() -> int:
    """How often the quota has stopped processes of the group so far."""
    try:
        lines = (GROUPS / GROUP / "cpu.stat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("nr_throttled")), 0)


def report(rows: list[Row], command: str) -> str:
    """A row for each command and share."""
    at = work.stamp()
    return "\n".join([
        "# Two threads on one processor, and on half of one", "",
        f"`{command}`, {at['date']}, {at['cpu']}.", "",
        tables.markdown(["command", "processors", "outcome", "1 thread, s", "2 threads, s",
                         "times stopped"], [
            [r["command"], r["processors"], r["outcome"], *map(str, r["seconds"]),
             str(r.get("stops", ""))] for r in rows]),
        ""])
