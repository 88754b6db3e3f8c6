"""The faults that `reduce` preserves: passes that change values, C that differs, a command.

A fault is a function of a module and its inputs; errors count as a fault if the whole graph had
the same one.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import interp, passes
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.io import npz
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.native import runtime
from graphtool.target import Target
from graphtool.verify.compare import compare
from graphtool.verify.reducer import Fault

Array = np.ndarray[Any, Any]
Results = Callable[[Module, Mapping[str, Array]], dict[str, Array]]
TIMEOUT = 300  # the greatest number of seconds for a command


def passes_change(text: str | None, target: Target, atol: float | None, rtol: float) -> Fault:
    """The evaluator gives other values after the passes, or the passes fail."""
    def results(module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return interp.run(passes.run(module, text, supply={"target": target}), inputs)
    return _unlike_the_evaluator(results, atol, rtol)


def compiled_differs(text: str | None, target: Target, atol: float | None, rtol: float) -> Fault:
    """Compiled code gives other values than the evaluator, or there is none."""
    def results(module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
        ready = passes.run(module, text, supply={"target": target})
        with tempfile.TemporaryDirectory(prefix="graphtool-reduce-") as folder:
            model = runtime.load(build(ready, Path(folder) / "b", target=target))
            return model.run(dict(inputs))
    return _unlike_the_evaluator(results, atol, rtol)


def command_fails(command: str) -> Fault:
    """Whether the shell command ends with the code that it gave for the first graph.

    `{graph}` and `{inputs}` in it are replaced by the paths of a graph file and an .npz file.
    """
    first: list[int] = []

    def fault(module: Module, inputs: Mapping[str, Array]) -> bool:
        with tempfile.TemporaryDirectory(prefix="graphtool-reduce-") as folder:
            graph, arrays = Path(folder) / "m.graph.json", Path(folder) / "m.npz"
            serial.save(module, graph)
            npz.save(dict(inputs), arrays)
            line = command.replace("{graph}", str(graph)).replace("{inputs}", str(arrays))
            code = _code(line)
        first.append(code)
        return code == first[0] != 0
    return fault


def _code(line: str) -> int:
    try:
        return subprocess.run(line, shell=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=TIMEOUT).returncode
    except subprocess.TimeoutExpired:
        return 124  # the exit code of timeout(1)


def _unlike_the_evaluator(results: Results, atol: float | None, rtol: float) -> Fault:
    codes: list[str] = []  # the error codes of the whole graph; "" stands for wrong values

    def fault(module: Module, inputs: Mapping[str, Array]) -> bool:
        want = interp.run(module, inputs)
        try:
            rows = compare(want, results(module, inputs), atol, rtol)
            code = "" if not all(r.ok for r in rows) else None
        except GraphtoolError as error:
            code = error.code
        if code is not None:
            codes.append(code)
        return code is not None and code == codes[0]
    return fault
