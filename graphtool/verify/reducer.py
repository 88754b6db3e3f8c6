"""Shrinks a graph that shows a fault to a small graph that still shows it.

Candidates are slices: one value is the output, and some values become inputs with the data that
they had in the whole graph. A fault is a function of a module and its inputs: passes that change
values, C that differs, a command. An error counts as the fault if the whole graph had the same one.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import interp, passes
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.io import npz
from graphtool.ir import serial
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant
from graphtool.ir.replay import ancestors, prune
from graphtool.ir.text import value_names
from graphtool.native import runtime
from graphtool.target import Target
from graphtool.verify.compare import compare

Array = np.ndarray[Any, Any]
Inputs = dict[str, Array]
Fault = Callable[[Module, Mapping[str, Array]], bool]
Results = Callable[[Module, Mapping[str, Array]], dict[str, Array]]
TIMEOUT = 300  # the greatest number of seconds for a command


@dataclass(frozen=True)
class Slice:
    """The nodes that compute the `wanted` values from the `given` ones."""

    given: frozenset[Value]
    wanted: tuple[Value, ...]


class Reducer:
    """One reduction. `tell` is called for each smaller graph; at most `tries` candidates run."""

    def __init__(self, module: Module, inputs: Mapping[str, Array], fault: Fault,
                 tell: Callable[[int, int], None] = lambda tried, nodes: None,
                 tries: int = 1000) -> None:
        self.module, self.fault, self.tell, self.left = module, fault, tell, tries
        self.tried = 0
        self.names = value_names(module.graph)
        self.arrays: dict[str, Array] = dict(inputs)
        interp.run(module, inputs, on_value=self.arrays.__setitem__)
        self.best = Slice(frozenset(), module.graph.outputs)

    def run(self) -> tuple[Module, Inputs]:
        """The smallest graph found, with its inputs."""
        before = -1
        while before != (size := self.size(self.best)) and self.left > 0:
            before = size
            self.fewer_outputs()
            self.earlier_output()
            self.later_inputs()
        return self.cut(self.best)

    # ---- what is tried -----------------------------------------------------------------------

    def fewer_outputs(self) -> None:
        """Try each output as the only one."""
        for v in self.best.wanted if len(self.best.wanted) > 1 else ():
            if self.shows(replace(self.best, wanted=(v,))):
                return

    def earlier_output(self) -> None:
        """Try earlier values as the only output, in steps that are halved."""
        step = self.size(self.best) // 2
        while step >= 1:
            values = [v for n in self.computed(self.best) for v in n.outputs]
            at = len(values) - 1 - step
            if at < 0 or not self.shows(replace(self.best, wanted=(values[at],))):
                step //= 2

    def later_inputs(self) -> None:
        """Try inner values as inputs: the first half of the nodes, then fewer, then single ones."""
        step = self.size(self.best) // 2
        while step >= 1:
            early = {v for n in self.computed(self.best)[:step] for v in n.outputs
                     if v not in self.best.wanted}
            if not early or not self.shows(replace(self.best, given=self.best.given | early)):
                step //= 2
        for node in reversed(self.computed(self.best)):
            if set(node.outputs).isdisjoint(self.best.wanted):
                self.shows(replace(self.best, given=self.best.given | set(node.outputs)))

    def shows(self, candidate: Slice) -> bool:
        """Whether the candidate is smaller and shows the fault; it then becomes the best so far."""
        nodes = self.size(candidate)
        if self.left <= 0 or not 0 < nodes < self.size(self.best):
            return False
        if not candidate.given.isdisjoint(candidate.wanted):
            return False
        self.left, self.tried = self.left - 1, self.tried + 1
        try:
            fault = self.fault(*self.cut(candidate))
        # a slice need not be a valid graph, for example if it lacks a symbol
        except GraphtoolError:
            return False
        if fault:
            self.best = candidate
            self.tell(self.tried, nodes)
        return fault

    # ---- slices ------------------------------------------------------------------------------

    def nodes(self, s: Slice) -> list[Node]:
        """The nodes of a slice, in order."""
        return ancestors(self.module.graph, s.wanted, s.given)

    def computed(self, s: Slice) -> list[Node]:
        """The nodes of a slice in order, without constants."""
        return [n for n in self.nodes(s) if not is_constant(n)]

    def size(self, s: Slice) -> int:
        """The number of nodes of a slice, constants not counted."""
        return len(self.computed(s))

    def cut(self, s: Slice) -> tuple[Module, Inputs]:
        """The slice as a module, and its inputs."""
        nodes = self.nodes(s)
        read = {x for n in nodes for x in n.inputs if isinstance(x, Value)}
        computed = {v for n in nodes for v in n.outputs if v not in s.given}
        order = [*self.module.graph.inputs, *(v for n in self.module.graph.nodes
                                              for v in n.outputs)]
        inputs = tuple(v for v in order if v in read and v not in computed)
        graph = prune(Graph(inputs, tuple(nodes), s.wanted))
        now = value_names(graph)
        held = {now[v]: self.arrays[self.names[v]] for v in inputs}
        return replace(self.module, graph=graph, output_names=tuple(now[v] for v in s.wanted),
                       donations=(), initial={}), held


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
