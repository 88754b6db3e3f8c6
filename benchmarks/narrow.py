"""Times models in 16-bit floats: `--precision fast` beside the runtimes' own bfloat16 and float16.

All get the same float32 model and inputs; what is rounded is up to each. `float32` is graphtool's
default.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks import beside_float, compilers, peers, work, zoo
from benchmarks.league import Case, Loaded, Peer
from benchmarks.stats import FLOAT, OURS

TITLE = "Time of one inference in 16-bit floats"
WORDS = ("graphtool with `--precision fast`, `float32` without it, OpenVINO by its precision "
         "hints, torch under autocast")


def _build(case: Case) -> None:
    from graphtool import importers, optimize
    from graphtool.compile.as_is import build
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
    return beside_float.run(options, "narrow", PEERS, TITLE, WORDS)
