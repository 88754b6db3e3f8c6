"""How long a case may take, and how many run at a time.

Seconds are those of this process, so that what other processes do changes no result.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 30  # for the import and the passes of one case, and for its run
WORKERS = os.cpu_count() or 1


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Raises TimeoutError in the block once it has computed for so long."""
    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")
    old = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
