"""Regions: cond as If, while as Loop, scan as Scan. A body reads outer values by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, helper

from graphtool.exporters.onnx.kit import Ref, dtypes, form
from graphtool.exporters.onnx.sizes import size
from graphtool.exporters.onnx.writer import Writer, needed, value_info
from graphtool.ir.graph import Graph, Node, TensorType, producers

_FLAG, _STEP = TensorType(dtypes.bool_, ()), TensorType(dtypes.int64, ())


def body(inner: Writer, name: str, inputs: Sequence[Ref], outputs: Sequence[Ref]) -> GraphProto:
    """The GraphProto of a region. Each output has its own name and is computed inside."""
    written = {n for node in inner.nodes for n in node.output}
    results: list[Ref] = []
    for x in outputs:
        if x.name not in written or any(x.name == r.name for r in results):
            x = Ref(inner("Identity", x), x.type)
        results.append(x)
    nodes = needed(inner.nodes, [x.name for x in results])
    there = {name for n in nodes for name in n.output}
    return helper.make_graph(nodes, name, [value_info(x.name, x.type) for x in inputs],
                             [value_info(x.name, x.type) for x in results],
                             value_info=[value_info(*i) for i in inner.infos if i[0] in there])


def region(w: Writer, name: str) -> Writer:
    """A writer for a region's nodes, inside the writer `w`."""
    inner = Writer(w.shared, w)
    inner.hint, inner.where = f"{w.hint}.{name}", w.where
    return inner


def named(inner: Writer, type: TensorType, wish: str) -> Ref:
    """A Ref of a new name in the region."""
    return Ref(inner.shared.name(f"{inner.hint}.{wish}"), type)


@form("cond")
def cond(w: Writer, node: Node, pred: Ref, *operands: Ref) -> Any:
    """If, with both branches as graphs."""
    branches = {}
    for name, key in (("then", "then_branch"), ("orelse", "else_branch")):
        inner = region(w, name)
        branches[key] = body(inner, inner.hint, (), inner.graph(node.attrs[name], operands))
    results = w("If", pred, outputs=len(node.outputs), **branches)
    return results if len(node.outputs) != 1 else (results,)


@form("while")
def while_(w: Writer, node: Node, *operands: Ref) -> Any:
    """Loop; the condition is computed once before it, and at the end of each step."""
    check: Graph = node.attrs["cond"]
    count = node.attrs["carries"]
    first, = w.graph(check, operands)
    inner = region(w, "body")
    step, flag = named(inner, _STEP, "step"), named(inner, _FLAG, "goes_on")
    held = [named(inner, x.type, f"held.{i}") for i, x in enumerate(operands[:count])]
    new = inner.graph(node.attrs["body"], [*held, *operands[count:]])
    again, = inner.graph(check, [*new, *operands[count:]])
    bound = node.attrs["bound"]
    most = None if bound is None else w.array(bound)
    results = w("Loop", most, first, *operands[:count], outputs=count,
                body=body(inner, inner.hint, [step, flag, *held], [again, *new]))
    return results if count != 1 else (results,)


@form("scan")
def scan(w: Writer, node: Node, *operands: Ref) -> Any:
    """Scan if there are rows to read; else a Loop with a trip count."""
    carries, xs, reverse = (node.attrs[k] for k in ("carries", "xs", "reverse"))
    if not xs or node.attrs["length"] == 0:
        return _counted(w, node, operands)
    cut, graph = carries + xs, node.attrs["body"]
    inner = region(w, "body")
    inputs = [named(inner, v.type, v.hint) for v in graph.inputs[:cut]]
    results = inner.graph(graph, [*inputs, *operands[cut:]])
    rows = len(results) - carries
    way = int(reverse)
    out = w("Scan", *operands[:cut], outputs=len(node.outputs), num_scan_inputs=xs,
            body=body(inner, inner.hint, inputs, results),
            scan_input_directions=[way] * xs if way else None,
            scan_output_directions=[way] * rows if way and rows else None)
    return out if len(node.outputs) != 1 else (out,)


def _counted(w: Writer, node: Node, operands: Sequence[Ref]) -> Any:
    """A Loop that gathers row i, which also works for a length of 0; after a reverse scan the
    stacked results are reversed. A carry that counts the steps from 0 is the Loop's own."""
    carries, xs, reverse, length = (node.attrs[k] for k in ("carries", "xs", "reverse", "length"))
    cut, graph = carries + xs, node.attrs["body"]
    trips = w.array(length, dtypes.int64) if isinstance(length, int) else w(
        "Squeeze", size(w, length), w.array([0]))
    inner = region(w, "body")
    step, flag = named(inner, _STEP, "step"), named(inner, _FLAG, "goes_on")
    counters = _counters(w, graph, operands[:carries])
    held = [step if i in counters else named(inner, v.type, v.hint)
            for i, v in enumerate(graph.inputs[:carries])]
    at = inner("Sub", inner("Sub", trips, inner.array(1, dtypes.int64)), step) if reverse else step
    rows = [Ref(inner("Gather", x, at, axis=0), v.type)
            for x, v in zip(operands[carries:cut], graph.inputs[carries:cut], strict=True)]
    results = inner.graph(graph, [*held, *rows, *operands[cut:]])
    kept = [i for i in range(len(results)) if i not in counters]
    out = w("Loop", trips, None, *(operands[i] for i in kept if i < carries), outputs=len(kept),
            body=body(inner, inner.hint, [step, flag, *(held[i] for i in kept if i < carries)],
                      [flag, *(results[i] for i in kept)]))
    got = dict(zip(kept, out if len(kept) != 1 else [out], strict=True))
    for i in range(carries, len(results)) if reverse else ():
        got[i] = w("Slice", got[i], w.array([-1]), w.array([np.iinfo(np.int64).min]),
                   w.array([0]), w.array([-1]))
    return tuple(got.get(i, trips) for i in range(len(results)))


def _counters(w: Writer, body: Graph, operands: Sequence[Ref]) -> list[int]:
    """The carries that are 0 before the first step, and 1 more after each; not all of them."""
    made_by, found = producers(body), []
    for i, (x, v) in enumerate(zip(operands, body.inputs, strict=False)):
        first, after = w.shared.initializers.get(x.name), made_by.get(body.outputs[i])
        if first is not None and x.type == _STEP and not np.any(first.source) and (
                after is not None) and after.op.name == "add" and set(after.inputs) == {v, 1}:
            found.append(i)
    return found if len(found) < len(body.outputs) else found[1:]
