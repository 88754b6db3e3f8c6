"""Names, symbols, constants, places, functions, and each fault of a model as one coded error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from graphtool import interp
from graphtool.errors import GraphtoolError, InputError, UnsupportedError, UsageError
from graphtool.importers.onnx import import_model, import_onnx, support
from graphtool.importers.onnx.validate import scopes
from graphtool.ir import serial
from graphtool.ir.listing import required
from graphtool.ir.text import value_names
from tests.growth import lines
from tests.importers.onnx.build import checked, evaluate, model, node, ops, random, value

SAMPLES = Path(__file__).parents[3] / "samples"


def code(proto: Any, **options: Any) -> str:
    with pytest.raises(GraphtoolError) as caught:
        import_model(proto, **options)
    return caught.value.code


# ---- growth ------------------------------------------------------------------------------------

def long_chain(n: int) -> Any:
    """Constants, and nodes of the same names in other graphs, one after another."""
    rows = []
    for i in range(n):
        x = f"y{i - 1}" if i else "x"
        rows += [node(f"c{i} = Constant()", value_floats=[float(i % 7), 1.0]),
                 f"a{i} = Add({x}, c{i})", f"y{i} = Relu(a{i})"]
    return model(rows, ["x f32 2"], [f"y{n - 1} f32 2"])


def many_outputs(n: int) -> Any:
    return model([f"{', '.join(f's{i}' for i in range(n))} = Split(x)",
                  node(f"y = Concat({', '.join(f's{i}' for i in reversed(range(n)))})", axis=0)],
                 [f"x f32 {n}"], [f"y f32 {n}"], opset=11)


def many_branches(n: int) -> Any:
    rows = []
    for i in range(n):
        x = f"y{i - 1}" if i else "x"
        branches = [helper.make_graph([node(f"{op}{i} = {op}({x})")], "branch", [],
                                      [value(f"{op}{i} f32 2")]) for op in ("Relu", "Neg")]
        rows.append(node(f"y{i} = If(c)", then_branch=branches[0], else_branch=branches[1]))
    return model(rows, ["x f32 2", "c bool"], [f"y{n - 1} f32 2"])


@pytest.mark.parametrize("make", [long_chain, many_outputs, many_branches])
def test_work_grows_with_the_nodes(make: Callable[[int], Any]) -> None:
    """Twice the nodes are twice the work, counted in calls and in elements of sets and lists."""
    small, large = make(100), make(200)
    import_model(small)  # what is imported and cached at first is not counted
    assert lines(lambda: import_model(large)) < 2.1 * lines(lambda: import_model(small))


def test_names_are_not_copied_for_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """All branches are given the same collection of the names around them."""
    around: list[Any] = []
    check = scopes.check_graph
    monkeypatch.setattr(scopes, "check_graph",
                        lambda *given: (around.extend(given[3:]), check(*given)))
    import_model(many_branches(10))
    assert len(around) == 20
    assert len({id(a.before) for a in around}) == len({id(a.whole) for a in around}) == 1


# ---- names and symbols -------------------------------------------------------------------------

def test_names_are_the_models_own() -> None:
    module = checked(model(["h = MatMul(x, w)", "y/out = Relu(h)"], ["x f32 2 3"],
                           ["y/out f32 2 4"], {"w": random(3, 4)}))
    assert list(value_names(module.graph).values()) == ["x", "@w", "h", "y/out"]
    assert module.output_names == ("y/out",)


def test_named_and_unnamed_dims_become_symbols() -> None:
    module = checked(model(["y = Relu(x)"], ["x f32 batch-size ? 3", "z f32 batch-size"],
                           ["y f32 ? ? ?"]))
    assert str(module.graph.inputs[0].type) == "f32[batch_size,dim0,3]"
    assert str(module.graph.inputs[1].type) == "f32[batch_size]"
    assert [s.lo for s in module.symbols.values()] == [0, 0]


def test_dim_expressions_are_read() -> None:
    module = checked(model(["y = Relu(x)"], ["a f32 past", "b f32 s", "x f32 past+s"],
                           ["y f32 ?"]))
    assert str(module.graph.inputs[2].type) in ("f32[past + s]", "f32[s + past]")


def test_dynamic_sets_bounds_and_one_value_is_a_constant() -> None:
    proto = model(["y = Relu(x)"], ["x f32 B T"], ["y f32 B T"])
    module = checked(proto, dynamic={"B": (2, 8), "T": (4, 4)})
    assert (module.symbols["B"].lo, module.symbols["B"].hi) == (2, 8)
    assert str(module.graph.inputs[0].type) == "f32[B,4]"
    assert code(proto, dynamic={"B": (4, 2)}) == "GT1030"


def test_an_unknown_open_size_is_refused_and_a_like_one_named() -> None:
    proto = model(["y = Relu(x)"], ["x f32 batch 3"], ["y f32 batch 3"])
    with pytest.raises(UsageError, match="no open size 'btch'") as caught:
        import_model(proto, dynamic={"btch": (1, 8)})
    assert caught.value.hint == "did you mean 'batch'?\nthey are batch"
    assert code(model(["y = Relu(x)"], ["x f32 2"], ["y f32 2"]), dynamic={"N": "M"}) == "GT1104"


def test_initializers_that_are_also_inputs_are_constants() -> None:
    proto = model(["y = Add(x, w)"], ["x f32 2", "w f32 2"], ["y f32 2"], {"w": random(2)})
    assert [v.hint for v in checked(proto).graph.inputs] == ["x"]


def test_nodes_in_any_order() -> None:
    proto = model(["y = Relu(h)", "h = Neg(x)"], ["x f32 2"], ["y f32 2"])
    assert ops(checked(proto)) == ["neg", "relu"]


# ---- constants and shape arithmetic ------------------------------------------------------------

CHAIN = ["s = Shape(x)", "b = Gather(s, zero)", "b1 = Unsqueeze(b, axis0)",
         "n = Concat(b1, minus)", "y = Reshape(x, n)"]
CHAIN_WEIGHTS = {"zero": np.array(0), "axis0": np.array([0]), "minus": np.array([-1])}


def chain(dim: str) -> Any:
    nodes = [node(t, axis=0) if "Concat" in t else node(t) for t in CHAIN]
    return model(nodes, [f"x f32 {dim} 3 4"], ["y f32 ? ?"], CHAIN_WEIGHTS)


@pytest.mark.parametrize("dim, shape", [("2", "f32[2,12]"), ("N", "f32[N,12]")])
def test_shape_chains_fold_to_a_reshape(dim: str, shape: str) -> None:
    module = checked(chain(dim))
    assert ops(module) == ["reshape"]
    assert str(module.graph.outputs[0].type) == shape


def test_a_constant_with_an_open_entry_in_its_shape_folds() -> None:
    """Slice then reads numbers, not sizes that only the run knows."""
    nodes = ["c = Reshape(zero, minus)", "y = Slice(x, c, two)"]
    module = checked(model(nodes, ["x f32 3 7"], ["y f32 2 7"], {
        "zero": np.array(0), "minus": np.array([-1]), "two": np.array([2])}))
    assert ops(module) == ["slice"]


def test_symbolic_shape_arithmetic() -> None:
    nodes = [node("s = Shape(x)"), node("b, t = Split(s)", axis=0, num_outputs=2),
             node("p = Mul(b, t)"), node("q = Div(t, two)"), node("r = Mul(q, two)"),
             node("eq = Equal(s, minus)"), node("w = Where(eq, ones, s)"),
             node("y = Expand(one, w)"), node("z = ConstantOfShape(p)"),
             node("d = Range(zero, b0, step)"), node("b0 = Squeeze(b)")]
    weights = {"two": np.array([2]), "minus": np.array([-1, -1]), "ones": np.array([1, 1]),
               "one": np.ones((1, 1), np.float32), "zero": np.array(0), "step": np.array(1)}
    module = checked(model(nodes, ["x f32 B T"], ["y f32 ? ?", "z f32 ?", "d i64 ?", "r i64 1"],
                           weights))
    assert [str(v.type) for v in module.graph.outputs] == [
        "f32[B,T]", "f32[B*T]", "i64[B]", "i64[1]"]
    got = interp.run(module, {"x": random(3, 5)})
    assert got["z"].shape == (15,) and got["d"].tolist() == [0, 1, 2] and got["r"].tolist() == [4]


def test_small_numbers_become_literals_and_weights_parameters() -> None:
    proto = model(["h = Mul(x, half)", "y = Mul(h, block.scale)"], ["x f32 2 3"], ["y f32 2 3"],
                  {"half": np.float32(0.1), "block.scale": np.float32([2.0])})
    nodes = checked(proto).graph.nodes
    assert [n.attrs["param"] for n in nodes if n.op.name == "constant"] == [True]
    assert next(n for n in nodes if n.op.name == "mul").inputs[1] == 0.1


def test_unread_initializers_are_left_out() -> None:
    proto = model(["y = Relu(x)"], ["x f32 2"], ["y f32 2"], {"w": random(2)})
    assert len(checked(proto).graph.nodes) == 1


def test_pinned_inputs_are_known() -> None:
    proto = model(["y = Reshape(x, s)"], ["x f32 6", "s i64 2"], ["y f32 ? ?"])
    assert str(checked(proto, fixed={"s": np.array([2, 3])}).graph.outputs[0].type) == "f32[2,3]"


# ---- the sample --------------------------------------------------------------------------------

def test_digits() -> None:
    module = import_onnx(SAMPLES / "digits.onnx")
    data = np.load(SAMPLES / "digits_test.npz")
    logits = interp.run(module, {"image": data["image"]})["logits"]
    assert (logits.argmax(1) == data["y"]).sum() == 359
    assert "samples/digits.py:33 forward" in {p.at for p in module.locations.values()}
    assert not any("running" in n.outputs[0].hint and n.attrs["param"]
                   for n in module.graph.nodes if n.op.name == "constant")
    text = serial.dumps(module, embed=True)
    assert serial.dumps(serial.loads(text), embed=True) == text


# ---- places ------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, place", [
    ("/layer1/conv/Conv", "layer1/conv"), ("special", "special (Relu)"), ("Relu_7", None),
    ("", None), ("node_Relu_3", None)])
def test_locations(name: str, place: str | None) -> None:
    module = checked(model([node("y = Relu(x)", name=name)], ["x f32 2"], ["y f32 2"]))
    assert [p.at for p in module.locations.values()] == ([place] if place else [])


def test_the_class_of_each_module_that_the_torch_exporter_recorded() -> None:
    relu = node("y = Relu(x)")
    for key, words in (("name_scopes", ["", "layer.0", "layer.0.act", "relu"]),
                       ("class_hierarchy", ["net.Net", "net.Block", "torch.nn.modules.ReLU",
                                            "aten.relu.default"])):
        relu.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=str(words))
    module = checked(model([relu], ["x f32 2"], ["y f32 2"]))
    assert module.modules == {"layer.0": "Block", "layer.0.act": "ReLU"}


@pytest.mark.parametrize("path, at", [
    ("/somewhere/else/net.py", "net.py"), ("C:\\work\\net.py", "net.py"),
    ("src/net.py", "src/net.py"),
    ("/opt/venv/lib/python3.11/site-packages/timm/models/x.py", "timm/models/x.py")])
def test_stack_traces_lose_the_machines_own_paths(path: str, at: str) -> None:
    relu = node("y = Relu(x)")
    torch = "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py"
    relu.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=(
        f'File "{path}", line 7, in forward\n    y = relu(x)\n'
        f'File "{torch}", line 9, in relu\n    return f(x)'))
    module = checked(model([relu], ["x f32 2"], ["y f32 2"]))
    (place,) = module.locations.values()
    assert (place.at, place.text) == (f"{at}:7 forward", "y = relu(x)")


# ---- functions and control flow ----------------------------------------------------------------

def scaled_function(body: list[Any], **more: Any) -> Any:
    return helper.make_function("mine", "Scaled", ["a"], ["b"], body,
                                [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)],
                                **more)


def with_function(body: list[Any], call: Any, **more: Any) -> Any:
    proto = model([call], ["x f32 3"], ["y f32 3"], functions=[scaled_function(body, **more)])
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    return proto


def referring(op: str, attribute: str) -> Any:
    n = helper.make_node(op, ["a"], ["b"])
    a = n.attribute.add(name=attribute, ref_attr_name="slope", type=1)
    assert a.ref_attr_name
    return n


@pytest.mark.parametrize("given, want", [({}, -0.5), ({"slope": 0.25}, -0.25)])
def test_local_functions_and_their_attributes(given: dict[str, float], want: float) -> None:
    call = node("y = Scaled(x)", domain="mine", **given)
    proto = with_function([referring("LeakyRelu", "alpha")], call,
                          attribute_protos=[helper.make_attribute("slope", 0.5)])
    assert evaluate(proto, {"x": np.float32([-1, 0, 2])})[0].tolist() == [want, 0, 2]


def test_recursive_functions_are_refused() -> None:
    call = node("y = Scaled(x)", domain="mine")
    inner = helper.make_node("Scaled", ["a"], ["b"], domain="mine")
    assert code(with_function([inner], call)) == "GT1013"


def loop_body(stop: str = "") -> Any:
    nodes = [helper.make_node("Identity", ["going"], ["again"])] if not stop else [
        helper.make_node("Less", ["sum", stop], ["again"])]
    nodes += [helper.make_node("Add", ["acc", "x"], ["sum"])]
    outs = [("again", 9, []), ("sum", 1, [2])]
    if not stop:
        nodes.append(helper.make_node("Identity", ["sum"], ["seen"]))
        outs.append(("seen", 1, [2]))
    return helper.make_graph(
        nodes, "body", [helper.make_tensor_value_info("i", 7, []),
                        helper.make_tensor_value_info("going", 9, []),
                        helper.make_tensor_value_info("acc", 1, [2])],
        [helper.make_tensor_value_info(*o) for o in outs])


def test_loops_with_known_counts_unroll() -> None:
    proto = model([node("last, all = Loop(n, yes, zero)", body=loop_body())], ["x f32 2"],
                  ["last f32 2", "all f32 3 2"],
                  {"n": np.array(3), "yes": np.array(True), "zero": np.zeros(2, np.float32)})
    last, seen = evaluate(proto, {"x": np.float32([1, 2])})
    assert last.tolist() == [3, 6] and seen.tolist() == [[1, 2], [2, 4], [3, 6]]


def branch(op: str) -> Any:
    return helper.make_graph([helper.make_node(op, ["x"], ["r"])], op, [],
                             [helper.make_tensor_value_info("r", 1, [2])])


def test_branches_on_a_computed_condition_are_selected() -> None:
    proto = model([node("c = Greater(s, zero)"),
                   node("y = If(c)", then_branch=branch("Neg"), else_branch=branch("Abs"))],
                  ["x f32 2", "s f32"], ["y f32 2"], {"zero": np.float32(0)})
    x = np.float32([-1, 2])
    assert evaluate(proto, {"x": x, "s": np.float32(1)})[0].tolist() == [1, -2]
    assert evaluate(proto, {"x": x, "s": np.float32(-1)})[0].tolist() == [1, 2]


def test_loops_that_never_end_are_refused() -> None:
    proto = model([node("last, all = Loop(, yes, zero)", body=loop_body())], ["x f32 2"],
                  ["last f32 2"], {"yes": np.array(True), "zero": np.zeros(2, np.float32)})
    assert code(proto) == "GT1020"


# ---- faults ------------------------------------------------------------------------------------

def no_opset() -> Any:
    proto = model(["y = Relu(x)"], ["x f32 2"], ["y f32 2"])
    del proto.opset_import[:]
    return proto


def foreign_opset() -> Any:
    proto = no_opset()
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    return proto


X = ["x f32 2 3"]
FAULTS = {
    "no opset": (no_opset, "GT1003"),
    "no opset of ai.onnx": (foreign_opset, "GT1003"),
    "cycle": (lambda: model(["a = Neg(b)", "b = Neg(a)"], X, ["b f32 2 3"]), "GT1010"),
    "missing": (lambda: model(["y = Add(x, w)"], X, ["y f32 2 3"]), "GT1011"),
    "no such output": (lambda: model(["y = Neg(x)"], X, ["z f32 2 3"]), "GT1011"),
    "defined twice": (lambda: model(["y = Neg(x)", "y = Abs(x)"], X, ["y f32 2 3"]), "GT1012"),
    "input twice": (lambda: model(["y = Neg(x)"], X * 2, ["y f32 2 3"]), "GT1012"),
    "few inputs": (lambda: model(["y = Add(x)"], X, ["y f32 2 3"]), "GT1014"),
    "bad axis": (lambda: model([node("y = Softmax(x)", axis=7)], X, ["y f32 2 3"]), "GT1015"),
    "many outputs": (lambda: model(["y, z = Relu(x)"], X, ["y f32 2 3"]), "GT1016"),
    "bad shapes": (lambda: model(["y = Add(x, w)"], X, ["y f32 2 3"], {"w": random(4)}), "GT0412"),
    "unknown op": (lambda: model(["y = Frobnicate(x)"], X, ["y f32 2 3"]), "GT1020"),
    "unknown attribute": (lambda: model([node("y = Relu(x)", speed=3)], X, ["y f32 2 3"]),
                          "GT1018"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_have_one_code_each(name: str) -> None:
    make, want = FAULTS[name]
    assert code(make()) == want


def test_an_ill_typed_product_names_both_producers() -> None:
    proto = model(["a = Relu(x)", "b = Abs(w)", node("y = MatMul(a, b)", name="/head/MatMul")],
                  ["x f32 3 4", "w f32 3 5"], ["y f32 3 5"])
    with pytest.raises(InputError) as caught:
        import_model(proto)
    text = str(caught.value)
    assert all(s in text for s in ("/head/MatMul", "a: f32[3,4]", "b: f32[3,5]", "4 and 3"))


def test_all_that_is_unsupported_is_listed_at_once(tmp_path: Path) -> None:
    proto = model([node("a = Foo(x)", name="first"), "b = Foo(a)",
                   node("c = Bar(b)", domain="mine"),
                   node("d = Baz(x)", domain="com.microsoft"),
                   "e = Det(m)"], [*X, "m f32 20 20"], ["c f32 2 3", "e f32"])
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    rows = {i.name: i for i in support(tmp_path / "m.onnx")}
    assert set(rows) == {"Foo", "mine.Bar", "com.microsoft.Baz", "Det"}
    assert rows["Foo"].places == ("first (Foo)", "b (Foo)")
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(tmp_path / "m.onnx")
    assert caught.value.exit_code == 4 and {i.name for i in caught.value.items} == set(rows)


# ---- what stays whole, what is refused kindly ---------------------------------------------------

WHOLE = {
    "softmax": (node("y = Softmax(x)", axis=-1), {}),
    "layer_norm": (node("y = LayerNormalization(x, w)"), {"w": random(8)}),
    "rms_norm": (node("y = RMSNormalization(x, w)"), {"w": random(8)}),
    "gelu": (node("y = Gelu(x)", approximate="tanh"), {}),
    "lstm": (node("y = LSTM(x, w, r)", hidden_size=2), {"w": random(1, 8, 8),
                                                       "r": random(1, 8, 2)}),
    "gru": (node("y = GRU(x, w, r)", hidden_size=2), {"w": random(1, 6, 8), "r": random(1, 6, 2)}),
    "embedding": (node("y = Gather(w, i)"), {"w": random(9, 8), "i": np.arange(3)}),
    "logsumexp": (node("y = ReduceLogSumExp(x)"), {}),
}


@pytest.mark.parametrize("name", WHOLE)
def test_composites_stay_whole(name: str) -> None:
    call, weights = WHOLE[name]
    proto = model([call], ["x f32 3 2 8", "i i64 3"][:2 if name == "embedding" else 1],
                  ["y f32 ? ? ?"], {k: v for k, v in weights.items() if k != "i"}, opset=23)
    wrapping = {"lt", "add", "select", "reshape"}  # of negative indices, and shapes
    assert [n for n in ops(checked(proto)) if n not in wrapping] == [name]


def test_attention_stays_whole() -> None:
    proto = model([node("y = Attention(q, k, v)", is_causal=1)],
                  ["q f32 1 4 6 8", "k f32 1 2 6 8", "v f32 1 2 6 8"], ["y f32 ? ? ? ?"], opset=23)
    assert ops(checked(proto)) == ["attention"]


def test_declared_shapes_stand_in_for_computed_ones() -> None:
    proto = model(["y = Reshape(x, s)"], ["x f32 6", "s i64 2"], ["y f32 2 3"])
    module = checked(proto)
    assert str(module.graph.outputs[0].type) == "f32[2,3]"
    assert [n.attrs["checked"] for n in module.graph.nodes if n.op.name == "size"] == [True] * 2


def test_undecided_sizes_are_bounded() -> None:
    nodes = ["p = Slice(w, zero, n)", "n = Shape(x)", "y = Add(p, x)"]
    proto = model(nodes, ["x f32 T"], ["y f32 T"], {"w": random(8), "zero": np.array([0])})
    module = checked(proto)
    assert required(module) == [] and module.symbols["T"].hi == 8
    assert str(checked(proto, dynamic={"T": (1, 8)}).graph.outputs[0].type) == "f32[T]"


def test_sequences_at_the_boundary_become_several_values() -> None:
    proto = model([node("s = SplitToSequence(x, n)", axis=0)], ["x f32 5"], ["y f32 2"],
                  {"n": np.array(2)})
    proto.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("s", 1, None))
    assert checked(proto).output_names == ("s.0", "s.1", "s.2")
