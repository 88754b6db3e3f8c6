"""The check after an import: the evaluator against the source, on two random inputs."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphtool import interp
from graphtool.errors import GraphtoolError
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Module
from graphtool.ir.run_sizes import all_nodes
from graphtool.verify.compare import Difference, compare, magnitude, worst
from graphtool.verify.sides import Side, by_position, of_onnx, of_torch

SEEDS = (0, 1)
ATOL, RTOL = 1e-4, 1e-3  # tolerances for float32 through many layers, with sums in another order


@dataclass(frozen=True)
class ImportCheck:
    """Whether the graph computes what its source does; `line` is the result as text."""

    ok: bool
    line: str
    rows: tuple[Difference, ...] = ()


def check_import(source: str, module: Module, specs: Sequence[str] = ()) -> ImportCheck:
    """Compare on two inputs; if the source cannot be run here, `line` says so and `ok` is true."""
    if source.endswith(".pt2"):
        return ImportCheck(True, "not checked: an archive is read, never run")
    if source.endswith(".onnx") and not importlib.util.find_spec("onnxruntime"):
        return ImportCheck(True, "not checked: onnxruntime is not installed")
    if any(Trait.RANDOM in n.op.traits for n in all_nodes(module.graph)):
        return ImportCheck(True, "not checked: the model draws random numbers")
    try:
        side = of_onnx(Path(source)) if source.endswith(".onnx") else of_torch(
            source, module, specs)
        rows = [row for seed in SEEDS for row in _compare(side, module, seed)]
    except GraphtoolError as error:
        return ImportCheck(True, f"not checked: {error.message}")
    ok = all(r.ok for r in rows)
    verdict = "agrees with" if ok else "DIFFERS from"
    return ImportCheck(ok, f"checked: the graph {verdict} {side.kind} on {len(SEEDS)} inputs: "
                           f"{worst(rows)}", tuple(rows))


def _compare(side: Side, module: Module, seed: int) -> list[Difference]:
    inputs = interp.random_inputs(module, seed)
    expected = side.run(by_position(inputs, tuple(inputs), side.inputs))
    actual = dict(list(interp.run(module, inputs).items())[:len(expected)])
    scale = max((magnitude(x) for x in expected.values()), default=1.0)
    return compare(expected, actual, ATOL * scale, RTOL)
