"""Times quantised models beside the runtimes that take them, and beside their float32 originals.

The contestants of a contest are those of peers.py and `float32`: graphtool on the model that was
quantised.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from benchmarks import beside_float, peers, work, zoo
from benchmarks.beside_float import FLOAT
from benchmarks.league import Case, Peer
from benchmarks.stats import OURS

TITLE = "Time of one inference of quantised models"
WORDS = "8 bits, quantised by onnxruntime's tools; `float32` is graphtool on the model before"
PEERS: dict[str, Peer] = {p.name: p for p in (
    peers.PEERS[OURS], replace(peers.PEERS[OURS], name=FLOAT), peers.PEERS["onnxruntime"],
    peers.PEERS["openvino"])}
facts = peers.facts


def case(model: str, peer: str, threads: int) -> Case:
    plain = model.partition(".")[0] if peer == FLOAT else model
    return Case(work.prepared(plain), threads, work.cache(peer, plain))


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)


def main(options: argparse.Namespace) -> int:
    return beside_float.run(options, "int8", PEERS, TITLE, WORDS)
