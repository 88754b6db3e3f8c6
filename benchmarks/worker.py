"""The process of one contestant: loads the model, says what it is like, then is timed on demand.

`python -m benchmarks.worker LEAGUE MODEL PEER THREADS`. It answers in lines of JSON: once when it
is ready, then once for each line `SECONDS MOST` that it reads.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import work
from benchmarks.jobs import quiet_stdout, short
from benchmarks.league import Loaded

WARM_UP = 2
CALL_LIMIT = 4.0  # seconds: what takes longer is told, and not timed in rounds


def main() -> None:
    league, model, peer, threads = *sys.argv[1:4], int(sys.argv[4])
    out = quiet_stdout()
    pin(threads)
    try:
        loaded, row = prepare(league, model, peer, threads)
    except Exception as error:
        row = {"error": short(error)}
    if row.get("call_s", 0.0) > CALL_LIMIT:
        row["error"] = f"a call takes {row['call_s']:.1f} s"
    out.write(json.dumps(row) + "\n")
    if "error" in row:
        return
    for line in sys.stdin:
        seconds, most = line.split()
        out.write(json.dumps(rounds(loaded.run, float(seconds), int(most))) + "\n")
    os._exit(0)  # some runtimes crash while they take themselves down


def pin(threads: int) -> None:
    """To as many processors as there are threads, before any runtime looks how many there are."""
    if hasattr(os, "sched_setaffinity"):
        free = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, set(free[-threads:]))


def prepare(league: str, model: str, peer: str,
            threads: int) -> tuple[Loaded, dict[str, Any]]:
    """The model, which holds the memory that it computes in, and: seconds to load, first and second
    run, peak and private memory until there, and what the league says of the results."""
    members = importlib.import_module(f"benchmarks.{league}")
    case = members.case(model, peer, threads)
    start = time.perf_counter()
    loaded = members.PEERS[peer].load(case)
    times = [time.perf_counter()]
    for _ in range(2):
        result = loaded.run()
        times.append(time.perf_counter())
    memory = {"peak_mb": work.peak_mb(), "private_mb": work.private_mb()}
    return loaded, {
        "load_s": times[0] - start, "first_s": times[1] - times[0], "call_s": times[2] - times[1],
        **memory, **members.facts(case, loaded, result)}


def rounds(run: Callable[[], Any], seconds: float, most: int) -> list[float]:
    """Seconds of each call, for about `seconds`; at least two, or one that is longer than that."""
    now = time.perf_counter

    def timed() -> float:
        start = now()
        run()
        return now() - start
    started = now()
    for _ in range(WARM_UP):
        first = timed()
        if first > seconds:
            return [first]
        if now() - started > seconds / 4:
            break
    samples: list[float] = []
    end = now() + seconds
    while len(samples) < 2 or (now() < end and len(samples) < most):
        samples.append(timed())
    return samples


if __name__ == "__main__":
    main()
