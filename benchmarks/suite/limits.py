"""How long a case may take, and how many run at a time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 30  # for the import and the passes of one case, and for its run
WORKERS = os.cpu_count() or 1


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Raises TimeoutError in the block once the time is over."""
    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")
    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
