"""If and Loop on computed conditions become regions; the results are onnxruntime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from graphtool import interp
from graphtool.errors import InputError
from graphtool.importers.limits import Limits
from graphtool.importers.onnx import import_model
from graphtool.ir.verify import verify_module
from tests.importers.onnx.build import model, node, value
from tests.lower.compiling import compiled, faults, optimised

IF = """<ir_version: 9, opset_import: ["" : 18]>
g (bool p, float[3,4] x) => (float[3,4] y) {
  w = Constant<value = float[4] {1.0, -2.0, 0.5, 3.0}>()
  z = Mul(x, w)
  y = If(p) <then_branch = a () => (float[3,4] t) {
               s = Mul(z, w) u = Exp(x) v = Add(s, u) t = Tanh(v) },
             else_branch = b () => (float[3,4] e) { f = Neg(z) e = Sqrt(f) }>
}"""
LOOP = """<ir_version: 9, opset_import: ["" : 18]>
g (int64 trips, float[4] x, float limit) => (float[4] y, int64 n) {
  yes = Constant<value = bool {1}>()
  zero = Constant<value = int64 {0}>()
  two = Constant<value = float {1.5}>()
  y, n = Loop(trips, yes, x, zero) <body = b (int64 i, bool c, float[4] h, int64 k)
      => (bool again, float[4] out, int64 more) {
    out = Mul(h, two)
    total = ReduceSum<keepdims = 0>(out)
    again = Less(total, limit)
    more = Add(k, i) }>
}"""
GUARDED = """<ir_version: 9, opset_import: ["" : 18]>
g (float[5] x, int64 i) => (float y) {
  n = Constant<value = int64 {5}>()
  p = Less(i, n)
  y = If(p) <then_branch = a () => (float t) { t = Gather(x, i) },
             else_branch = b () => (float e) { e = Constant<value = float {7.0}>() }>
}"""
CONDITION = """<ir_version: 9, opset_import: ["" : 18]>
g (bool p, float[N,3] x, float[M,3] y) => (float z) {
  z = If(p) <then_branch = a () => (float t) { s = Add(x, y) t = ReduceSum<keepdims = 0>(s) },
             else_branch = b () => (float e) { e = ReduceSum<keepdims = 0>(x) }>
}"""
CASES = [
    (IF, [{"p": np.asarray(p), "x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}
          for p in (True, False)], "cond"),
    (LOOP, [{"trips": np.asarray(k), "x": np.ones(4, np.float32),
             "limit": np.asarray(m, np.float32)}
            for k, m in ((0, 9.0), (5, 1e9), (100, 200.0))], "while"),
    (GUARDED, [{"x": np.arange(5, dtype=np.float32), "i": np.asarray(i)} for i in (3, -2, 9)],
     "cond"),
    (CONDITION, [{"p": np.asarray(p), "x": np.ones((n, 3), np.float32),
                  "y": np.ones((m, 3), np.float32)}
                 for p, n, m in ((True, 2, 2), (False, 2, 3), (False, 4, 4))], "cond")]


@pytest.mark.parametrize("text, inputs, op", CASES, ids=["if", "loop", "index", "sizes"])
def test_regions_equal_onnxruntime(text: str, inputs: list[dict[str, np.ndarray]], op: str,
                                   tmp_path: Path) -> None:
    model = onnx.parser.parse_model(text)
    module = import_model(model)
    verify_module(module)
    assert op in {n.op.name for n in module.graph.nodes}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    library = compiled(optimised(module), tmp_path)
    for given in inputs:
        want = dict(zip(module.output_names, session.run(None, given), strict=True))
        assert faults(interp.run(module, given), want) == []
        assert faults(library.run(given), want) == []


@pytest.mark.parametrize("text, inputs", [
    (GUARDED, {"x": np.zeros(5, np.float32), "i": np.asarray(-6)}),
    (CONDITION, {"p": np.asarray(True), "x": np.ones((2, 3), np.float32),
                 "y": np.ones((3, 3), np.float32)})], ids=["index", "sizes"])
def test_a_branch_that_is_taken_is_checked(text: str, inputs: dict[str, np.ndarray],
                                           tmp_path: Path) -> None:
    module = import_model(onnx.parser.parse_model(text))
    with pytest.raises(InputError):
        interp.run(module, inputs)
    with pytest.raises(InputError):
        compiled(optimised(module), tmp_path).run(inputs)


def nested(op: str, depth: int) -> onnx.ModelProto:
    """`depth` of these inside each other. Inside all is a Concat, so that no loop keeps its type;
    each runs once."""
    rows = [node("y0 = Concat(x0, x0)", axis=0)]
    for d in range(1, depth + 1):
        if op == "If":
            body = helper.make_graph([node(f"x{d - 1} = Identity(x{d})"), *rows], f"b{d}", [],
                                     [value(f"y{d - 1} f32")])
            other = helper.make_graph([node(f"e{d} = Concat(x{d}, x{d})", axis=0)], f"e{d}", [],
                                      [value(f"e{d} f32")])
            rows = [node(f"y{d} = If(p)", then_branch=body, else_branch=other)]
        elif op == "Loop":
            body = helper.make_graph([node(f"k{d} = Identity(c{d})"), *rows], f"b{d}",
                                     [value(f"i{d} i64"), value(f"c{d} bool"),
                                      value(f"x{d - 1} f32")],
                                     [value(f"k{d} bool"), value(f"y{d - 1} f32")])
            rows = [node(f"y{d} = Loop(one, yes, x{d})", body=body)]
        else:
            body = helper.make_graph(rows, f"b{d}", [value(f"x{d - 1} f32"), value(f"r{d} f32")],
                                     [value(f"y{d - 1} f32")])
            rows = [node(f"y{d} = Scan(x{d}, row)", body=body, num_scan_inputs=1)]
    weights = {"one": np.array(1), "yes": np.array(True), "row": np.zeros((1, 1), np.float32)}
    for a in rows[0].attribute:
        _forget_shapes(a.g)
    return model(rows, [f"x{depth} f32 2", "p bool"], [f"y{depth} f32 4"], weights)


def _forget_shapes(graph: onnx.GraphProto) -> None:
    for info in (*graph.input, *graph.output):
        info.type.tensor_type.ClearField("shape")
    for n in graph.node:
        for a in n.attribute:
            _forget_shapes(a.g)


@pytest.mark.parametrize("op", ["If", "Loop", "Scan"])
def test_the_cost_of_nesting_is_linear(op: str) -> None:
    module = import_model(nested(op, 20), limits=Limits(nodes=100))
    x = np.array([1, 2], np.float32)
    out, = interp.run(module, {"x20": x, "p": np.array(True)}).values()
    np.testing.assert_array_equal(out, [1, 2, 1, 2])
