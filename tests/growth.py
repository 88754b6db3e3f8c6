"""Work counted in calls of functions, which no load of the machine changes.

A test of time fails on a busy machine. A test of calls finds what such a test is there for: work
that grows faster than its input.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls, itself and all below it, those written in C included."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return int(vars(pstats.Stats(profile))["total_calls"])


def lines(work: Callable[[], object]) -> int:
    """How many lines of Python `work` executes, itself and all below it: loops count too that call
    nothing."""
    count = 0

    def step(*_: object) -> Callable[..., object]:
        nonlocal count
        count += 1
        return step
    before = sys.gettrace()
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
