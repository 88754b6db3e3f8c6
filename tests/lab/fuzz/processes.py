"""Processes that work through spans of seeds. One that dies costs the seed that it was at.

A worker says which seed it begins. Where it dies or says nothing for long, that seed is reported as
lost, and the seeds of its span before and after it are done by another process.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

Span = tuple[int, int]  # the first seed, and the one after the last
Tell = Callable[[int], None]
Run = Callable[[Span, Tell], Any]
SECONDS = 1800.0  # without a word, after which a process is taken for hung


@dataclass(frozen=True)
class Lost:
    """A seed whose process ended, and how."""

    seed: int
    why: str


@dataclass
class Worker:
    """A process, the span that it has, and the seed that it is at."""

    process: Any
    pipe: Connection
    span: Span | None = None
    at: int = 0
    heard: float = 0.0

    def give(self, span: Span) -> None:
        """Hand over a span."""
        self.span, self.at, self.heard = span, span[0], time.monotonic()
        self.pipe.send(span)

    def listen(self, spoke: bool) -> list[Any]:
        """The result, if there is one. Raises EOFError if the process died or hangs."""
        if not spoke:
            if time.monotonic() - self.heard > SECONDS:
                raise EOFError("hung")
            return []
        self.heard = time.monotonic()
        done, what = self.pipe.recv()
        if done:
            return [what]
        self.at = what
        return []

    def end(self) -> str:
        """End the process and say how it ended by itself."""
        self.process.join(1)
        hung = self.process.is_alive()
        if hung:
            self.process.kill()
            self.process.join()
        self.pipe.close()
        code = self.process.exitcode
        return "hung" if hung else f"signal {-code}" if code < 0 else f"exit {code}"


def crew(spans: Iterable[Span], run: Run, workers: int) -> Iterator[tuple[Span, Any]]:
    """What `run` returns for each span, as it is done, and a Lost for each seed that is lost.

    `run` is called in a forked process, many times; it calls its second argument with each seed.
    """
    left, again = iter(spans), list[Span]()
    staff: list[Worker] = []
    try:
        while True:
            free = [w for w in staff if w.span is None]
            while (free or len(staff) < workers) and (
                    span := again.pop() if again else next(left, None)):
                if not free:
                    free = [_hired(run, staff)]
                    staff += free
                free.pop().give(span)
            busy = [w for w in staff if w.span is not None]
            if not busy:
                return
            spoke = wait([w.pipe for w in busy], 5)
            for w in busy:
                assert w.span is not None
                span = w.span
                try:
                    for result in w.listen(w.pipe in spoke):
                        w.span = None
                        yield span, result
                except EOFError:
                    staff.remove(w)
                    again += [s for s in ((span[0], w.at), (w.at + 1, span[1])) if s[0] < s[1]]
                    yield (w.at, w.at + 1), Lost(w.at, w.end())
    finally:
        for w in staff:
            w.process.kill()
            w.end()


def _hired(run: Run, staff: list[Worker]) -> Worker:
    ours, theirs = get_context("fork").Pipe()
    process = get_context("fork").Process(
        target=_serve, args=(run, theirs, [ours, *(w.pipe for w in staff)]))
    process.start()
    theirs.close()
    return Worker(process, ours)


def _serve(run: Run, pipe: Connection, others: list[Connection]) -> None:
    """Answer spans until the parent is gone."""
    for other in others:  # the ends that the fork copied: an end is seen when nobody holds it
        other.close()
    gc.freeze()
    try:
        while True:
            span = pipe.recv()
            pipe.send((True, run(span, lambda seed: pipe.send((False, seed)))))
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        os._exit(1)
