"""Times quantised models beside the runtimes that take them, and beside their float32 originals.

The contestants of a contest are those of peers.py, and graphtool on the model that was quantised:
as it is (`float32`), and with `--precision fast` (`bfloat16`).
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from benchmarks import beside_float, narrow, peers, zoo
from benchmarks.league import Case, Peer
from benchmarks.stats import BFLOAT, FLOAT, OURS

TITLE = "Time of one inference of quantised models"
WORDS = ("8 bits, quantised by onnxruntime's tools; `float32` is graphtool on the model before, "
         "`bfloat16` the same with `--precision fast`")
PEERS: dict[str, Peer] = {p.name: p for p in (
    peers.PEERS[OURS], replace(peers.PEERS[OURS], name=FLOAT),
    replace(narrow.PEERS[OURS], name=BFLOAT), peers.PEERS["onnxruntime"], peers.PEERS["openvino"])}
facts = peers.facts


def case(model: str, peer: str, threads: int) -> Case:
    if peer not in (FLOAT, BFLOAT):
        return peers.case(model, peer, threads)
    plain = model.rpartition(".")[0]
    return narrow.case(plain, FLOAT if peer == FLOAT else OURS, threads)


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)


def main(options: argparse.Namespace) -> int:
    return beside_float.run(options, "int8", PEERS, TITLE, WORDS)
