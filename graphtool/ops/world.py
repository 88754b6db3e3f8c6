"""The processes in which the evaluator runs a graph: one, or replicas in threads.

Compiled code uses MPI for this (kernels/world.h); here replicas exchange arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

from graphtool.errors import InputError

TIMEOUT = 60.0  # how many seconds a replica waits for the others


@dataclass(frozen=True)
class World:
    """One replica among `size`; a single one exchanges data with nobody."""

    rank: int = 0
    size: int = 1
    meeting: Barrier | None = None
    table: list[Any] = field(default_factory=lambda: [None])

    def exchange(self, x: Any) -> list[Any]:
        """The arrays that all replicas gave, by rank. Raises InputError GT0508 if one of them
        never arrived."""
        self.table[self.rank] = x
        self.wait()
        found = list(self.table)
        self.wait()  # all must have read the table before it is used again
        return found

    def wait(self) -> None:
        """Wait until all replicas have called this. Raises InputError GT0508 if one fails or
        takes too long."""
        if self.meeting is None:
            return
        try:
            self.meeting.wait(TIMEOUT)
        except BrokenBarrierError as error:
            raise InputError("GT0508", "another replica failed, or never reached this "
                                       "exchange") from error


_CURRENT: ContextVar[World | None] = ContextVar("world", default=None)


def current() -> World:
    """The world in which the evaluator runs now."""
    return _CURRENT.get() or World()


@contextmanager
def within(world: World) -> Iterator[None]:
    """A context in which graphs are evaluated as this replica."""
    token = _CURRENT.set(world)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def replicas(size: int, function: Callable[[int], Any]) -> list[Any]:
    """Run function(rank) in `size` threads, each in a world of that size; raise the first error."""
    meeting, table = Barrier(size), [None] * size
    results: list[Any] = [None] * size
    faults: list[BaseException] = []

    def one(rank: int) -> None:
        try:
            with within(World(rank, size, meeting, table)):
                results[rank] = function(rank)
        except BaseException as error:
            faults.append(error)
            meeting.abort()
    threads = [Thread(target=copy_context().run, args=(one, rank)) for rank in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if faults:
        raise faults[0]
    return results
