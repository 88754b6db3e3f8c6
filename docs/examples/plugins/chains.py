"""Models that are chains of ops, a name on a line: how they are read, a report, and a verb."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import graphtool
from graphtool.extend import (
    Importer,
    Module,
    Report,
    Request,
    Verb,
    add_importer,
    add_report,
    add_verb,
)

Run = Callable[[Mapping[str, Any]], dict[str, Any]]


def read(source: str, how: Request) -> Module:
    graph = graphtool.Graph(n=(1, None))
    value = graph.add_input("x", "f32[n]")
    for name in Path(source).read_text().split():
        value = graph.add_op(name, value)
    graph.add_output(value, "y")
    return graph.module()


def oracle(source: str) -> Run:
    """The model by numpy, with which `import` and `check` compare the graph."""
    def run(arrays: Mapping[str, Any]) -> dict[str, Any]:
        value = arrays["x"]
        for name in Path(source).read_text().split():
            value = getattr(np, name)(value)
        return {"y": value}
    return run


class Depth(msgspec.Struct):
    """The number of ops between the input and the output."""

    ops: int


def depth(module: Module) -> Depth:
    return Depth(len(module.graph.nodes))


def ops_of(chain: str) -> None:
    """Print the ops of a chain, in their order."""
    print(*Path(chain).read_text().split())


add_importer(Importer("chain", "a chain of ops", (".chain",), read=read, written="MODEL.chain",
                      takes=()), oracle)
add_report(Report("depth", Depth, depth, lambda found: [f"{found.ops} ops"]))
add_verb(Verb("ops-of", ops_of, "look", ("graphtool ops-of m.chain",)))
