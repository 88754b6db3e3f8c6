"""onnxruntime in a process apart: it may refuse, fail, hang or die, and only the case is lost."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks import jobs

Array = np.ndarray[Any, Any]
SECONDS = 120


class Silent(Exception):
    """The oracle has no answer; the text says why."""


class Oracle:
    """One process, started at the first question and again after it died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, model: bytes, inputs: dict[str, Array]) -> dict[str, Array]:
        """All outputs by name. Raises Silent."""
        if self.process is not None and self.process.poll() is not None:
            self.close()
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.lab.fuzz.oracle"], env=jobs.environment(),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdin and self.process.stdout
        try:
            pickle.dump((model, inputs), self.process.stdin)
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], SECONDS)[0]:
                self.close()
                raise Silent("too slow")
            said, found = pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            self.close()
            raise Silent("the process died") from error
        if said:
            raise Silent(said)
        out: dict[str, Array] = found
        return out

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def answer(model: bytes, inputs: dict[str, Array]) -> tuple[str, dict[str, Array]]:
    """Why there is no answer, and the outputs; without optimisations, which are not the standard's.
    """
    import onnxruntime as ort
    how = ort.SessionOptions()
    how.log_severity_level = 4
    how.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    how.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model, how, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base class
        return f"refused: {jobs.short(error, 200)}", {}
    names = [o.name for o in session.get_outputs()]
    try:
        return "", dict(zip(names, session.run(names, inputs), strict=True))
    except Exception as error:
        return f"failed: {jobs.short(error, 200)}", {}


def main() -> None:
    """Answer pickled questions until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError):
        while True:
            pickle.dump(answer(*pickle.load(sys.stdin.buffer)), out)
            out.flush()


if __name__ == "__main__":
    main()
