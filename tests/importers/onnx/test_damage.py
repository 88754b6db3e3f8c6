"""No invalid model is accepted in silence: each kind of damage is refused with a code and a
place, but for those with one meaning, which are taken with a warning."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from graphtool.errors import GraphtoolError, InputError
from graphtool.importers.limits import Limits
from graphtool.importers.onnx import import_model
from graphtool.importers.onnx.driver import reader
from tests.importers.onnx import (  # noqa: F401  (they fill the table)
    damage_demands,
    damage_parts,
    damage_values,
)
from tests.importers.onnx.build import model, node
from tests.importers.onnx.damage import ROWS


@pytest.mark.parametrize("name", ROWS)
def test_damage_is_refused(name: str) -> None:
    codes, make = ROWS[name]
    proto = make()
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    with pytest.raises(GraphtoolError) as caught:
        import_model(reader.parse_model(data, "m.onnx"), limits=Limits(strict=True))
    assert caught.value.code.startswith(tuple(codes.split())), caught.value
    assert caught.value.where or getattr(caught.value, "items", ())


CLEAR = {"an operator newer than the opset", "a newer operator inside a branch",
         "a newer operator in a function", "Add of bytes at opset 13"}


def taken(name: str, strict: bool | None) -> bool:
    """Whether the damaged model is taken; then it has a warning."""
    proto = ROWS[name][1]()
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    try:
        module = import_model(reader.parse_model(data, "m.onnx"), limits=Limits(strict=strict))
    except GraphtoolError:
        return False
    return bool(module.meta.get("warnings"))


def test_damage_with_one_meaning_is_a_warning() -> None:
    assert {name for name in ROWS if taken(name, None)} == CLEAR


def test_lenient_takes_what_has_some_meaning() -> None:
    found = {name for name in ROWS if taken(name, False)}
    assert found >= CLEAR | {"opset 999"}, found


LISTED_TWICE = [("the same", ["y = Relu(x)"], None), ("none differs", ["y = Neg(x)"], None),
                ("one differs", ["y = Softmax(x)"], False)]


@pytest.mark.parametrize(("name", "nodes", "strict"), LISTED_TWICE)
def test_a_domain_listed_twice(name: str, nodes: list[str], strict: bool | None) -> None:
    proto = model(nodes, ["x f32 2 3"], ["y f32 2 3"], opset=11)
    proto.opset_import.append(helper.make_opsetid("", 11 if name == "the same" else 12))
    if name == "one differs":
        proto.opset_import[-1].version = 13
        with pytest.raises(InputError, match="two opset versions"):
            import_model(proto)
    module = import_model(proto, limits=Limits(strict=strict))
    assert bool(module.meta.get("warnings")) == (name != "the same")


OLDER = {  # what onnxruntime and skl2onnx write, and every runtime takes
    "LayerNormalization at 12": (["y = LayerNormalization(x, s)"], 12),
    "Equal of floats at 7": (["y = Equal(x, x)"], 7),
    "a constant of int64 at 1": ([node("y = Constant()", value=helper.make_tensor(
        "v", 7, (1,), [3]))], 1),
    "ZipMap": ([node("y = ZipMap(x)", domain="ai.onnx.ml",
                     classlabels_int64s=[0, 1, 2])], 17)}


@pytest.mark.parametrize("name", OLDER)
def test_what_every_runtime_takes(name: str) -> None:
    nodes, opset = OLDER[name]
    proto = model(nodes, ["x f32 2 3"], ["y bool 2 3"], {"s": np.ones(3, np.float32)}, opset)
    kind = {"Equal of floats at 7": TensorProto.BOOL, "a constant of int64 at 1": TensorProto.INT64}
    if name == "ZipMap":
        proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
        proto.graph.output[0].type.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    else:
        proto.graph.output[0].type.tensor_type.elem_type = kind.get(name, TensorProto.FLOAT)
    warned = import_model(proto).meta.get("warnings")
    assert bool(warned) == (name != "ZipMap"), warned


def test_the_table_is_long() -> None:
    assert len(ROWS) >= 280
