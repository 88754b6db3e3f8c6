"""Sizes that a run computes: onnxruntime's results, in the evaluator and in compiled C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from graphtool import interp
from graphtool.errors import InputError
from graphtool.importers.onnx import import_model
from graphtool.ir.verify import verify_module
from graphtool.lower import lower
from graphtool.target import named
from tests.importers.onnx.build import bounded, model, node
from tests.lower.compiling import compiled, faults, optimised

Feeds = list[dict[str, Any]]
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
V = np.array([3, 1, 3, 0, 0, 7, 1], np.float32)
UP = {f"{name}": (0, 64) for name in (
    "y_size", "y_size2", "y_size3", "y_size4", "r_size", "p_size")}


def i64(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


CASES: dict[str, tuple[Any, Feeds]] = {
    "nonzero": (model(["n = NonZero(x)", "t = Transpose(n)", "y = GatherND(x, t)"],
                      ["x f32 2 3 4"], ["n i64 3 ?", "y f32 ?"]),
                [{"x": x} for x in (np.maximum(X, 0), X * 0, X)]),
    "compress": (model([node("y = Compress(x, c)", axis=1)], ["x f32 2 3 4", "c bool 3"],
                       ["y f32 2 ? 4"]),
                 [{"x": X, "c": np.array(c)} for c in ([True, False, True], [False] * 3)]),
    "unique": (model(["y, i, b, n = Unique(x)"], ["x f32 7"],
                     ["y f32 ?", "i i64 ?", "b i64 ?", "n i64 ?"]), [{"x": V}, {"x": V * 0}]),
    "unique as they come": (model([node("y, i, b, n = Unique(x)", sorted=0)], ["x f32 7"], [
        "y f32 ?", "i i64 ?", "b i64 ?", "n i64 ?"]), [{"x": V}]),
    "range": (model(["r = Range(a, b, c)", "y = Mul(r, r)"], ["a i64", "b i64", "c i64"],
                    ["y i64 ?"]),
              [{"a": np.array(a), "b": np.array(b), "c": np.array(c)}
               for a, b, c in ((1, 10, 2), (9, 0, -2), (3, 3, 1), (0, -5, 1))]),
    "reshape": (model(["y = Reshape(x, s)", "z = Relu(y)"], ["x f32 2 3 4", "s i64 2"],
                      ["z f32 ? ?"]),
                [{"x": X, "s": i64(*s)} for s in ((4, 6), (-1, 8), (0, -1), (24, 1))]),
    "expand": (model(["y = Expand(x, s)", "z = Add(y, y)"], ["x f32 3 1", "s i64 2"],
                     ["z f32 3 ?"]), [{"x": X[0, :, :1], "s": i64(1, n)} for n in (1, 5)]),
    "tile": (model(["y = Tile(x, s)"], ["x f32 3 4", "s i64 2"], ["y f32 ? ?"]),
             [{"x": X[0], "s": i64(*s)} for s in ((1, 1), (2, 3))]),
    "slice": (model(["y = Slice(x, a, b, k, s)"], [
        "x f32 2 3 4", "a i64 2", "b i64 2", "k i64 2", "s i64 2"], ["y f32 ? ? ?"]),
        [{"x": X, "a": i64(*a), "b": i64(*b), "k": i64(2, 1), "s": i64(*s)} for a, b, s in (
            ((0, 1), (3, 9), (1, 1)), ((-1, 2), (-9, 0), (-2, -1)), ((2, 2), (1, 3), (1, 1)))]),
    "slice by known steps": (model(["y = Slice(x, a, b, k, s)", "z = Neg(y)"], [
        "x f32 2 3 4", "a i64 1", "b i64 1"], ["z f32 2 3 ?"], {"k": i64(2), "s": i64(2)}),
        [{"x": X, "a": i64(a), "b": i64(b)} for a, b in ((0, 4), (1, -1), (-9, 9), (3, 1))]),
    "pad": (model(["y = Pad(x, p)"], ["x f32 3 4", "p i64 4"], ["y f32 ? ?"]),
            [{"x": X[0], "p": i64(*p)} for p in ((0, 0, 0, 0), (1, 0, 2, 3))]),
    "pad by reflection": (model([node("y = Pad(x, p)", mode="reflect")], ["x f32 3 4", "p i64 4"],
                                ["y f32 ? ?"]),
                          [{"x": X[0], "p": i64(*p)} for p in ((0, 0, 0, 0), (1, 2, 2, 3))]),
    "top k": (model(["y, i = TopK(x, k)"], ["x f32 2 3 4", "k i64 1"],
                    ["y f32 2 3 ?", "i i64 2 3 ?"]), [{"x": X, "k": i64(k)} for k in (1, 4)]),
    "one hot": (model(["y = OneHot(i, n, v)"], ["i i64 4", "n i64", "v f32 2"], ["y f32 4 ?"]),
                [{"i": i64(0, 2, 1, -1), "n": np.array(n), "v": V[:2]} for n in (3, 5)]),
    "split": (model([node("a, b = Split(x, s)", axis=2)], ["x f32 2 3 4", "s i64 2"],
                    ["a f32 2 3 ?", "b f32 2 3 ?"]),
              [{"x": X, "s": i64(*s)} for s in ((1, 3), (4, 0))]),
    "reduce": (model(["y = ReduceSum(x, k)", "z = Exp(y)"],
                     ["x f32 2 3 4", "k i64 1"], ["z f32 ? ? ?"]),
               [{"x": X, "k": i64(a)} for a in (0, 1, -1)]),
    "reduce and drop": (model([node("y = ReduceMax(x, k)", keepdims=0), "z = Exp(y)"],
                              ["x f32 2 3 4", "k i64 1"], ["z f32 ? ?"]),
                        [{"x": X, "k": i64(a)} for a in (0, 1, -1)]),
    "boxes": (model([node("y = NonMaxSuppression(b, s, m, o, t)")], [
        "b f32 1 6 4", "s f32 1 2 6", "m i64", "o f32", "t f32"], ["y i64 ? 3"]),
        [{"b": np.random.default_rng(1).random((1, 6, 4), np.float32),
          "s": np.random.default_rng(2).random((1, 2, 6), np.float32), "m": np.array(m),
          "o": np.array(v, np.float32), "t": np.array(0.2, np.float32)}
         for m, v in ((3, 0.1), (6, 0.5), (0, 0.5))]),
}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", CASES)
def test_computed_sizes_equal_onnxruntime(name: str, tmp_path: Path) -> None:
    proto, feeds = CASES[name]
    module = bounded(proto, UP)
    verify_module(module)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    library = compiled(optimised(module), tmp_path)
    for feed in feeds:
        want = dict(zip(module.output_names, session.run(None, feed), strict=True))
        assert faults(interp.run(module, feed), want) == []
        assert faults(library.run(feed), want) == []


def test_what_nothing_bounds_is_named() -> None:
    module = import_model(CASES["tile"][0])
    assert interp.run(module, {"x": X[0], "s": i64(5, 1)})["y"].shape == (15, 4)
    with pytest.raises(InputError, match=r"GT2005.*y_size[\s\S]*--dynamic y_size=0\.\.MOST"):
        lower(optimised(module), named("native"))
