"""Each check of a lint profile: a model that violates it, and one that keeps all rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from graphtool.errors import InputError
from graphtool.importers.onnx.lint import violations
from graphtool.importers.onnx.lint.checks import CHECKS
from graphtool.importers.onnx.lint.profile import Profile, Rule, load

FLOAT = TensorProto.FLOAT
SONNX = load("sonnx")
ATTRIBUTES = {"auto_pad": "NOTSET", "dilations": [1, 1], "group": 1, "kernel_shape": [3, 3],
              "pads": [1, 1, 1, 1], "strides": [1, 1]}


def value(name: str, shape: list[Any] | None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def kept() -> onnx.ModelProto:
    """A convolution and a relu, with everything stated."""
    weight = numpy_helper.from_array(np.ones((2, 3, 3, 3), np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv", **ATTRIBUTES),
             helper.make_node("Relu", ["c"], ["y"], "relu")]
    graph = helper.make_graph(nodes, "g", [value("x", ["N", 3, 8, 8])],
                              [value("y", ["N", 2, 8, 8])], [weight],
                              value_info=[value("c", ["N", 2, 8, 8])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def found(model: onnx.ModelProto, path: Path, profile: Profile = SONNX) -> dict[str, list[str]]:
    """The messages of each rule that the model violates."""
    onnx.save(model, path / "m.onnx")
    rows = violations(path / "m.onnx", profile)
    return {r.id: [f"{v.name}: {v.message}" for v in found]
            for r, found in zip(profile.rules, rows, strict=True) if found}


def test_a_model_that_states_everything_keeps_all_rules(tmp_path: Path) -> None:
    assert found(kept(), tmp_path) == {}


def no_shape(m: onnx.ModelProto) -> None:
    del m.graph.value_info[:]


def no_name_of_a_size(m: onnx.ModelProto) -> None:
    m.graph.input[0].type.tensor_type.shape.dim[0].Clear()


def no_attributes(m: onnx.ModelProto) -> None:
    del m.graph.node[0].attribute[:]


def no_version(m: onnx.ModelProto) -> None:
    m.graph.node[1].domain = "com.acme"


def two_versions(m: onnx.ModelProto) -> None:
    m.opset_import.append(helper.make_opsetid("ai.onnx", 19))


def sparse(m: onnx.ModelProto) -> None:
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(
        helper.make_tensor("s", FLOAT, [1], [1.0]),
        helper.make_tensor("", TensorProto.INT64, [1], [2]), [4]))


def dead(m: onnx.ModelProto) -> None:
    m.graph.node.append(helper.make_node("Neg", ["c"], ["d"], "dead"))
    m.graph.value_info.append(value("d", ["N", 2, 8, 8]))


def unused_input(m: onnx.ModelProto) -> None:
    m.graph.input.append(value("z", [1]))


def other_operator(m: onnx.ModelProto) -> None:
    m.graph.node[1].op_type = "Mish"


def random(m: onnx.ModelProto) -> None:
    m.graph.node[1].CopyFrom(helper.make_node(
        "RandomNormalLike", ["c"], ["y"], "noise", mean=0.0, scale=1.0, dtype=FLOAT, seed=1.0))


def conversion(m: onnx.ModelProto) -> None:
    m.graph.initializer.append(numpy_helper.from_array(np.array(2, np.int64), "two"))
    m.graph.node[1].CopyFrom(helper.make_node("Pow", ["c", "two"], ["y"], "square"))


def dropout(m: onnx.ModelProto) -> None:
    m.graph.input.append(value("mode", [], TensorProto.BOOL))
    m.graph.node[1].CopyFrom(helper.make_node("Dropout", ["c", "", "mode"], ["y"], "drop"))


def in_a_branch(m: onnx.ModelProto) -> None:
    def branch(name: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node("Relu", ["c"], [name], "inner"),
                                  helper.make_node("Neg", ["c"], ["spare"], "spare")],
                                 "a branch", [], [value(name, ["N", 2, 8, 8])])
    m.graph.input.append(value("which", [], TensorProto.BOOL))
    m.graph.node[1].CopyFrom(helper.make_node("If", ["which"], ["y"], "choose",
                                              then_branch=branch("t"), else_branch=branch("e")))


def invalid(m: onnx.ModelProto) -> None:
    m.graph.node[1].input[0] = "nothing"


@pytest.mark.parametrize(("change", "rules"), [
    (no_shape, {"GR2": ["c: no type is stated"]}),
    (no_name_of_a_size, {"GR2": ["x: size 0 has neither number nor name"]}),
    (no_attributes, {"REQ-OP-070": [
        "conv (Conv): left to the default: auto_pad, dilations, group, kernel_shape, pads, "
        "strides"]}),
    (no_version, {"REQ-FO-020": ["relu (Relu): no version is stated of the domain com.acme"],
                  "REQ-OP-000": ["relu (Relu): com.acme.Relu is not in the list of operators"]}),
    (two_versions, {"REQ-FO-000": ["graph g: ai.onnx has two opset versions, 20 and 19"],
                    "REQ-FO-020": ["ai.onnx: two versions of this domain are stated"]}),
    (sparse, {"GR1": ["s: a sparse initializer"]}),
    (dead, {"R1": ["dead (Neg): nothing reads its output d"]}),
    (unused_input, {"C2": ["z: no node reads this input"]}),
    (other_operator, {"REQ-OP-000": ["relu (Mish): Mish is not in the list of operators"]}),
    (random, {"REQ-OP-000": ["noise (RandomNormalLike): RandomNormalLike is not in the list of "
                             "operators"],
              "REQ-OP-010": ["noise (RandomNormalLike): RandomNormalLike is used"]}),
    (conversion, {"GR3": ["square (Pow): Y is int64, the first input is float"]}),
    (dropout, {"REQ-OP-000": ["drop (Dropout): Dropout is not in the list of operators"],
               "REQ-OP-020": ["drop (Dropout): Dropout is, or may be, in training mode"]}),
    (in_a_branch, {"GR2": ["spare: no type is stated"] * 2,
                   "REQ-OP-000": ["choose (If): If is not in the list of operators"],
                   "R1": ["spare (Neg): nothing reads its output spare"] * 2}),
    (invalid, {"REQ-FO-000": ["relu (Relu): 'nothing' is read, but no node, input or initializer "
                              "defines it"],
               "R1": ["conv (Conv): nothing reads its output c"]}),
], ids=lambda x: getattr(x, "__name__", ""))
def test_a_violation_is_found(change: Any, rules: dict[str, list[str]], tmp_path: Path) -> None:
    model = kept()
    change(model)
    assert found(model, tmp_path) == rules


def test_every_check_is_violated_somewhere() -> None:
    assert {r.check for r in SONNX.rules} | {"sizes-fixed"} == set(CHECKS)


def test_a_rule_outside_of_sonnx(tmp_path: Path) -> None:
    mine = Profile("acme", "", "", (Rule("ACME-1", "all sizes are numbers", "sizes-fixed"),))
    assert found(kept(), tmp_path, mine) == {"ACME-1": [
        f"{name}: the size N is no number" for name in ("x", "c", "y")]}


@pytest.mark.parametrize(("text", "says"), [
    ("{}", "missing required field"), ("[", "not a JSON artifact"),
    ('{"name": "a", "title": "", "source": "", "rules": [{"id": "1", "says": "", '
     '"check": "dens"}]}', "did you mean 'dense'?"),
    ('{"name": "a", "title": "", "source": "", "rules": [{"id": "1", "says": "", "check": '
     '"dense"}, {"id": "1", "says": "", "check": "valid"}]}', "two rules '1'")])
def test_a_faulty_profile(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError) as error:
        found(kept(), tmp_path, load(str(tmp_path / "p.json")))
    assert says in f"{error.value.message} {error.value.hint}"
