"""The operations of a source as its author wrote them: an importer records each, and one may stand
again for the nodes that it became.

That is for rewriting a model in its own format. Nothing but that format's exporter knows the op
`authored`: it has no evaluation, no gradient and no C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphtool.dtypes import DType
from graphtool.ir.graph import (
    Graph,
    Module,
    Node,
    Operand,
    TensorType,
    Value,
    is_constant,
    producers,
)
from graphtool.ir.op import Op, complete_attrs
from graphtool.ir.replay import in_regions, prune
from graphtool.ir.run_sizes import defined
from graphtool.symbolic import Dim


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of a source. `text` is all that the exporter writes of it but the names of
    operands and results; `opset` is the version of its operator set.

    An operand or a result that the author left out is None. `values` are those of the nodes that
    the importer wrote for it; `constants` are the nodes of the operands that are known. An
    operation that draws random numbers has the generator's `state` before and after it.
    """

    text: bytes
    opset: int
    operands: tuple[Value | None, ...]
    results: tuple[Value | None, ...]
    values: frozenset[Value]
    constants: tuple[Node, ...] = ()
    state: tuple[Value, Value] | None = None

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The results that are given."""
        return tuple(v for v in self.results if v is not None)


def _types(*_: Operand | TensorType, text: bytes, opset: int, dtypes: tuple[DType, ...],
           shapes: tuple[tuple[Dim, ...], ...]) -> tuple[TensorType, ...]:
    return tuple(TensorType(d, s) for d, s in zip(dtypes, shapes, strict=True))


AUTHORED = Op("authored", _types, doc="an operation of the source, as its author wrote it")

Worse = Callable[[Operation, Graph], bool]
"""Whether the exporter would write an operation's nodes, a graph of its own, at greater length than
the operation."""


def as_authored(module: Module, rows: Sequence[Operation], worse: Worse) -> Module:
    """The module with the operation itself in place of all nodes that came of it, where the
    exporter would write these at greater length.

    An operation keeps its nodes if something else reads a value between them. Nodes that define a
    size stay, since types refer to it. Where operations draw all random numbers, the module has no
    state of a generator.
    """
    largest_first = sorted(rows, key=lambda r: -len(r.values))

    def restored(graph: Graph) -> Graph:
        restoring = _Restoring(graph)
        for row in largest_first:
            restoring.try_(row, worse)
        return prune(restoring.result()) if restoring.at else graph
    return _without_state(replace(module, graph=in_regions(module.graph, restored)))


def _without_state(module: Module) -> Module:
    """The module without a state that it hands on as it is."""
    graph = module.graph
    for out, given in module.donations:
        v = graph.inputs[given]
        if graph.outputs[out] is not v or any(v in n.inputs for n in graph.nodes):
            return module
    outs, inputs = ({pair[i] for pair in module.donations} for i in (0, 1))
    kept = Graph(tuple(v for i, v in enumerate(graph.inputs) if i not in inputs), graph.nodes,
                 tuple(v for i, v in enumerate(graph.outputs) if i not in outs))
    names = tuple(n for i, n in enumerate(module.output_names) if i not in outs)
    return replace(module, graph=kept, output_names=names, donations=())


class _Restoring:
    """The operations that are restored in one graph so far.

    `at` has the operation's node for the last node that it replaces; `gone` are the values that no
    node computes any more, `read` the operands of restored operations. `states` has the state that
    stands for another, which nobody computes.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.order = {n: i for i, n in enumerate(graph.nodes)}
        self.made_by = producers(graph)
        self.readers: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for v in node.inputs:
                if isinstance(v, Value):
                    self.readers.setdefault(v, []).append(node)
        self.fixed = {*graph.inputs, *graph.outputs}
        self.at: dict[Node, Node] = {}
        self.dropped: set[Node] = set()
        self.first: dict[Node, None] = {}
        self.gone: set[Value] = set()
        self.read: set[Value] = set()
        self.states: dict[Operand, Value] = {}

    def try_(self, row: Operation, worse: Worse) -> None:
        """Restore the operation if its nodes can be taken out, and are worse."""
        mine = sorted({n for v in row.values if (n := self.made_by.get(v)) is not None
                       and not is_constant(n)}, key=self.order.__getitem__)
        sizes = set(_with_sources([n for n in mine if defined(n) is not None], mine))
        dropped = [n for n in mine if n not in sizes]
        results = set(row.outputs)
        inner = {v for n in dropped for v in n.outputs} - results - set((row.state or ())[1:])
        whole = results <= {v for n in dropped for v in n.outputs}
        if not dropped or not whole or not self._free(mine, dropped, inner, results) or \
                not self._available(row, self.order[mine[0]]) or not (
                    row.state or worse(row, self._alone(row, mine))):
            return
        last = dropped[-1]
        self.at[last] = Node(AUTHORED, row.operands, complete_attrs(AUTHORED, {
            "text": row.text, "opset": row.opset,
            "dtypes": tuple(v.type.dtype for v in row.outputs),
            "shapes": tuple(v.type.shape for v in row.outputs)}), row.outputs, last.where, last.of)
        self.dropped.update(dropped)
        self.first.update(dict.fromkeys(row.constants))
        self.gone |= inner
        self.read |= {v for v in row.operands if v is not None}
        if row.state:
            self.states[row.state[1]] = self._state(row.state[0])

    def _state(self, v: Any) -> Any:
        while v in self.states:
            v = self.states[v]
        return v

    def _free(self, mine: Sequence[Node], dropped: Sequence[Node], inner: set[Value],
              results: set[Value]) -> bool:
        """Whether nothing but these nodes reads a value between them, and no node that stays and
        defines a size reads a result before it is there."""
        out = set(dropped)
        early = any(v in results for n in mine if n not in out for v in n.inputs)
        used = not inner.isdisjoint(self.fixed) or not inner.isdisjoint(self.read) or any(
            n not in out for v in inner for n in self.readers.get(v, ()))
        return not early and not used and self.dropped.isdisjoint(mine)

    def _available(self, row: Operation, first: int) -> bool:
        """Whether all operands are there before the node of this number; constants can move."""
        known = {v for n in row.constants for v in n.outputs} | set(self.graph.inputs)
        return all(v in known or (v not in self.gone and v in self.made_by and self.order[
            self.made_by[v]] < first) for v in row.operands if v is not None)

    def _constants(self, values: Iterable[Operand]) -> list[Node]:
        nodes = (self.made_by.get(v) for v in values if isinstance(v, Value))
        return [n for n in nodes if is_constant(n)]

    def _alone(self, row: Operation, mine: Sequence[Node]) -> Graph:
        """The operation's nodes as a graph, with its constants."""
        nodes = [*dict.fromkeys(self._constants(v for n in mine for v in n.inputs)), *mine]
        computed = {v for n in nodes for v in n.outputs}
        inputs = (v for n in mine for v in n.inputs if isinstance(v, Value) and v not in computed)
        return Graph(tuple(dict.fromkeys(inputs)), tuple(nodes), row.outputs)

    def result(self) -> Graph:
        """The graph with what has been restored."""
        nodes = list(self.first)
        for n in self.graph.nodes:
            nodes += [n] if n not in self.dropped and n not in self.first else []
            nodes += [self.at[n]] if n in self.at else []
        if self.states:
            nodes = [n if self.states.keys().isdisjoint(n.inputs) else replace(
                n, inputs=tuple(map(self._state, n.inputs))) for n in nodes]
        return Graph(self.graph.inputs, tuple(nodes), tuple(map(self._state, self.graph.outputs)))


def _with_sources(nodes: Sequence[Node], among: Sequence[Node]) -> Iterator[Node]:
    """The nodes and all nodes `among` these that they depend on."""
    wanted = {v for n in nodes for v in n.outputs}
    for node in reversed(among):
        if not wanted.isdisjoint(node.outputs):
            wanted.update(v for v in node.inputs if isinstance(v, Value))
            yield node
