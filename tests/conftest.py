"""Options of the whole test suite, and how long one test may take."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import TextIO

import pytest

SECONDS = 600  # for one test; the longest takes 60 on an idle core, so that a busy machine passes
GOLDEN = (5**0.5 - 1) / 2  # its multiples, without their integers, are spread evenly
STDERR = pytest.StashKey[TextIO]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true",
                     help="rewrite the golden files and schemas from what the code gives")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.fdopen(os.dup(2), "w")  # the real one: a test's own is captured


def pytest_unconfigure(config: pytest.Config) -> None:
    """A process whose threads never end leaves all the same."""
    faulthandler.dump_traceback_later(60, exit=True, file=config.stash[STDERR])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked slow run when asked for: `pytest -m slow`. Of a function marked `part(n)` every
    n-th case runs, spread over all its parameters, and the others are slow."""
    count = Counter[str]()
    for item in items:
        if part := item.get_closest_marker("part"):
            function = item.nodeid.partition("[")[0]
            if count[function] * GOLDEN % 1 >= 1 / part.args[0]:
                item.add_marker("slow")
            count[function] += 1
    if not config.option.markexpr:
        slow = [i for i in items if i.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [i for i in items if i not in set(slow)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that waits for ever fails, and the others run; one that is slow on purpose may.

    Where Python itself no longer runs, in C that never returns, the process says where it was and
    ends: pytest-xdist reports the test, and starts another worker.
    """
    if item.get_closest_marker("slow"):
        return (yield)

    def late(*_: object) -> None:
        pytest.fail(f"the test took more than {SECONDS} s")
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    faulthandler.dump_traceback_later(SECONDS + 60, exit=True,
                                      file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
