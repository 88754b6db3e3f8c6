"""Damage to tensors, texts, functions and control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from tests.importers.onnx.build import model, node, value
from tests.importers.onnx.damage import Damage, X, Y, branch, conv, damage, relu

# ---- tensors -----------------------------------------------------------------------------------

def _tensor(**fields: Any) -> Damage:
    """y = Add(x, w) with this initializer; `read=False` leaves it unread."""
    read = fields.pop("read", True)

    def make() -> ModelProto:
        proto = model(["y = Add(x, w)" if read else "y = Neg(x)"], X, Y)
        proto.graph.initializer.add(**{"name": "w", "data_type": 1, "dims": [3], **fields})
        return proto
    return make


for _read in (True, False):
    _end = "" if _read else ", unread"
    damage(f"raw_data too short{_end}", "GT1005")(_tensor(raw_data=b"1234", read=_read))
    damage(f"raw_data too long{_end}", "GT1005")(_tensor(raw_data=b"1234" * 4, read=_read))
    damage(f"too few floats{_end}", "GT1005")(_tensor(float_data=[1.0], read=_read))
    damage(f"too many floats{_end}", "GT1005")(_tensor(float_data=[1.0] * 5, read=_read))
    damage(f"integers for floats{_end}", "GT1005")(_tensor(int32_data=[1] * 3, read=_read))
    damage(f"two kinds of data{_end}", "GT1005")(
        _tensor(float_data=[1.0] * 3, raw_data=b"1234" * 3, read=_read))
    damage(f"no data{_end}", "GT1005")(_tensor(read=_read))
    damage(f"a negative dim{_end}", "GT1005")(_tensor(dims=[-3], float_data=[1.0] * 3, read=_read))
    damage(f"65 dims{_end}", "GT1005")(_tensor(dims=[1] * 65, float_data=[1.0], read=_read))
    damage(f"an overflow of dims{_end}", "GT1005")(
        _tensor(dims=[1 << 33, 1 << 33], raw_data=b"1234", read=_read))
    damage(f"an unknown type{_end}", "GT1004 GT1005")(
        _tensor(data_type=99, raw_data=b"1234" * 3, read=_read))
    damage(f"no type{_end}", "GT1004 GT1005")(
        _tensor(data_type=0, raw_data=b"1234" * 3, read=_read))
    damage(f"strings that are not UTF-8{_end}", "GT1001 GT1005")(
        _tensor(data_type=8, string_data=[b"\xff\xfe"] * 3, read=_read))
    damage(f"raw strings{_end}", "GT1005")(_tensor(data_type=8, raw_data=b"abc", read=_read))
    damage(f"bytes out of range{_end}", "GT1005")(
        _tensor(data_type=2, int32_data=[300, -1, 2], read=_read))
damage("raw_data of a Constant too short", "GT1005")(lambda: model([node(
    "w = Constant()", value=TensorProto(data_type=1, dims=[3], raw_data=b"1234")),
    "y = Add(x, w)"], X, Y))
damage("raw_data of a Constant too short, in a branch never run", "GT1005")(lambda: model([node(
    "y = If(c)", then_branch=branch("t = Neg(x)"),
    else_branch=helper.make_graph([node("e = Constant()", value=TensorProto(
        data_type=1, dims=[2, 3], raw_data=b"12"))], "e", [], [value("e f32 2 3")]))],
    X, Y, {"c": np.array(True)}))


def _sparse(values: list[float], indices: Any, dims: list[int], name: str = "w") -> Damage:
    def make() -> ModelProto:
        proto = model(["y = Add(x, w)"], X, Y)
        at = np.asarray(indices)
        proto.graph.sparse_initializer.append(helper.make_sparse_tensor(
            helper.make_tensor(name, 1, [len(values)], values),
            helper.make_tensor("at", 7, at.shape, at.reshape(-1)), dims))
        return proto
    return make


damage("a sparse index out of range", "GT1005")(_sparse([5.0], [6], [2, 3]))
damage("a negative sparse index", "GT1005")(_sparse([5.0], [-1], [2, 3]))
damage("a sparse index twice", "GT1005")(_sparse([5.0, 6.0], [3, 3], [2, 3]))
damage("sparse indices in disorder", "GT1005")(_sparse([5.0, 6.0], [3, 1], [2, 3]))
damage("a sparse row out of range", "GT1005")(_sparse([5.0], [[2, 0]], [2, 3]))
damage("sparse rows of another rank", "GT1005")(_sparse([5.0], [[1, 0, 0]], [2, 3]))
damage("more sparse indices than values", "GT1005")(_sparse([5.0], [1, 2], [2, 3]))
damage("a sparse tensor too large", "GT1005 GT1022")(_sparse([5.0], [1], [1 << 31, 1 << 14]))
damage("a sparse tensor of 65 dimensions", "GT1005")(_sparse([5.0], [0], [1] * 65))
damage("a sparse tensor of negative dims", "GT1005")(_sparse([5.0], [1], [-2, 3]))

# ---- text --------------------------------------------------------------------------------------

def _bytes(old: bytes, new: bytes, make: Callable[[], ModelProto] = relu) -> Damage:
    return lambda: make().SerializeToString().replace(old, new)


damage("a name that is not UTF-8", "GT1001")(_bytes(b"Relu", b"R\xff\xfeu"))
damage("an attribute string that is not UTF-8", "GT1001 GT1018")(
    _bytes(b"VALID", b"V\xff\xfeID", lambda: conv(auto_pad="VALID")))
damage("an operator without a name", "GT1017 GT1020")(
    lambda: model([helper.make_node("", ["x"], ["y"])], X, Y))
damage("a file cut short", "GT1001 GT1002")(lambda: relu().SerializeToString()[:-9])
damage("an empty file", "GT1001 GT1002")(lambda: b"")

# ---- functions ---------------------------------------------------------------------------------

def _function(body: list[Any], call: Any = None, inputs: tuple[str, ...] = ("a",),
              outputs: tuple[str, ...] = ("b",), times: int = 1, **more: Any) -> Damage:
    def make() -> ModelProto:
        f = helper.make_function("mine", "F", inputs, outputs, body,
                                 more.get("opsets") or [helper.make_opsetid("", 21),
                                                              helper.make_opsetid("mine", 1)])
        proto = model([call or node("y = F(x)", domain="mine")], X, Y, functions=[f] * times)
        proto.opset_import.append(helper.make_opsetid("mine", 1))
        return proto
    return make


damage("a function that calls itself", "GT1013")(_function([node("b = F(a)", domain="mine")]))
damage("a function twice", "GT1012")(_function([node("b = Neg(a)")], times=2))
damage("too many inputs of a function", "GT1014")(
    _function([node("b = Neg(a)")], node("y = F(x, x)", domain="mine")))
damage("too many outputs of a function", "GT1016")(
    _function([node("b = Neg(a)")], node("y, z = F(x)", domain="mine")))
damage("an undefined output of a function", "GT1011")(_function([node("c = Neg(a)")]))
damage("an undefined value in a function", "GT1011")(_function([node("b = Add(a, q)")]))
damage("a value of the caller in a function", "GT1011")(_function([node("b = Add(a, x)")]))
damage("a value twice in a function", "GT1012")(_function([node("b = Neg(a)"), node("b = Abs(a)")]))
damage("an input twice in a function", "GT1012")(
    _function([node("b = Neg(a)")], inputs=("a", "a")))
damage("a function without opsets", "GT1003")(
    _function([node("b = Neg(a)")], opsets=[helper.make_opsetid("mine", 1)]))
damage("a newer operator in a function", "GT1017")(
    _function([node("b = Gelu(a)")], opsets=[helper.make_opsetid("", 13)]))
damage("a faulty function that nothing calls", "GT1014")(
    _function([node("b = Neg(a, a)")], node("y = Neg(x)")))

# ---- control flow ------------------------------------------------------------------------------

def _branch(op: str, out: str = "r", outputs: tuple[str, ...] = ("r f32 2 3",),
            inputs: tuple[str, ...] = ()) -> Any:
    return helper.make_graph([node(f"{out} = {op}(x)")], op, [value(i) for i in inputs],
                             [value(o) for o in outputs])


def _if(then: Any, other: Any, **more: Any) -> Damage:
    return lambda: model([node("y = If(c)", then_branch=then, else_branch=other, **more)],
                         [*X, "c bool"], Y)


damage("branches with inputs", "GT10")(_if(_branch("Neg", inputs=("q f32 2",)), _branch("Abs")))
damage("branches of other counts", "GT10")(
    _if(_branch("Neg", outputs=("r f32 2 3", "r f32 2 3")), _branch("Abs")))
damage("branches of other types", "GT10")(
    _if(_branch("IsNaN", outputs=("r bool 2 3",)), _branch("Abs")))


def _loop(inputs: tuple[str, ...] = ("i i64", "go bool", "s f32 2 3"),
          outputs: tuple[str, ...] = ("on bool", "t f32 2 3"),
          call: str = "y = Loop(n, yes, x)") -> Damage:
    body = helper.make_graph([node("on = Identity(go)"), node("t = Neg(s)")], "body",
                             [value(i) for i in inputs], [value(o) for o in outputs])
    return lambda: model([node(call, body=body)], X, Y, {"n": np.array(3), "yes": np.array(True)})


damage("a loop body with fewer inputs", "GT10")(_loop(inputs=("i i64", "go bool")))
damage("a loop body with fewer outputs", "GT10")(_loop(outputs=("on bool",)))
damage("a loop with more results than its body", "GT10")(_loop(call="y, z, q = Loop(n, yes, x)"))
damage("a loop with more states than its body", "GT10")(_loop(call="y, z = Loop(n, yes, x, x)"))
damage("a loop that goes on by a float", "GT10 GT04")(_loop(outputs=("t f32 2 3", "t f32 2 3")))
