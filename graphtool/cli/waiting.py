"""A line on the terminal that says what a verb does, and for how long, while it prints nothing.

It appears after a second, and is gone before anything else is printed. In a pipe there is none.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

AFTER = 1.0  # seconds without a word
ALONE = ("train", "tune", "generate", "debug", "help", "version", "completion", "demo")
"""Verbs that print while they work, or wait for a person."""


class _Line:
    """The state of the line: what is done, the stream, and whether the line is drawn."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stream: TextIO | None = None
        self.verb, self.stage, self.began, self.drawn = "", "", 0.0, False

    def draw(self) -> None:
        """Draw the line anew."""
        with self.lock:
            if self.stream is None:
                return
            text = f"{self.verb}, {time.monotonic() - self.began:.0f} s" + (
                f": {self.stage}" if self.stage else "")
            try:
                width = os.get_terminal_size(self.stream.fileno()).columns
            except OSError:
                width = 80
            self.stream.write(f"\r\x1b[K{text[:width - 1]}")
            self.stream.flush()
            self.drawn = True

    def clear(self) -> None:
        """Remove the line, if it is drawn."""
        with self.lock:
            if self.drawn and self.stream is not None:
                self.stream.write("\r\x1b[K")
                self.stream.flush()
            self.drawn = False


_LINE = _Line()
clear = _LINE.clear


def stage(text: str) -> None:
    """Say what is done from now on."""
    from graphtool import escaping
    _LINE.stage = escaping.line(text)


@contextmanager
def waiting(verb: str) -> Iterator[None]:
    """A context in which the line shows `verb`, the seconds, and the stage."""
    err = getattr(sys.stderr, "stream", sys.stderr)
    if verb in ALONE or _LINE.stream is not None or not err.isatty() or os.environ.get(
            "TERM", "dumb") == "dumb":
        yield
        return
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(AFTER):
            _LINE.draw()
    _LINE.stream, _LINE.verb, _LINE.stage = err, f"graphtool {verb}", ""
    _LINE.began = time.monotonic()
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        clear()
        _LINE.stream = None
