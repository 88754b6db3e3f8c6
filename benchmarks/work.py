"""The work folder: prepared models, caches of the contestants, journals and reports.

Journals are JSON lines, the last line of a key counts; what stands there is not measured again.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import machines

Array = np.ndarray[Any, Any]
Row = dict[str, Any]


def root() -> Path:
    """`$BENCH_DIR`, or bench-work in the current folder."""
    return Path(os.environ.get("BENCH_DIR", "bench-work")).resolve()


@dataclass(frozen=True)
class Prepared:
    """One exported model: model.onnx, and in io.npz its inputs and what torch makes of them."""

    name: str
    folder: Path

    @property
    def onnx(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def done(self) -> bool:
        return self.onnx.exists() and (self.folder / "io.npz").exists()

    def arrays(self, prefix: str) -> list[Array]:
        """in_0, in_1, … (prefix `in`), out_… (torch, float32) or out64_… (torch, float64)."""
        with np.load(self.folder / "io.npz") as stored:
            names = sorted((k for k in stored.files if k.rpartition("_")[0] == prefix),
                           key=lambda k: int(k.rpartition("_")[2]))
            return [stored[k] for k in names]

    @property
    def input_names(self) -> list[str]:
        with np.load(self.folder / "io.npz") as stored:
            return [f"in_{i}" for i in range(sum(k.startswith("in_") for k in stored.files))]


def prepared(name: str, at: Path | None = None) -> Prepared:
    return Prepared(name, (at or root()) / "models" / name)


def cache(contestant: str, model: str) -> Path:
    """A folder where a contestant keeps what it made of a model."""
    path = root() / "cache" / contestant / model
    path.mkdir(parents=True, exist_ok=True)
    return path


def results(name: str) -> Path:
    """A file among the results."""
    path = root() / "results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


class Journal:
    """Rows in a JSON-lines file; `key` says which row a later one replaces."""

    def __init__(self, path: Path, key: Callable[[Row], Any]) -> None:
        self.path, self.key = path, key

    def rows(self) -> dict[Any, Row]:
        return {self.key(row): row for row in self._read()}

    def add(self, row: Row) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def _read(self) -> Iterator[Row]:
        if not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # a run that was stopped while it wrote
                continue
            yield row


def stamp() -> Row:
    """When and on what: written into every report."""
    return {"date": time.strftime("%Y-%m-%d"), "cpu": machines.model(), "cores": os.cpu_count(),
            "python": platform.python_version()}


def error_of(got: list[Array], want: list[Array], floor: float = 1e-30) -> float:
    """The largest difference of any output over that output's largest magnitude, or over `floor`
    where that is greater."""
    if len(got) != len(want):
        raise ValueError(f"{len(got)} outputs, {len(want)} expected")
    worst = 0.0
    for g, w in zip(got, want, strict=True):
        wide, true = np.asarray(g).astype(np.float64).reshape(w.shape), w.astype(np.float64)
        if true.size == 0:
            continue
        error = np.abs(wide - true).max() / max(np.abs(true).max(), floor)
        worst = float(np.maximum(worst, error))  # NaN is worse than any number
    return worst


def peak_mb() -> float:
    """Peak resident memory of this process; not ru_maxrss, which counts the forking parent's."""
    return _status_mb("VmHWM")


def private_mb() -> float:
    """Resident memory that no file backs: mapped weights and code can be dropped and read again,
    and several processes share them."""
    return _status_mb("RssAnon")


def _status_mb(row: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    found = [line.split()[1] for line in lines if line.startswith(row)]
    return int(found[0]) / 1024 if found else float("nan")
