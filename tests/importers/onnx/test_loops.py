"""Loop, Scan and If as loops and branches: onnxruntime's results, evaluated and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.onnx import import_model
from graphtool.ir.verify import verify_module
from tests.importers.onnx.build import bounded
from tests.lower.compiling import compiled, faults, optimised

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
ROWS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
YES = np.asarray(True)


def count(n: int) -> np.ndarray[Any, Any]:
    return np.asarray(n, np.int64)


COLLECTED = """g (int64 trips, float[4] x, float limit) => (float[4] y, float[n, 4] rows,
    int64[n] at) {
  yes = Constant<value = bool {1}>()
  w = Constant<value = float {1.5}>()
  y, rows, at = Loop(trips, yes, x) <body = b (int64 i, bool c, float[4] h)
      => (bool again, float[4] out, float[4] row, int64 j) {
    out = Mul(h, w)
    row = Add(out, x)
    j = Identity(i)
    total = ReduceSum<keepdims = 0>(out)
    again = Less(total, limit) }>
}"""
COUNTED = """g (int64 trips, float[4] x) => (float[4] y, float[n, 4] rows) {
  w = Constant<value = float {-0.5}>()
  y, rows = Loop(trips, , x) <body = b (int64 i, bool c, float[4] h)
      => (bool again, float[4] out, float[4] row) {
    f = Cast<to = 1>(i) out = Mul(h, w) row = Add(out, f) again = Identity(c) }>
}"""
UNCOLLECTED = """g (int64 trips, float[4] x) => (float[4] y) {
  w = Constant<value = float {-0.5}>()
  y = Loop(trips, , x) <body = b (int64 i, bool c, float[4] h) => (bool again, float[4] out) {
    f = Cast<to = 1>(i) a = Mul(h, w) out = Add(a, f) again = Identity(c) }>
}"""
SCAN = """g (float[4] h, float[3, 4] xs) => (float[4] y, float[4, 3] rows) {
  y, rows = Scan<num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
                 body = b (float[4] s, float[4] x) => (float[4] t, float[4] r) {
    t = Add(s, x) r = Tanh(t) }>(h, xs)
}"""
NESTED = """g (int64 trips, bool p, float[3, 4] x) => (float[3, 4] y) {
  y = Loop(trips, , x) <body = b (int64 i, bool c, float[3, 4] h)
      => (bool again, float[3, 4] out) {
    again = Identity(c)
    out = If(p) <then_branch = t () => (float[3, 4] a) {
        z = Add(h, x) u = Tanh(z) v = Mul(u, u) a = Sub(v, x) },
      else_branch = e () => (float[3, 4] d) {
        s, d = Scan<num_scan_inputs = 1, body = q (float[4] m, float[4] r)
            => (float[4] k, float[4] o) { k = Add(m, r) o = Identity(k) }>(zero, h) }> }>
  zero = Constant<value = float[4] {0.0, 0.0, 0.0, 0.0}>()
}"""
SHAPES = """g (bool p, float[3, 4] x) => (float[n, 4] y) {
  y = If(p) <then_branch = t () => (float[m, 4] a) {
      z = Neg(x) a = Concat<axis = 0>(z, x) },
    else_branch = e () => (float[k, 4] d) {
      u = Abs(x) zero = Constant<value = int64[1] {0}>() two = Constant<value = int64[1] {2}>()
      d = Slice(u, zero, two) }>
}"""
FOUND = """g (bool p, float[12] x) => (int64[1, n] y) {
  y = If(p) <then_branch = t () => (int64[1, m] a) { z = Relu(x) a = NonZero(z) },
    else_branch = e () => (int64[1, k] d) { u = Neg(x) v = Relu(u) d = NonZero(v) }>
}"""
UP = {"y_size": (0, 16), "y_size2": (0, 16), "y_size3": (0, 16)}
CASES: dict[str, tuple[str, list[dict[str, Any]], str]] = {
    "collected": (COLLECTED, [{"trips": count(k), "x": np.ones(4, np.float32),
                               "limit": np.asarray(m, np.float32)}
                              for k, m in ((0, 9.0), (5, 1e9), (16, 50.0))], "scan"),
    "counted": (COUNTED, [{"trips": count(k), "x": ROWS[0]} for k in (0, 1, 7)], "scan"),
    "uncollected": (UNCOLLECTED, [{"trips": count(k), "x": ROWS[0]} for k in (0, 3, 40)], "scan"),
    "scan": (SCAN, [{"h": ROWS[0], "xs": ROWS}], "scan"),
    "nested": (NESTED, [{"trips": count(k), "p": np.asarray(p), "x": ROWS}
                        for k, p in ((2, True), (3, False), (0, True))], "scan"),
    "shapes": (SHAPES, [{"p": np.asarray(p), "x": ROWS} for p in (True, False)], "cond"),
    "found": (FOUND, [{"p": np.asarray(p), "x": ROWS.reshape(-1)} for p in (True, False)], "cond"),
}


@pytest.mark.parametrize("name", CASES)
def test_loops_equal_onnxruntime(name: str, tmp_path: Path) -> None:
    text, feeds, op = CASES[name]
    model = onnx.parser.parse_model(HEAD + text)
    module = bounded(model, UP if name not in ("uncollected", "nested") else {})
    verify_module(module)
    assert op in {n.op.name for n in module.graph.nodes}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    library = compiled(optimised(module), tmp_path)
    for given in feeds:
        want = dict(zip(module.output_names, session.run(None, given), strict=True))
        assert faults(interp.run(module, given), want) == []
        assert faults(library.run(given), want) == []


ENDLESS = COLLECTED.replace("int64 trips, ", "").replace("Loop(trips, ", "Loop(, ")


def test_a_loop_that_only_its_condition_ends() -> None:
    module = import_model(onnx.parser.parse_model(HEAD + ENDLESS), dynamic={"y_size": (0, 8)})
    x = np.ones(4, np.float32)
    rows = interp.run(module, {"x": x, "limit": np.float32(20)})["rows"]
    assert rows[:, 0].tolist() == [2.5, 3.25, 4.375, 6.0625]
    with pytest.raises(InputError, match="GT0505"):  # it does not stop silently at its bound
        interp.run(module, {"x": x, "limit": np.float32(1e30)})


def test_what_cannot_be_bounded_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"Loop: .*--dynamic y_size=0\.\.MOST"):
        import_model(onnx.parser.parse_model(HEAD + ENDLESS))
    ranks = SHAPES.replace("a = Concat<axis = 0>(z, x)",
                           "s = Shape(x) v = ReduceSum<keepdims = 0>(z) a = Add(v, v)")
    with pytest.raises(UnsupportedError, match=r"If: on a computed condition.*Reshape or Cast"):
        import_model(onnx.parser.parse_model(HEAD + ranks))


def test_one_bound_is_enough(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(HEAD + COLLECTED)
    with pytest.raises(InputError, match=r"GT2005.*the size y_size has no upper bound"):
        compiled(optimised(import_model(proto)), tmp_path / "a")
    run = compiled(optimised(import_model(proto, dynamic={"y_size": (0, 16)})), tmp_path / "b").run
    feed = {"trips": count(3), "x": np.ones(4, np.float32), "limit": np.float32(99)}
    assert run(feed)["rows"].shape == (3, 4)
