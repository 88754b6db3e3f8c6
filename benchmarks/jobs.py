"""One function call in a process of its own, so that memory, caches and crashes stay apart.

`python -m benchmarks.jobs MODULE FUNCTION JSON-ARGUMENTS` prints the result as one line of JSON;
whatever else the function prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import work

PROJECT = Path(__file__).resolve().parents[1]


def run(module: str, function: str, *args: Any, timeout: float = 900,
        env: dict[str, str] | None = None) -> dict[str, Any]:
    """The dict that the function returns, or {"error": …} where it fails, dies or takes too long.

    What the process says otherwise is appended to logs/MODULE.log in the work folder.
    """
    log = work.root() / "logs" / f"{module}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stderr, subprocess.Popen(
            [sys.executable, "-m", "benchmarks.jobs", module, function, json.dumps(args)],
            env=environment(env), stdout=subprocess.PIPE, stderr=stderr, text=True,
            start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=timeout)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # and the compilers that it has started
            if isinstance(error, subprocess.TimeoutExpired):
                return {"error": f"not done within {timeout:.0f} s"}
            raise
    try:
        result: dict[str, Any] = json.loads(said.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {"error": f"the process ended with {process.returncode}"}
    return result


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """Ours, with the project importable, whatever folder the command runs in."""
    path = os.pathsep.join(p for p in (str(PROJECT), os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore",
            "BENCH_DIR": str(work.root()), **(extra or {})}


def quiet_stdout() -> Any:
    """The real standard output as a file; from now on prints go to standard error."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return out


def short(error: BaseException, most: int = 400) -> str:
    """One line about an exception."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:most]


def main() -> None:
    out = quiet_stdout()
    module, function, args = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    try:
        result = getattr(importlib.import_module(module), function)(*args)
    except Exception as error:
        result = {"error": short(error)}
    out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
