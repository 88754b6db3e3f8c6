"""The build steps of contestants, each in a process of its own before anything is timed.

What lasts is built once: a compiler that takes minutes, or fails after minutes, is not asked again
until the folder cache/CONTESTANT/MODEL is gone.
"""

from __future__ import annotations

import importlib
import json
import resource
from pathlib import Path
from typing import Any

from benchmarks import jobs
from benchmarks.league import Case
from benchmarks.work import Row

LIMIT = 3600.0  # torch.compile takes minutes for a training step of resnet18


def built(league: str, model: str, name: str, threads: int, limit: float = LIMIT) -> Row:
    """Seconds of processors that the build took, or its error; empty where nothing is built."""
    peer, case = _members(league).PEERS[name], case_of(league, model, name, threads)
    if not peer.build:
        return {}
    note = case.cache / f"built.{threads}.json"
    if peer.lasting and _holds(note, case):
        kept: Row = json.loads(note.read_text())
        return kept
    row = jobs.run("benchmarks.building", "step", league, model, name, threads, timeout=limit,
                   env=environment(league, model, name, threads))
    note.write_text(json.dumps(row) + "\n")
    return row


def step(league: str, model: str, name: str, threads: int) -> Row:
    """The build itself, as a job."""
    _members(league).PEERS[name].build(case_of(league, model, name, threads))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"build_cpu_s": sum(u.ru_utime + u.ru_stime for u in used)}


def case_of(league: str, model: str, name: str, threads: int) -> Case:
    found: Case = _members(league).case(model, name, threads)
    return found


def environment(league: str, model: str, name: str, threads: int) -> dict[str, str]:
    """What the contestant wants to find in its environment, building and running."""
    case = case_of(league, model, name, threads)
    return dict(_members(league).PEERS[name].env(case))


def _members(league: str) -> Any:
    return importlib.import_module(f"benchmarks.{league}")


def _holds(note: Path, case: Case) -> bool:
    """Whether there is a note, and it is no older than the model."""
    return note.exists() and (not case.model.onnx.exists()
                              or note.stat().st_mtime >= case.model.onnx.stat().st_mtime)
