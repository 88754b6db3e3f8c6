"""Chromium over its debugging pipe: opens a page, evaluates in it, takes a picture of it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
           "--no-first-run", "--remote-debugging-pipe")
READS, WRITES = 3, 4  # the browser's descriptors for commands and answers
PATIENCE = 60.0  # seconds
WIDTH, HEIGHT = 1500, 900
REST = "new Promise(done => setTimeout(done, 1000))"


def found() -> str | None:
    """The browser, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """One page of the browser. Commands and answers are JSON, with a NUL behind each."""

    def __init__(self, out: BinaryIO, back: BinaryIO, scale: float) -> None:
        self._out, self._back, self._count, self._session = out, back, 0, ""
        made = self.ask("Target.createTarget", url="about:blank")
        self._session = self.ask("Target.attachToTarget", targetId=made["targetId"],
                                 flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT,
                 deviceScaleFactor=scale, mobile=False)

    def ask(self, method: str, **parameters: Any) -> Any:
        """The answer to a command of the browser's protocol."""
        self._count += 1
        command: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        self._out.write(json.dumps(command).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        text = bytearray()
        while (c := self._back.read(1)) not in (b"\0", b""):
            text += c
        if not text:
            raise RuntimeError("the browser ended")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file, wait until it is drawn."""
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=f"{page.resolve().as_uri()}#{fragment}")
        end = time.monotonic() + PATIENCE
        while not self.value(f'document.readyState === "complete" && {PAINTED}.length'):
            if time.monotonic() > end:
                raise RuntimeError(f"{page} is not painted")
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """What an expression is in the page; of a promise, what it becomes."""
        answer = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True,
                          returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """The page as a PNG, once it is at rest."""
        self.value(REST)
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


PAINTED = 'performance.getEntriesByName("first-contentful-paint")'


@contextmanager
def tab(scale: float = 1.0, options: Sequence[str] = ()) -> Iterator[Tab]:
    """A page of a browser of its own, which ends with it: WIDTH × HEIGHT, in so many pixels each.
    `options` are more options of Chromium."""
    browser = found()
    if browser is None:
        raise SystemExit("needs chromium")
    theirs, out = os.pipe()
    back, answers = os.pipe()

    def place() -> None:  # in the child; first above both numbers
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, WRITES + 1) for fd in (theirs, answers)]
        for fd, number in zip(high, (READS, WRITES), strict=True):
            os.dup2(fd, number)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        child = subprocess.Popen(
            [browser, *OPTIONS, *options, f"--user-data-dir={profile}",
             f"--window-size={WIDTH},{HEIGHT}"],
            pass_fds=(READS, WRITES), preexec_fn=place, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(answers)
        try:
            with os.fdopen(out, "wb") as write, os.fdopen(back, "rb") as read:
                yield Tab(write, read, scale)
        finally:
            child.terminate()
            child.wait()
