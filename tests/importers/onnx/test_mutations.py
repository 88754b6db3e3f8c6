"""Models broken on purpose: each is imported, or refused with a code; never anything else."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import helper

from graphtool.errors import GraphtoolError, InternalError
from graphtool.importers.onnx import import_model
from graphtool.importers.onnx.driver import reader
from tests.lab.suite.cases import cases

VALUES: tuple[Any, ...] = (3, -1, 2.5, "x", [1, 2], [-1], [0.5], 2**40, [10**9])


def _dropped_attribute(m: Any, node: Any, rng: random.Random) -> None:
    if node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]


def _other_attribute(m: Any, node: Any, rng: random.Random) -> None:
    if node.attribute:
        a = rng.choice(node.attribute)
        a.CopyFrom(helper.make_attribute(a.name, rng.choice(VALUES)))


def _other_input(m: Any, node: Any, rng: random.Random) -> None:
    names = ["", "nowhere", *(v.name for v in m.graph.input), *node.output]
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)


def _fewer_inputs(m: Any, node: Any, rng: random.Random) -> None:
    if node.input:
        node.input.pop()


def _more_outputs(m: Any, node: Any, rng: random.Random) -> None:
    node.output.append(rng.choice(["extra", "", *node.output]))


def _other_operator(m: Any, node: Any, rng: random.Random) -> None:
    node.op_type = rng.choice(["Add", "Conv", "Reshape", "Loop", "Concat", "LSTM", "Resize"])
    node.domain = rng.choice(["", "com.microsoft", "ai.onnx.ml", "elsewhere"])


def _other_type(m: Any, node: Any, rng: random.Random) -> None:
    for v in m.graph.input:
        v.type.tensor_type.elem_type = rng.randrange(30)


def _other_shape(m: Any, node: Any, rng: random.Random) -> None:
    for v in m.graph.input:
        dims = v.type.tensor_type.shape.dim
        if dims:
            rng.choice(dims).dim_value = rng.choice([0, 1, 7, -3, 10**12])


def _no_shape(m: Any, node: Any, rng: random.Random) -> None:
    for v in m.graph.input:
        v.ClearField("type")


def _other_opset(m: Any, node: Any, rng: random.Random) -> None:
    m.opset_import[0].version = rng.randrange(-1, 35)


MUTATIONS: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    _dropped_attribute, _other_attribute, _other_input, _fewer_inputs, _more_outputs,
    _other_operator, _other_type, _other_shape, _no_shape, _other_opset)


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_broken_models_are_refused_with_a_code(mutation: Any) -> None:
    rng = random.Random(mutation.__name__)
    every = [c.model for c in cases() if c.kind == "node" and c.model.ByteSize() < 20_000]
    for _ in range(60):
        model = onnx.ModelProto()
        model.CopyFrom(rng.choice(every))
        mutation(model, rng.choice(model.graph.node or [onnx.NodeProto()]), rng)
        try:
            module = import_model(reader.parse_model(model.SerializeToString(), "m.onnx"))
        except GraphtoolError as error:
            assert not isinstance(error, InternalError), model
        else:
            if not module.meta.get("warnings"):
                onnx.checker.check_model(model)  # what is accepted in silence is valid
