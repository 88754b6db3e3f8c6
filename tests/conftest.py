"""Options of the whole test suite, and how long one test may take."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests import intrinsics, kinds

SECONDS = 600  # for one test; the longest takes 60 on an idle core, so that a busy machine passes
MOST = 16  # quick cases of a function
NOT_QUICK = {*kinds.KINDS, "slow", "long"}
ACTS = set[str]()  # what the test that runs has done, of that which a quick one does not do
QUICK: list[bool] = []  # whether none but quick tests run in this process
# without it each of a thousand processes that tests start would compile the whole package again
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
STDERR = pytest.StashKey[TextIO]()
ARMED = pytest.StashKey[float]()  # when the process was last told to end if it hangs


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true",
                     help="rewrite the golden files and schemas from what the code gives")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "quick":
        QUICK.append(True)
    else:
        intrinsics.shorten()
    sys.addaudithook(_watch)
    os.fsync = lambda fd: None  # no test cuts the power, and disks take long over it
    config.stash[ARMED] = -inf
    config.stash[STDERR] = os.fdopen(os.dup(2), "w")  # the real one: a test's own is captured


def pytest_unconfigure(config: pytest.Config) -> None:
    """A process whose threads never end leaves all the same."""
    faulthandler.dump_traceback_later(60, exit=True, file=config.stash[STDERR])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`pytest -m quick` does not even import a file without a quick test, nor a conftest.py that
    imports torch."""
    if config.option.markexpr != "quick":
        return None
    if (conftest := collection_path / "conftest.py").exists():
        return kinds.imports_torch(conftest) or None
    if not collection_path.match("test_*.py"):
        return None
    names = [n for n in kinds.source(collection_path).defined if n.startswith("test_")]
    return all(kinds.needs(collection_path, n) for n in names) or None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A process that has no tests left takes half of another's: otherwise the last share, a hundred
    tests of any length, kept one of two processes 47 s longer than the other."""
    if config.option.dist != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling
    return WorkStealingScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each test gets the marks of what it needs; one that needs nothing, and is not long, is quick.

    Tests marked slow run when asked for: `pytest -m slow`. Of a function marked `part(n)` every
    n-th case runs, and the others are slow; of one with hundreds of cases 16 are quick.
    """
    functions = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    for cases in functions.values():
        first = cases[0]
        needed = kinds.needs(first.path, getattr(first, "originalname", first.name))
        if part := first.get_closest_marker("part"):
            usual = [i for i in cases if not i.get_closest_marker("slow")]
            for item in _others(usual, 1 / part.args[0]):
                item.add_marker("slow")
        for item in cases:
            for kind in needed:
                item.add_marker(kind)
        quick = [] if needed else [i for i in cases if not NOT_QUICK & {
            m.name for m in i.iter_markers()}]
        others = set(_others(quick, MOST / max(len(quick), 1)))
        for item in quick:
            if item not in others:
                item.add_marker("quick")
    kinds.keep()
    if not config.option.markexpr:
        slow = [i for i in items if i.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        left_out = set(slow)
        items[:] = [i for i in items if i not in left_out]


def pytest_collection_finish() -> None:
    """The garbage collector leaves alone what the collection has made, a million objects that stay
    to the end, and runs after 20,000 new objects, not 700: Python takes a fifth less time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _others(cases: list[pytest.Item], share: float) -> list[pytest.Item]:
    """All cases but a share of them, the first among it, spread over all parameters: the multiples
    of the golden ratio, without their integers, are."""
    return [c for n, c in enumerate(cases) if n * (5**0.5 - 1) / 2 % 1 >= share]


def pytest_runtest_setup(item: pytest.Item) -> None:
    ACTS.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A quick test that starts a process or imports torch lacks a mark: the quick suite fails, and
    the whole one lists it at the end."""
    try:
        return (yield)
    finally:
        if ACTS and item.get_closest_marker("quick"):
            item.user_properties.append(("not quick", ", ".join(sorted(ACTS))))
            if item.config.option.markexpr == "quick":
                pytest.fail(f"marked quick, but {', '.join(sorted(ACTS))}: @pytest.mark.compiled, "
                            "torch or process, or a row in tests/kinds.py")


def _watch(event: str, args: tuple[object, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        ACTS.add("it starts a process")
    elif event == "import" and args[0] == "torch":
        ACTS.add("it imports torch")
        if QUICK:  # once imported, it would be there for all that come after, and not be noticed
            raise ImportError("a quick test imports torch")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for status in ("passed", "failed"):
        for report in terminalreporter.stats.get(status, ()):
            for name, what in report.user_properties:
                if name == "not quick":
                    terminalreporter.write_line(f"quick, but {what}: {report.nodeid}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A test that waits for ever fails, and the others run; one that is slow on purpose may.

    Where Python itself no longer runs, in C that never returns, the process says where it was and
    ends: pytest-xdist reports the test, and starts another worker.
    """
    if item.get_closest_marker("slow"):
        faulthandler.cancel_dump_traceback_later()
        item.config.stash[ARMED] = -inf
        return (yield)

    def late(*_: object) -> None:
        pytest.fail(f"the test took more than {SECONDS} s")
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    _arm(item.config)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if nextitem is None:  # no test is known to come: the process may now wait
            faulthandler.cancel_dump_traceback_later()
            item.config.stash[ARMED] = -inf


def _arm(config: pytest.Config) -> None:
    """Let this process end, if the test that begins takes more than SECONDS + 60 to SECONDS + 120.

    It is a thread that ends the process; to start one for each of 16,000 tests would cost more than
    most of them.
    """
    if (now := time.monotonic()) > config.stash[ARMED] + 60:
        config.stash[ARMED] = now
        faulthandler.dump_traceback_later(SECONDS + 120, exit=True, file=config.stash[STDERR])
