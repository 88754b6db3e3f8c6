"""onnxruntime in a process of its own, with limits on its time and memory.

A model that never ends, wants all memory or crashes the runtime ends that process, not this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.errors import InputError
from graphtool.importers.limits import Limits
from graphtool.io import npz
from graphtool.verify.oracle import read_message, write_message

Array = np.ndarray[Any, Any]


class RuntimeProcess:
    """A model in the runtime's process; `inputs` and `outputs` are its names."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        """Start the process and load the model.

        Raises InputError GT3043 if the runtime refuses the model, GT3045 if it exceeds the limits.
        """
        self.path, self.limits = path, limits or Limits()
        command = [sys.executable, "-m", "graphtool.verify.oracle", str(path),
                   str(self.limits.bytes)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        weakref.finalize(self, _end, self.process)
        names = json.loads(self._answer())
        self.inputs, self.outputs = map(tuple, names)

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs by name. Raises as the constructor."""
        outputs = npz.loads(self._answer(npz.dumps(arrays)), "answer")
        return dict(zip(self.outputs, outputs.values(), strict=True))

    def _answer(self, request: bytes | None = None) -> bytes:
        """The body of the next answer, after a request if there is one."""
        assert self.process.stdin and self.process.stdout
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.process.kill()
        timer = threading.Timer(self.limits.seconds, stop)
        timer.start()
        try:
            if request is not None:
                write_message(self.process.stdin, b"A", request)  # type: ignore[arg-type]
            message = read_message(self.process.stdout)  # type: ignore[arg-type]
        except BrokenPipeError:
            message = None
        finally:
            timer.cancel()
        if message is None:
            code = self.process.wait()
            how = f"it took more than {self.limits.seconds} seconds" if late.is_set() else \
                f"its process ended with {code}"
            raise InputError("GT3045", f"onnxruntime did not finish: {how}", where=str(self.path),
                             hint="if that is meant: --limit seconds=NUMBER or bytes=NUMBER"
                             if late.is_set() else "")
        kind, body = message
        if kind == b"E":
            text = body.decode("utf-8", "replace")
            raise InputError("GT3043", f"onnxruntime: {text.removeprefix('onnxruntime: ')}",
                             where=str(self.path))
        return body


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the process and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
