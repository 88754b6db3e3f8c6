"""Times models in 16-bit floats: `--precision fast` beside the runtimes' own bfloat16 and float16.

All get the same float32 model and inputs; what is rounded is up to each. `float32` is graphtool's
default.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks import compilers, peers, prepare, stats, tables, work, zoo
from benchmarks.league import Case, Loaded, Peer
from benchmarks.stats import OURS
from benchmarks.work import Row

FLOAT = "float32"


def _build(case: Case) -> None:
    from graphtool import importers, optimize
    from graphtool.native.build import build
    module = importers.import_source(str(case.model.onnx))
    build(optimize(module, precision="fast", verify=False), case.cache / "build")


def _torch(case: Case) -> Loaded:
    """Eager torch under autocast."""
    import torch
    plain = compilers.torch_eager(case)

    def run() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return plain.run()
    return Loaded(run, lambda y: plain.outputs(_widened(y)))


def _widened(y: Any) -> Any:
    """The outputs in float32, as numpy has no bfloat16."""
    if isinstance(y, (list, tuple)):
        return [_widened(one) for one in y]
    return y.float() if hasattr(y, "float") else y


PEERS: dict[str, Peer] = {p.name: p for p in (
    replace(peers.PEERS[OURS], build=_build),
    replace(peers.PEERS[OURS], name=FLOAT),
    *(replace(peers.PEERS["openvino"], name=f"openvino {hint}",
              load=partial(peers.openvino, precision=hint)) for hint in ("bf16", "f16")),
    replace(peers.PEERS["torch"], name="torch bf16", load=_torch))}
facts = peers.facts


def case(model: str, peer: str, threads: int) -> Case:
    own = {OURS: "narrow", FLOAT: OURS}.get(peer, peer)
    return Case(work.prepared(model), threads, work.cache(own, model))


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)


def main(options: argparse.Namespace) -> int:
    rows = zoo.timed(options, "narrow", PEERS, "narrow", prepare.ensure)
    text = report(rows, options.command_line)
    work.results("narrow.md").write_text(text)
    print(f"\n{text}\n{work.results('narrow.md')} written")
    return sum("error" in row["contestants"].get(OURS, {}) for row in rows)


def report(rows: list[Row], command: str = "") -> str:
    """Markdown: times and ratios for each number of threads, then errors."""
    if not rows:
        return "Nothing was timed.\n"
    names, first = list(rows[0]["contestants"]), rows[-1]
    out = ["# Time of one inference in 16-bit floats", "",
           f"{first['date']}, {first['cpu']}, {first['cores']} cores; graphtool with `--precision "
           f"fast`, `{FLOAT}` without it, OpenVINO by its precision hints, torch under autocast; "
           f"contestants in turns, {first['rounds']} rounds of {first['seconds']} s, medians of "
           "all calls; the ratio is the best contestant's time over graphtool's."
           + (f" Command: `{command}`." if command else ""), "", *zoo.standing(rows, names),
           "## Largest error against float64, over the largest output", "",
           zoo.facts(rows, names, "error64", tables.error), *_faster(rows), *zoo.failures(rows)]
    return "\n".join(out)


def _faster(rows: list[Row]) -> list[str]:
    times = [zoo.medians(row) for row in rows]
    gains = [t[FLOAT] / t[OURS] for t in times if FLOAT in t and OURS in t]
    return [f"Against float32: {stats.geometric_mean(gains):.2f} times as fast in the geometric "
            f"mean, {min(gains):.2f} at least.", ""] if gains else []
