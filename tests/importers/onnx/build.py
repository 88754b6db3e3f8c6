"""Small ONNX models in one line, the evaluator on them, and onnxruntime as the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from graphtool import interp
from graphtool.dtypes import as_strings
from graphtool.errors import UsageError
from graphtool.importers.onnx import import_model
from graphtool.ir.graph import Module
from graphtool.ir.verify import verify_module
from tests.closeness import assert_close

TYPES = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16,
         "i64": TensorProto.INT64, "i32": TensorProto.INT32, "bool": TensorProto.BOOL,
         "i8": TensorProto.INT8, "u8": TensorProto.UINT8, "str": TensorProto.STRING}


def value(spec: str) -> Any:
    """`x f32 2 N 3` as a ValueInfoProto; a dimension `?` has no name."""
    name, kind, *dims = spec.split()
    shape = [None if d == "?" else int(d) if d.lstrip("-").isdigit() else d for d in dims]
    return helper.make_tensor_value_info(name, TYPES[kind], shape)


def node(text: str, **attrs: Any) -> Any:
    """`y = Add(a, b)` as a NodeProto; `domain` and `name` are attributes here."""
    outputs, _, call = text.partition("=")
    op, _, inputs = call.strip().rstrip(")").partition("(")
    return helper.make_node(op, [i.strip() for i in inputs.split(",")] if inputs else [],
                            [o.strip() for o in outputs.split(",")], **attrs)


def model(nodes: Sequence[Any], inputs: Sequence[str], outputs: Sequence[str],
          weights: Mapping[str, Any] | None = None, opset: int = 21, **more: Any) -> ModelProto:
    nodes = [node(n) if isinstance(n, str) else n for n in nodes]
    graph = helper.make_graph(nodes, "test", [value(i) for i in inputs],
                              [value(o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(a), k)
                               for k, a in (weights or {}).items()])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **more)


def checked(proto: ModelProto, **options: Any) -> Module:
    module = import_model(proto, **options)
    verify_module(module)
    assert {n.where for n in module.graph.nodes} <= {"", *module.locations}
    return module


def ops(module: Module) -> list[str]:
    """The op names of the graph, constants aside."""
    return [n.op.name for n in module.graph.nodes if n.op.name != "constant"]


def evaluate(proto: ModelProto, feed: Mapping[str, Any]) -> list[Any]:
    return list(interp.run(checked(proto), dict(feed)).values())


def oracle(proto: ModelProto, feed: Mapping[str, Any]) -> list[Any]:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feed)))


def agree(proto: ModelProto, feed: Mapping[str, Any], tolerance: float = 1e-5) -> None:
    """The evaluator and onnxruntime give the same values, types and shapes."""
    for got, want in zip(evaluate(proto, feed), oracle(proto, feed), strict=True):
        want = as_strings(want) if want.dtype == object else want
        assert got.dtype == want.dtype
        if got.dtype.kind == "T":
            np.testing.assert_array_equal(got, want)
            continue
        assert_close(got, want, list(feed.values()), tolerance=tolerance)


def bounded(proto: ModelProto, bounds: Mapping[str, tuple[int, int]]) -> Module:
    """The model with those of the bounds whose sizes it has."""
    left = dict(bounds)
    while True:
        try:
            return import_model(proto, dynamic=left)
        except UsageError as error:
            del left[error.message.split("'")[1]]


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
