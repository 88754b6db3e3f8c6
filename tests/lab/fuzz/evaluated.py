"""One case: the oracle, the importer, the evaluator, the passes; and what is to blame.

If an output differs from the oracle's, each node is tried alone on the oracle's operands, so a
difference is found where it arises. Where no node differs alone, the whole graph is asked how it
amplifies roundings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper, numpy_helper

import graphtool.kernels  # noqa: F401  (fills the registry)
from benchmarks import jobs
from graphtool import interp
from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.importers.onnx import import_model
from tests.lab.fuzz.compare import amplified, assumed, difference, differing
from tests.lab.fuzz.growing import Case, info, model_of
from tests.lab.fuzz.judged import SECONDS, Evaluated, after_passes, code
from tests.lab.fuzz.oracle import Oracle, Silent
from tests.lab.fuzz.quirks import NEAR_ONE, Use, quirk
from tests.lab.suite.limits import limited

Array = np.ndarray[Any, Any]

def evaluated(case: Case, oracle: Oracle) -> Evaluated:
    """The case through the oracle, the importer, the evaluator and the passes."""
    found = Evaluated(case)
    every = ModelProto()
    every.CopyFrom(case.model)
    del every.graph.output[:]
    every.graph.output.extend(case.every)
    try:
        values = oracle.run(every.SerializeToString(), case.inputs)
    except Silent as error:
        found.status, found.why = "skipped", str(error)
        return found
    try:
        with limited(SECONDS):
            module = import_model(case.model)
            got = interp.run(module, case.inputs)
    except UnsupportedError as error:
        found.status, found.why = "refused", "; ".join(f"{i.name}: {i.reason}" for i in error.items)
        return found
    except Exception as error:
        if case.symbolic and isinstance(error, GraphtoolError) and error.code != "GT1015":
            # the size is open in name only: the model runs with no other
            found.status, found.why = "refused", f"{error.code} with an open size"
            return found
        if alone := _silenced(case, values):
            found.status, found.why = "explained", alone
        else:
            found.status, found.why = "wrong", jobs.short(error)
            found.blame(f"{code(error)} in {_culprit(case, values)}", jobs.short(error))
        return found
    want = {o.name: values[o.name] for o in case.model.graph.output}
    found.module, found.want = module, got
    found.assume = assumed([*case.inputs.values(), *values.values(), *got.values(), *(
        numpy_helper.to_array(t) for t in case.model.graph.initializer)])
    if wrong := differing(got, want, len(case.ops)):
        _explain(case, found, values, wrong, want)
    after_passes(found)
    return found


def _explain(case: Case, found: Evaluated, values: dict[str, Array], wrong: dict[str, str],
             want: dict[str, Array]) -> None:
    """Blame the nodes that differ alone, or the whole graph unless it amplifies roundings."""
    blamed = False
    for node in case.model.graph.node:
        kind = alone(case, node, values)
        if kind:
            blamed = True
            why = quirk(used(case, node, values))
            if why:
                found.status, found.why = "explained", why
            else:
                found.blame(f"{node.op_type}: {kind}", _described(case, node, values))
    if not blamed:
        found.status, found.why = "explained", "the graph amplifies roundings"
        if kinds := _of_the_whole(case, found, values, want):
            found.blame(f"whole graph: {kinds[0]}", ", ".join(case.ops))
    if found.findings:
        found.status, found.why = "wrong", found.findings[0].cause


def _of_the_whole(case: Case, found: Evaluated, values: dict[str, Array],
                  want: dict[str, Array]) -> list[str]:
    """The kinds of differences that come from the graph, while each node alone is right.

    None if our own nodes, one after the other, give what the whole gives: then the oracle's
    roundings went a longer way. Else those that further roundings do not explain.
    """
    chain = dict(values)
    for node in case.model.graph.node:
        chain |= on_operands(case, node, chain)
    if not differing(found.want, {n: chain[n] for n in want}, len(case.ops)):
        return []
    assert found.module is not None
    moved = amplified(found.module, case.inputs, found.want)
    # windows are compared alone, beside the cosines that they are made of
    windows = {n.output[0] for n in case.model.graph.node if n.op_type.endswith("Window")}
    rest = {name: w for name, w in want.items() if name not in windows}
    return sorted(differing(found.want, rest, len(case.ops), moved).values())


# ---- one node ----------------------------------------------------------------------------------

def reads(graph: GraphProto | NodeProto) -> Iterator[str]:
    """The names that a node reads, those of its bodies included."""
    for node in graph.node if isinstance(graph, GraphProto) else [graph]:
        yield from (n for n in node.input if n)
        for a in node.attribute:
            if a.type == AttributeProto.GRAPH:
                yield from reads(a.g)


def arrays(case: Case, node: NodeProto, values: dict[str, Array]) -> dict[str, Array]:
    """The operands of a node as the oracle had them."""
    held = {t.name: numpy_helper.to_array(t) for t in case.model.graph.initializer}
    known = {**held, **case.inputs, **values}
    return {n: known[n] for n in dict.fromkeys(reads(node)) if n in known}


def used(case: Case, node: NodeProto, values: dict[str, Array]) -> Use:
    """The node and its operands as the oracle had them, for the quirks."""
    return Use(node, arrays(case, node, values), {t.name for t in case.model.graph.initializer})


def single(case: Case, node: NodeProto, values: dict[str, Array]) -> ModelProto:
    """A model of the node alone; its constants stay constants."""
    held = {t.name: t for t in case.model.graph.initializer}
    operands = arrays(case, node, values)
    inputs = [info(n, x.dtype, list(x.shape)) for n, x in operands.items() if n not in held]
    outputs = [info(n, values[n].dtype, None) for n in node.output if n in values]
    return model_of(helper.make_graph([node], "alone", inputs, outputs,
                                      [held[n] for n in operands if n in held]))


def on_operands(case: Case, node: NodeProto, values: dict[str, Array]) -> dict[str, Array]:
    """Our results of one node on these operands."""
    model, operands = single(case, node, values), arrays(case, node, values)
    return interp.run(import_model(model), {v.name: operands[v.name] for v in model.graph.input})


def alone(case: Case, node: NodeProto, values: dict[str, Array]) -> str:
    """How the node differs on the oracle's own operands; empty if it does not."""
    model, operands = single(case, node, values), arrays(case, node, values)
    try:
        with limited(SECONDS):
            module = import_model(model)
            given = {v.name: operands[v.name] for v in model.graph.input}
            got = interp.run(module, given)
    except Exception as error:
        return code(error)
    want = {o.name: values[o.name] for o in model.graph.output}
    terms = [*operands.values()]
    if node.op_type in NEAR_ONE:
        terms.append(np.ones(1, np.float32))
    kinds = [k for n, w in want.items() if (k := difference(got[n], w, terms))]
    if kinds and kinds[0] == "value":
        moved = amplified(module, given, got)
        kinds = [k for n, w in want.items() if (k := difference(
            got[n], w, terms, allowed=moved[n]))]
    return kinds[0] if kinds else ""


def _culprit(case: Case, values: dict[str, Array]) -> str:
    """The first node that fails alone."""
    for node in case.model.graph.node:
        if alone(case, node, values).startswith(("GT", "crash")):
            return str(node.op_type)
    return "whole graph"


def _silenced(case: Case, values: dict[str, Array]) -> str:
    """The reason if the first node that fails alone is a known quirk."""
    for node in case.model.graph.node:
        if alone(case, node, values).startswith(("GT", "crash")):
            return quirk(used(case, node, values))
    return ""


def _described(case: Case, node: NodeProto, values: dict[str, Array]) -> str:
    operands = " ".join(f"{x.dtype}{list(x.shape)}" for x in arrays(case, node, values).values())
    told = {a.name: helper.get_attribute_value(a) for a in node.attribute
            if a.type != AttributeProto.GRAPH}
    return f"{operands} {told or ''}"[:300]
