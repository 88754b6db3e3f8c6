"""Open sizes that must be equal: assumed at import, checked by the evaluator and by compiled code.

The oracle for sizes that satisfy the condition is onnxruntime.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.exporters.onnx import model_of
from graphtool.ir import encode, listing, serial
from graphtool.symbolic.text import name_text
from tests.importers.onnx.build import agree, checked, model, node, random
from tests.lower.compiling import compiled, optimised

Shapes = dict[str, tuple[int, ...]]
W43, W44, W34 = (random(*s, 3, 3, seed=i) / 4 for i, s in enumerate(((4, 3), (4, 4), (3, 4))))
TWICE = np.array([1, 1, 2, 2], np.float32)
UP = {"mode": "nearest"}


@dataclass(frozen=True)
class Case:
    """A model, its conditions, shapes that satisfy them, and shapes that break one of them."""

    nodes: tuple[Any, ...]
    inputs: tuple[str, ...]
    rules: tuple[str, ...]
    good: tuple[Shapes, ...]
    bad: tuple[Shapes, ...]
    weights: dict[str, Any] = field(default_factory=dict)

    @property
    def proto(self) -> Any:
        return model(self.nodes, [f"{i.split()[0]} f32 {' '.join(i.split()[1:])}"
                                  for i in self.inputs], [f"y f32{' ?' * self.rank}"],
                     self.weights, opset=17)

    rank: int = 2


def case(nodes: Any, inputs: str, rules: str, good: Any, bad: Any, rank: int = 2,
         **weights: Any) -> Case:
    return Case(tuple(nodes) if isinstance(nodes, list) else (nodes,),
                tuple(i.strip() for i in inputs.split(",")),
                tuple(r.strip() for r in rules.split(",")),
                tuple(good) if isinstance(good, list) else (good,),
                tuple(bad) if isinstance(bad, list) else (bad,), weights, rank)


def pair(a: tuple[int, ...], b: tuple[int, ...]) -> Shapes:
    return {"a": a, "b": b}


def down(x: str, y: str, w: str, **more: Any) -> Any:
    return node(f"{y} = Conv({x}, {w})", strides=[2, 2], pads=[1, 1, 1, 1], **more)


def up(x: str, y: str) -> Any:
    return node(f"{y} = Resize({x}, , twice)", **UP)


def image(*sizes: int) -> Shapes:
    return {"x": (1, 3, *sizes)}


EITHER = "M == N or M == 1 or N == 1"
ROWS = ([pair((4, 3), (4, 3)), pair((1, 3), (4, 3)), pair((4, 3), (1, 3)), pair((1, 3), (1, 3))],
        pair((4, 3), (5, 3)))
CASES = {
    "add": case("y = Add(a, b)", "a N 3, b M 3", EITHER, *ROWS),
    "mul": case("y = Mul(a, b)", "a N 3, b M 3", EITHER, *ROWS),
    "both axes": case("y = Sub(a, b)", "a N K, b M L",
                      f"{EITHER}, K == L or K == 1 or L == 1",
                      [pair((4, 3), (4, 3)), pair((1, 3), (4, 1)), pair((4, 1), (4, 5))],
                      [pair((4, 3), (5, 3)), pair((4, 3), (4, 5))]),
    "crossed": case("y = Add(a, b)", "a N M, b M N", EITHER, pair((4, 4), (4, 4)),
                    pair((4, 3), (3, 4))),
    "a number": case("y = Add(a, b)", "a N 3, b 4 3", "N == 4", ROWS[0][0],
                     pair((5, 3), (4, 3))),
    "matmul": case("y = MatMul(a, b)", "a N K, b L M", "L == K", pair((4, 3), (3, 5)),
                   pair((4, 3), (4, 5))),
    "gemm": case(node("y = Gemm(a, b)", transB=1), "a N K, b M L", "L == K",
                 pair((4, 3), (5, 3)), pair((4, 3), (5, 4))),
    "matmul batches": case("y = MatMul(a, b)", "a N 2 3, b M 3 2", EITHER,
                           [pair((4, 2, 3), (4, 3, 2)), pair((1, 2, 3), (4, 3, 2))],
                           pair((4, 2, 3), (5, 3, 2)), 3),
    "concat": case(node("y = Concat(a, b)", axis=1), "a N 3, b M 2", "M == N",
                   pair((4, 3), (4, 2)), pair((4, 3), (5, 2))),
    "concat, then add": case([node("c = Concat(a, b)", axis=0), "y = Add(c, x)"],
                             "a N 3, b M 3, x K 3", "K == M + N",
                             pair((4, 3), (2, 3)) | {"x": (6, 3)},
                             pair((4, 3), (2, 3)) | {"x": (5, 3)}),
    "where": case(["c = Greater(a, zero)", "y = Where(c, a, b)"], "a N 3, b M 3", EITHER, *ROWS,
                  zero=np.float32(0)),
    "reshape": case(["y = Reshape(a, s)", ], "a N M", "N == 6*M", pair((12, 2), (1, 1)),
                    pair((12, 3), (1, 1)), s=np.array([-1, 6])),
    "product": case(["s = Shape(b)", "r = Reshape(a, s)", "y = Add(r, b)"], "a N 4, b M 2",
                    "M == 2*N", pair((3, 4), (6, 2)), pair((3, 4), (5, 2))),
    "gather": case([node("g = Gather(a, i)", axis=0), "y = Add(g, b)"], "a N 3, b M 3", "M == 2",
                   pair((4, 3), (2, 3)), pair((4, 3), (3, 3)), i=np.array([1, 0])),
    "einsum": case(node("y = Einsum(a, b)", equation="ij,jk->ik"), "a N K, b L M", "L == K",
                   pair((4, 3), (3, 5)), pair((4, 3), (4, 5))),
    "resize": case([down("x", "c", "w"), up("c", "u"), node("v = Conv(u, v3)", pads=[1, 1, 1, 1]),
                    "y = Add(v, x)"], "x N 3 H W", "H % 2 == 0, W % 2 == 0",
                   [image(8, 6), image(2, 4)], [image(7, 6), image(8, 5)], 4,
                   w=W43, v3=W34, twice=TWICE),
    "odd": case([node("p = MaxPool(x)", kernel_shape=[1, 2], strides=[1, 2]),
                 node("u = Resize(p, , s)", **UP), node("q = Pad(u, z)"), "y = Add(q, x)"],
                "x N 3 H W", "W % 2 == 1", [image(4, 7), image(4, 5)], image(4, 6), 4,
                s=np.array([1, 1, 1, 2], np.float32), z=np.array([0, 0, 0, 0, 0, 0, 0, 1])),
    "pool": case([node("p = AveragePool(x)", kernel_shape=[2, 2], strides=[2, 2]),
                  node("q = AveragePool(p)", kernel_shape=[2, 2], strides=[2, 2]), up("q", "u"),
                  node("y = Concat(u, p)", axis=1)], "x N 3 H W",
                 "(H//2) == 2*(H//4), (W//2) == 2*(W//4)",
                 [image(8, 8), image(9, 5)], [image(6, 8), image(8, 7)], 4, twice=TWICE),
    "u-net": case([down("x", "c", "w"), down("c", "d", "w4"),
                   node("t = ConvTranspose(d, w2)", strides=[2, 2], kernel_shape=[2, 2]),
                   "e = Add(t, c)",
                   node("f = ConvTranspose(e, w3)", strides=[2, 2], kernel_shape=[2, 2]),
                   node("y = Concat(f, x)", axis=1)], "x N 3 H W", "H % 4 == 0, W % 4 == 0",
                  [image(8, 12), image(4, 4)], [image(8, 10), image(6, 8)], 4,
                  w=W43, w4=W44, w2=W44[..., :2, :2], w3=W43.transpose(0, 1, 2, 3)[..., :2, :2]),
    "pad": case([node("p = Pad(a, z)"), "y = Add(p, b)"], "a N 3, b M 3", "M == N + 3",
                pair((4, 3), (7, 3)), pair((4, 3), (4, 3)), z=np.array([1, 0, 2, 0])),
    "slices": case([node("p = Slice(a, s, e, s, t)"), "y = Add(p, b)"], "a N 3, b M 3",
                   "M == ((N + 1)//2)", [pair((7, 3), (4, 3)), pair((8, 3), (4, 3))],
                   pair((6, 3), (4, 3)), s=np.array([0]), e=np.array([1 << 40]),
                   t=np.array([2])),
    "halves": case([node("u, v = Split(a)", axis=0), "y = Add(u, v)"], "a N 3", "N % 2 == 0",
                   {"a": (6, 3)}, {"a": (5, 3)}),
    "attention": case([node("t = Transpose(b)", perm=[1, 0]), "s = MatMul(a, t)",
                       node("p = Softmax(s)", axis=-1), "y = MatMul(p, x)"],
                      "a N 4, b L 4, x K 4", "K == L",
                      {"a": (3, 4), "b": (5, 4), "x": (5, 4)},
                      {"a": (3, 4), "b": (5, 4), "x": (6, 4)}),
    "mask": case([node("t = Transpose(a)", perm=[1, 0]), "s = MatMul(a, t)", "y = Add(s, b)"],
                 "a N 4, b L L", "L == N or L == 1 or N == 1",
                 [pair((5, 4), (5, 5)), pair((5, 4), (1, 1))], pair((5, 4), (4, 4))),
    "three": case(["c = Add(a, b)", "y = Mul(c, x)"], "a N 3, b M 3, x K 3",
                  f"{EITHER}, K == M or K == 1 or M == 1, "
                  "K == N or K == 1 or N == 1",
                  [pair((4, 3), (4, 3)) | {"x": (4, 3)}, pair((1, 3), (4, 3)) | {"x": (1, 3)},
                   pair((1, 3), (1, 3)) | {"x": (4, 3)}], pair((4, 3), (4, 3)) | {"x": (5, 3)}),
    "expand": case(["s = Shape(b)", "y = Expand(a, s)"], "a N 3, b M 3",
                   EITHER, *ROWS),
    "a gradient's": case([node("m = ReduceMean(a)", axes=[0], keepdims=1), "c = Sub(a, m)",
                          "y = Add(c, b)"], "a N K, b L K", "L == N or L == 1 or N == 1", *ROWS),
}
CASES["reshape"] = replace(CASES["reshape"], nodes=(
    node("f = Reshape(a, s)"), "y = Add(f, b)"), inputs=("a N 4", "b M 6"),
    rules=("N % 3 == 0", "M == 2*(N//3)"),
    good=(pair((6, 4), (4, 6)),), bad=(pair((6, 4), (3, 6)), pair((7, 4), (4, 6))))
every_case = pytest.mark.parametrize("name", CASES)


def arrays(shapes: Shapes, *names: str) -> dict[str, Any]:
    return {n: random(*shapes[n], seed=i) for i, n in enumerate(names)}


def feeds(c: Case, many: tuple[Shapes, ...]) -> list[dict[str, Any]]:
    return [arrays(s, *(i.split()[0] for i in c.inputs)) for s in many]


@every_case
def test_conditions_are_in_the_artifact(name: str) -> None:
    module = checked(CASES[name].proto)
    assert tuple(listing.required(module)) == CASES[name].rules


@every_case
def test_as_onnxruntime_where_they_hold(name: str) -> None:
    for feed in feeds(CASES[name], CASES[name].good):
        agree(CASES[name].proto, feed)


@every_case
def test_an_error_where_they_do_not(name: str) -> None:
    module = checked(CASES[name].proto)
    for feed in feeds(CASES[name], CASES[name].bad):
        with pytest.raises(InputError, match="does not hold") as error:
            interp.run(module, feed)
        assert error.value.code == "GT0516"


@pytest.mark.part(4)
@every_case
def test_compiled(name: str, tmp_path: Path) -> None:
    c = CASES[name]
    module = checked(c.proto)
    built = compiled(optimised(module), tmp_path)
    for feed in feeds(c, c.good):
        np.testing.assert_allclose(built.run(feed)["y"], interp.run(module, feed)["y"],
                                   rtol=1e-4, atol=1e-5)
    for feed in feeds(c, c.bad):
        with pytest.raises(InputError, match="does not hold") as error:
            built.run(feed)
        assert error.value.code == "GT2231"


@every_case
def test_conditions_survive_files_and_listings(name: str) -> None:
    module = checked(CASES[name].proto)
    for write in (encode.dumps, listing.dumps):
        text = write(module, embed=True)
        again = serial.loads(text, "m")
        assert write(again, embed=True) == text
        assert listing.required(again) == listing.required(module)
    assert listing.required(optimised(module)) == listing.required(module)


@pytest.mark.parametrize("name", ["min", "2x", 'he"ight', "none", "w#", "12", "[n]", "a == b; é"])
def test_an_open_size_keeps_its_name(name: str) -> None:
    clean = name.replace(" ", "_")
    proto = model(["y = Concat(x, x)"], ["x f32 N 3"], ["y f32 ? 3"])
    proto.graph.node[0].attribute.append(helper.make_attribute("axis", 0))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = name
    module = checked(proto, dynamic={name: (2, 8)})
    assert set(module.symbols) == {clean} == set(checked(model_of(module)).symbols)
    again = serial.loads(listing.dumps(module, embed=True))
    for m in (module, again):
        with pytest.raises(InputError) as caught:
            interp.run(m, {"x": np.zeros((9, 3), np.float32)})
        assert name_text(clean) + " = 9" in caught.value.message


def test_a_range_of_floats_up_to_a_size() -> None:
    """As detectors make the centres of their anchors."""
    proto = model(["s = Shape(x)", "n = Gather(s, one)", "f = Cast(n)",
                   "r = Range(low, f, step)", "y = Add(r, half)"], ["x f32 2 W"], ["y f32 C"],
                  {"one": np.int64(1), "low": np.float32(1), "step": np.float32(2),
                   "half": np.float32(0.5)})
    proto.graph.node[2].attribute.append(helper.make_attribute("to", 1))
    for n in (2, 5, 8):
        agree(proto, {"x": random(2, n)})
    proto.graph.initializer[2].CopyFrom(numpy_helper.from_array(np.float32(0.5), "step"))
    with pytest.raises(UnsupportedError, match="a step that is a constant integer"):
        checked(proto)


def test_question_marks_are_sizes_of_their_own() -> None:
    proto = model(["y = Relu(x)"], ["x f32 A B 3"], ["y f32 A B 3"])
    for d in proto.graph.input[0].type.tensor_type.shape.dim[:2]:
        d.dim_param = "?"
    assert str(checked(proto).graph.inputs[0].type) == "f32[dim0,dim1,3]"


def test_a_pool_has_room_for_a_window() -> None:
    proto = model([node("y = MaxPool(x)", kernel_shape=[3], strides=[2], pads=[1, 0])],
                  ["x f32 1 1 T"], ["y f32 1 1 U"])
    assert checked(proto).symbols["T"].lo == 2
