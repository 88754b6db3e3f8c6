"""What a contestant is: how it builds a model once, how it loads it in the process that is timed.

A league is a module with PEERS, `case` and `facts`: who takes part, in what, what its results say.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.work import Array, Prepared


@dataclass(frozen=True)
class Case:
    """A model at a number of threads, and the folder where the contestant keeps its build."""

    model: Prepared
    threads: int
    cache: Path


@dataclass(frozen=True)
class Loaded:
    """`run` does one inference; `outputs` fetches what the last one gave."""

    run: Callable[[], Any]
    outputs: Callable[[Any], list[Array]] = field(default=lambda result: list(result))


@dataclass(frozen=True)
class Peer:
    """`build` runs in a process of its own before, so that its memory is not counted; where it is
    `lasting`, what it made or why it could not holds as long as the model does."""

    name: str
    needs: tuple[str, ...]
    load: Callable[[Case], Loaded]
    build: Callable[[Case], None] | None = None
    env: Callable[[Case], Mapping[str, str]] = lambda case: {}
    lasting: bool = False

    @property
    def installed(self) -> bool:
        try:
            return all(importlib.util.find_spec(n) for n in self.needs)
        except ModuleNotFoundError:  # not even the package that it would be a part of
            return False
