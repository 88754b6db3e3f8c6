"""The page: modules from names, layers for each of them, ports at borders, plots, one file."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.errors import UsageError
from graphtool.importers import import_source
from graphtool.io.release import install
from graphtool.io.weights import weight
from graphtool.ir.graph import Module, TensorType, Value, is_constant
from graphtool.ir.text import value_names
from graphtool.ir.trace import trace
from graphtool.loops.program import runs
from graphtool.report import page as pages
from graphtool.report.page import need_view, page
from graphtool.report.page.borders import FAR, MANY, at_borders, meeting, stubs
from graphtool.report.page.facts import BINS, NodeFacts, brief, figures, first_numbers, kind
from graphtool.report.page.modules import MOST, PART, ModuleGroup, calls, classes, grouped
from graphtool.report.page.training import BACKWARD, FORWARD, UPDATE, columns
from graphtool.report.page.tree import graph_data, within
from tests.cli.conftest import DIGITS
from tests.report.graphs import module

T = TensorType(dtypes.float32, (4, 4))


def names(group: ModuleGroup) -> Any:
    """A tree as nested tuples: the nodes, then the modules by name."""
    return (group.nodes, {g.name: names(g) for g in group.groups})


@pytest.mark.parametrize(("paths", "tree"), [
    ([(), ("a",), ("a",)], ([0], {"a": ([1, 2], {})})),
    ([("a",), ("b",), ("b",)], ([0], {"b": ([1, 2], {})})),  # a module of one node is none
    ([("a", "b"), ("a", "b"), ()], ([2], {"a.b": ([0, 1], {})})),  # one inside one is joined
    ([("a", "0"), ("a", "0"), ("a", "1"), ("a", "1")],
     ([], {"a": ([], {"0": ([0, 1], {}), "1": ([2, 3], {})})}))])
def test_modules_by_names(paths: list[tuple[str, ...]], tree: Any) -> None:
    assert names(grouped(dict(enumerate(paths)))) == tree


def test_a_level_is_never_too_long() -> None:
    """A graph of no modules is split into parts of consecutive nodes."""
    root = grouped(dict.fromkeys(range(PART * MOST + 1), ()))
    stack, seen = [root], []
    while stack:
        group = stack.pop()
        assert len(group.nodes) + len(group.groups) <= MOST
        seen += group.nodes
        stack += group.groups
    assert sorted(seen) == list(range(PART * MOST + 1))


@pytest.mark.parametrize(("ops", "edges", "wanted"), [
    ("conv pool conv pool", [(0, 1), (1, 2), (2, 3)], "a p b p#2"),  # called twice, in a loop
    ("conv pool conv pool", [(0, 1), (0, 3), (1, 2)], "a p b p"),  # no way from one to the other
    ("conv pool conv pool", [(0, 1), (1, 2), (2, 3), (1, 3)], "a p b p"),  # they meet inside
    ("conv pool conv unpool", [(0, 1), (1, 2), (2, 3)], "a p b p")])  # forward and backward
def test_a_module_that_is_called_twice(ops: str, edges: list[tuple[int, int]], wanted: str) -> None:
    paths = [("a",), ("p",), ("b",), ("p",)]
    assert calls(paths, edges, ops.split()) == [(name,) for name in wanted.split()]


def test_calls_of_a_module_with_modules_in_it() -> None:
    paths = [("m", "x"), ("m", "y"), (), ("m", "x"), ("m", "y")]
    found = calls(paths, [(0, 1), (1, 2), (2, 3), (3, 4)], ["f", "g", "h", "f", "g"])
    assert found == [("m", "x"), ("m", "y"), (), ("m#2", "x"), ("m#2", "y")]


def test_ports_stand_at_the_border() -> None:
    """What enters in the middle starts above all, beside what stands there; bends lead down."""
    layers = [[["pi0", 72]], [[1, 0], [2, 72]], [[3, 72], ["pi9", 144]], [["po3", 72], [4, 144]],
              [[5, 144]]]
    found, bends = at_borders(layers, [[1, 3, "b0"]], [("pi0", 2), ("pi9", 4), (1, 3), (3, "po3")])
    where = {item: (row, x) for row, layer in enumerate(found) for item, x in layer}
    assert where["pi0"] == (0, 72) and where["pi9"] == (0, 144) and where["po3"] == (4, 72)
    assert [where[b] for b in next(rest for a, b, *rest in bends if a == "pi9")] == [
        (1, 144), (2, 144)]
    assert [where[b] for b in next(rest for a, b, *rest in bends if b == "po3")] == [(3, 72)]
    assert [1, 3, "b0"] in bends and found[2][0] == [3, 72]
    crowded = [[["pi0", 0]], [[1, 0], [2, 72]], [["pi9", 72]], [[3, 72]]]
    found, bends = at_borders(crowded, [], [("pi0", 1), ("pi9", 3)])
    assert dict(found[0])["pi9"] == 144  # not through node 2


def test_parts_are_called_by_what_is_in_them() -> None:
    root = grouped({i: ("layer", str(i // 2)) for i in range(2 * (MOST + 1))})
    (layer,) = root.groups
    assert [g.name for g in layer.groups] == ["0 … 59", "60 … 119", "120"]


@pytest.mark.parametrize(("name", "path"), [
    ("layer1.0.conv.out", ("layer1", "0", "conv")), ("/layer1/layer1.0/Add_out", ("layer1", "0")),
    ("/d/down/down.0/y", ("d", "down", "0")), ("/a/Conv_output_0.conv", ("a",)), ("x", ())])
def test_the_module_of_a_name(name: str, path: tuple[str, ...]) -> None:
    assert within(name) == path


def test_inputs_and_outputs_are_no_nodes_of_a_module() -> None:
    graph = trace(lambda x: o.exp(o.sin(x)), [T], ["m.x"])
    data = graph_data(Module(graph, ("m.y",)))
    assert len(data["nodes"]) == 4 and data["groups"][0]["size"] == 2


@pytest.mark.parametrize(("node", "said"), [
    (lambda x, w: o.conv(x, w, strides=(2, 2), rhs_dilation=(1, 3)), "3×5, stride 2, dilation 1×3"),
    (lambda x, w: o.conv(o.concat(x, x, axis=1), w, groups=2), "3×5, groups 2"),
    (lambda x, w: o.max_pool(x, window=(2, 3), strides=(2, 3)), "2×3, stride 2×3"),
    (lambda x, w: o.reduce_window(x, kind="max", window=(1, 1, 2, 2), strides=(1, 1, 2, 2)),
     "2×2, stride 2"), (lambda x, w: o.relu(x), "")])
def test_what_a_window_is_and_how_it_moves(node: Any, said: str) -> None:
    x, w = (TensorType(dtypes.float32, shape) for shape in ((1, 4, 32, 32), (8, 4, 3, 5)))
    assert brief(trace(node, [x, w]).nodes[-1]) == said


@pytest.mark.parametrize(("node", "said"), [
    (lambda x, w: o.conv(x, w, strides=(2, 1), groups=2), "4→8, 3×5, stride 2×1, groups 2"),
    (lambda x, w: o.linear(o.reshape(x, shape=(2, 30)), o.reshape(w, shape=(8, 30))), "8×30"),
    (lambda x, w: o.mul(x, 0.5), "0.5")])
def test_the_sizes_of_a_weight_and_a_number(node: Any, said: str) -> None:
    x, w = (TensorType(dtypes.float32, shape) for shape in ((1, 4, 3, 5), (8, 2, 3, 5)))
    last = trace(node, [x, w]).nodes[-1]
    assert brief(last, {v for v in last.inputs[1:] if isinstance(v, Value)}) == said


def test_the_class_of_each_module() -> None:
    """A module of one node is dissolved into it; one that is called twice has one class."""
    paths = [("a", "0", "conv"), ("a", "0"), ("a", "1"), ("a", "1"), ("p#2",), ("p#2",), ("b", "x"),
             ("b", "x"), ()]
    root = grouped(dict(enumerate(paths)))
    known = {"a": "Layers", "a.0": "Block", "a.0.conv": "Conv2d", "a.1": "Block", "p": "Pool",
             "b": "Outer"}
    assert classes(root, paths, known) == {0: "a.0.conv"}
    assert [(g.name, g.kind) for g in root.all()] == [
        ("", ""), ("a", "Layers"), ("0", "Block"), ("1", "Block"), ("p#2", "Pool"), ("b.x", "")]


@pytest.mark.parametrize(("a", "b", "depth"), [
    (["m0"], ["m0"], 1), (["m0", "m1"], ["m0"], 1), (["m0", "m1"], ["m0", "m2"], 1),
    (["m0", "m1", "m2"], ["m0", "m1", "m3"], 2)])
def test_where_an_edge_runs(a: list[str], b: list[str], depth: int) -> None:
    assert meeting(a, b) == depth


def layers(count: int, mask: tuple[str, ...]) -> tuple[list[tuple[int, int]], dict[int, list[str]]]:
    """A chain of layers, each of FAR nodes, whose first node reads node 0, which is in `mask`."""
    chain = {0: list(mask)} | {1 + i: ["m0", "m1", f"layer{i // FAR}"] for i in range(count * FAR)}
    along = [(i, i + 1) for i in range(1, count * FAR)]
    return [*along, *((0, 1 + FAR * n) for n in range(count))], chain


@pytest.mark.parametrize(("mask", "first"), [(("m0",), 1), (("m0", "m1"), 1),
                                             (("m0", "m1", "layer0"), 0)])
def test_what_all_layers_read_has_an_edge_to_the_nearest(mask: tuple[str, ...], first: int) -> None:
    """Outside the layers, beside them, or in the first, which has an edge to the second anyway."""
    count = MANY + 1 + (1 - first)
    edges, chain = layers(count, mask)
    assert stubs(edges, chain) == {(0, 1 + FAR * n) for n in range(1, count)}


def test_few_readers_and_those_side_by_side_keep_their_edges() -> None:
    assert stubs(*layers(MANY, ("m0",))) == set()
    heads = list(range(1, 20))
    assert stubs([(0, i) for i in heads], {i: ["m0"] for i in (0, *heads)}) == set()


def test_a_chain_of_layers_with_a_mask_is_one_column() -> None:
    pytest.importorskip("fast_sugiyama")
    from graphtool.report.page.tree import graph_data

    def f(x: Any, mask: Any) -> Any:
        for _ in range(5):
            x = o.exp(o.neg(o.exp(o.neg(o.exp(o.neg(o.add(x, mask)))))))
        return x
    (root,) = graph_data(module(trace(f, [T, T])))["groups"]
    assert max(len(layer) for layer in root["layers"]) == 2 and not root["bends"]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="view needs fast_sugiyama and vl_convert") as error:
        need_view()
    assert error.value.code == "GT3034" and install("view") == error.value.hint


def test_one_file_without_network() -> None:
    """A closing tag in a name cannot end the script, and nothing is loaded from elsewhere."""
    text = page("<b>", [{"name": "</script><img src=x>", "kind": "graph", "lines": [],
                         "charts": []}])
    assert "<title>&lt;b&gt;</title>" in text and text.count("</script>") == 2
    assert not re.search(r"""(src|href)=|@import|url\(|https?:|fetch\(|import\(""",
                         text.replace("<img src=x>", "").replace("\\u003cimg src=x>", ""))
    assert len(text) < 100_000
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["sections"][0]["name"] == "</script><img src=x>"


# ---- with the packages of the extra ------------------------------------------------------------

def layered(items: list[Any], edges: list[Any]) -> tuple[Any, Any]:
    pytest.importorskip("fast_sugiyama")
    from graphtool.report.page.tree import layered as lay
    return lay(items, edges)


def test_layers_follow_the_edges() -> None:
    layers, bends = layered([0, 1, 2, "m1", 7], [(0, 1), (1, 2), (0, 2), (2, "m1")])
    where = {item: n for n, layer in enumerate(layers) for item, _ in layer}
    assert where[0] < where[1] < where[2] < where["m1"] < where[7]  # 7 has no edges
    assert bends == [[0, 2, "b0"]] and where["b0"] == where[1]


def test_parts_without_connection_stand_side_by_side() -> None:
    layers, _ = layered([0, 1, 2, 3], [(0, 1), (2, 3)])
    xs = {item: x for layer in layers for item, x in layer}
    assert {xs[0], xs[1]} != {xs[2], xs[3]} and len(layers) == 2


def test_a_cycle_of_modules_is_laid_out() -> None:
    layers, _ = layered(["m1", "m2"], [("m1", "m2"), ("m2", "m1")])
    assert {item for layer in layers for item, _ in layer} >= {"m1", "m2"}


def test_a_graph_in_full() -> None:
    """Each node once, each edge where its modules meet, with ports in the modules between."""
    pytest.importorskip("fast_sugiyama")
    from graphtool.report.page.tree import graph_data
    data = graph_data(import_source(DIGITS))
    rows = [row["op"] for row in data["nodes"]]
    assert (rows[0], rows[-1], rows.count("conv"), rows.count("constant")) == (
        "input", "output", 3, 0)
    groups = {g["name"]: g for g in data["groups"]}
    assert {"block1", "block2", "block3"} < set(groups) and groups["block1"]["size"] == 3
    placed = [item for g in data["groups"] for layer in g["layers"] for item, _ in layer
              if isinstance(item, int)]
    assert sorted(placed) == list(range(len(rows)))
    ports = [item for layer in groups["block2"]["layers"] for item, _ in layer
             if str(item).startswith("p")]
    assert [p[:2] for p in ports] == ["pi", "po"]
    a, b, text, at, x, y = data["edges"][0]
    assert (a, text, at, x, y) == (0, "f32[batch,1,8,8]", "m0", 0, groups["block1"]["key"])
    assert rows[b] == "conv" and "conv" not in (x, y)
    operands = data["nodes"][b]["inputs"]
    assert operands[0] == a and operands[1].startswith("@block1.conv.weight: f32")
    assert operands[4].startswith("  = ") and data["ops"]["conv"][1:] == ["x", "w"]


def test_weights_in_figures() -> None:
    """The histogram has as many bars as bins, the highest where most numbers are."""
    data = np.concatenate([np.zeros(90), [-1.0, 2.0], np.full(3, np.nan)]).astype(np.float32)
    line, bars = figures(weight(data))
    assert line == "  -1 … 2, mean 0.0109 ± 0.233, 95% zero, 3 not finite"
    assert len(bars.strip()) == BINS
    assert bars.strip()[8] == "█" and bars.strip()[0] == bars.strip()[-1] == "▁"
    assert figures(weight(np.zeros((0,), np.float32))) == []
    assert figures(weight(np.full(4, np.inf, np.float32))) == []
    assert figures(weight(np.array([True]))) == []
    assert figures(weight(np.arange(10**6)))[0].endswith("by every 16th element")


@pytest.mark.parametrize(("data", "line"), [
    (np.array([[1.5, -0.12345], [np.nan, 3e9]], np.float32), ["  = 1.5, -0.123, nan, 3e+09"]),
    (np.arange(9), ["  = 0, 1, 2, 3, 4, 5, …"]), (np.array([True]), ["  = True"]),
    (np.zeros((0, 2), np.float32), [])])
def test_the_first_numbers_of_a_weight(data: np.ndarray[Any, Any], line: list[str]) -> None:
    assert first_numbers(weight(data)) == line


@pytest.mark.parametrize(("node", "colour", "weighted"), [
    (lambda x, w: o.matmul(x, w), "compute", "compute"),
    (lambda x, w: o.add(x, w), "arithmetic", "compute"),
    (lambda x, w: o.relu(x), "arithmetic", "arithmetic"),
    (lambda x, w: o.reshape(x, shape=(16,)), "shape", "shape")])
def test_the_colour_of_a_node(node: Any, colour: str, weighted: str) -> None:
    """A layer has a matrix of weights, or multiplies matrices."""
    last = trace(node, [T, T]).nodes[-1]
    held = {v for v in last.inputs[1:] if isinstance(v, Value)}
    assert (kind(last), kind(last, held)) == (colour, weighted)


@pytest.mark.parametrize("data", [
    np.full(3, np.finfo(np.float32).min), np.array([1e300, -1e300, 1.7e308, -1.7e308]),
    np.array([5e-324, 0.0]), np.array([1.0, np.nextafter(1.0, 2.0)]), np.zeros(1, np.float32),
    np.array([2**63 - 1, -2**63])])
def test_ranges_at_the_ends_of_a_type(data: np.ndarray[Any, Any]) -> None:
    """All elements of a mask are often the least number of its type."""
    line, bars = figures(weight(data))
    assert "nan" not in line.partition(",")[0] and len(bars.strip()) == BINS and "█" in bars


def test_kernels_and_what_they_were_chosen_over() -> None:
    m = passes.run(import_source(DIGITS))
    facts = NodeFacts(m, value_names(m.graph))
    rows = [facts.of(n) for n in m.graph.nodes if n.attrs.get("plan") is not None]
    assert len(rows) == 4 and all(" µs expected" in r["rivals"][0] for r in rows)
    assert any(len(r["rivals"]) > 1 for r in rows) and all(r["fused"] for r in rows)
    assert rows[0]["at"] == "samples/digits.py:33 forward"
    assert any("mean" in str(line) for line in rows[0]["inputs"])


def test_plots_have_axes_with_units() -> None:
    pytest.importorskip("vl_convert")
    from graphtool.report.page.sections import of_graph
    m = passes.run(module(trace(lambda a, b: o.softmax(o.matmul(a, b), axis=0), [T, T])))
    (svg,) = of_graph("m", m)["charts"]
    assert svg.startswith("<svg") and "offset in the arena, KiB" in svg and "currentColor" in svg
    assert "font-family" not in svg or "inherit" in svg


def test_two_graphs_know_their_difference() -> None:
    pytest.importorskip("fast_sugiyama")
    from graphtool.report.page.sections import compared, of_graph
    a = module(trace(lambda x: o.exp(x), [T]))
    b = module(trace(lambda x: o.neg(o.exp(x)), [T]))
    made = [of_graph("a", a), of_graph("b", b)]
    found = compared(made, ("a", a), ("b", b))
    assert made[0]["changes"] == {} and made[1]["changes"] == {"neg": "added"}
    assert found["lines"][0].startswith("+ neg: neg")


def test_the_c_of_each_kernel() -> None:
    """Each function once, with the line where its comment stands, by the names of its nodes."""
    from graphtool.emit.c import emit
    from graphtool.lower import lower
    from graphtool.report.page import code
    from graphtool.target import detect
    program = lower(passes.run(import_source(DIGITS)), detect())
    made = code.of_program(program)
    texts = emit(program)
    assert [k["kernel"] for k in made["kernels"]] == [s.kernel for s in runs(program.steps)]
    for kernel, c in made["code"].items():
        lines = texts[c["file"]].splitlines()[c["line"] - 1:]
        assert c["text"] == "\n".join(lines[:c["text"].count("\n") + 1])
        assert len(re.findall(rf"^void {program.name}_{kernel}\(", c["text"], re.M)) == 1
    head = made["kernels"][-1]
    assert head["of"] == ["head"] and head["label"] == "head"
    assert made["code"][head["kernel"]]["text"].startswith("/* head  (samples/digits.py:52")


def test_a_node_carries_the_names_that_it_was_made_from() -> None:
    before = import_source(DIGITS)
    after = passes.run(before)
    first, last = ({name for n in m.graph.nodes
                    for name in NodeFacts(m, value_names(m.graph)).of(n)["of"]}
                   for m in (before, after))
    assert last <= first and {"block1.relu", "pool", "head"} <= last


@pytest.mark.parametrize("optimizer", ["adamw", None])
def test_a_training_step_has_three_columns(optimizer: str | None) -> None:
    """Forward downwards in the first, its gradients beside it, updates at the edge; what updates
    all is at the top. Gradients alone are two columns."""
    pytest.importorskip("fast_sugiyama")
    from graphtool.transforms.training import Recipe, training
    data = graph_data(training(import_source(DIGITS), Recipe(
        "cross_entropy", ("params",), optimizer)))
    root = data["groups"][0]
    named = {g["key"]: g["name"] for g in data["groups"]}
    rows = [{at: named.get(x) or data["nodes"][x]["name"] for x, at in row}
            for row in root["layers"]]
    assert root["grid"] and {x for row in root["layers"] for x, _ in row} == {
        g["key"] for g in data["groups"] if g["parent"] == "m0"} | {
        x for row in root["layers"] for x, _ in row if isinstance(x, int)}
    forward = [row[0] for row in rows]
    wanted = ["image", "block1", "block2", "max_pool2d", "block3",
              *(["max_pool2d_1", "head", "logits"] if optimizer else ["max_pool2d_1 … logits"]),
              "y", "loss", "loss"]
    assert [name for name in forward if name in wanted] == wanted
    for row in rows:
        assert row.get(1, row[0] + " gradient").partition(".grad")[0] in (
            row[0], row[0] + " gradient")
    updates = [row[2] for row in rows if 2 in row]
    assert updates == (["update of all", *(f"{n} update" for n in ("block1", "block2", "block3",
                                                                   "head"))] if optimizer else [])
    rising = {g["name"] for g in data["groups"] if g.get("rises")}
    assert "block1 gradient" in rising and not {"block1", "block1 update"} & rising


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_an_optimised_training_step_has_its_columns_too(optimizer: str) -> None:
    """Passes remove the marks of gradients; what they make of each node has its name."""
    from graphtool.transforms.training import Recipe, training
    step = training(import_source(DIGITS), Recipe("cross_entropy", ("params",), optimizer))
    optimised = passes.run(step)
    found = columns(optimised)
    assert found is not None and found.count(UPDATE) < len(found) / 2
    nodes = [n for n in optimised.graph.nodes if not is_constant(n)]
    for node, column in zip(nodes, found[len(optimised.graph.inputs):], strict=False):
        name = node.outputs[0].hint
        assert f".{optimizer}." not in name or column == UPDATE, name
        assert ".grad." not in name or column == BACKWARD, name
        assert not name.startswith("predict") or column == FORWARD, name


def test_gradients_are_read_upwards() -> None:
    """Within them the first layer is the last one in the order of a run."""
    pytest.importorskip("fast_sugiyama")
    from graphtool.transforms.training import Recipe, training
    data = graph_data(training(import_source(DIGITS), Recipe("cross_entropy", ("params",), "sgd")))
    inner = {g["key"]: {item: row for row, layer in enumerate(g["layers"]) for item, _ in layer}
             for g in data["groups"] if g.get("rises")}
    along = [(inner[e[3]][e[4]], inner[e[3]][e[5]]) for e in data["edges"]
             if len(e) > 3 and e[3] in inner]
    assert len(along) > 20 and all(a > b for a, b in along)


def test_a_graph_of_inference_has_no_columns() -> None:
    pytest.importorskip("fast_sugiyama")
    assert "grid" not in graph_data(import_source(DIGITS))["groups"][0]


def test_state_is_beside_what_it_belongs_to() -> None:
    """An input or output with the name of a module is in it."""
    pytest.importorskip("fast_sugiyama")
    from graphtool.report.page.tree import graph_data
    from graphtool.transforms.training import Recipe, training
    step = training(import_source(DIGITS), Recipe("cross_entropy", ("params",), "sgd"))
    data = graph_data(step)
    home = {item: g["name"] for g in data["groups"] for layer in g["layers"] for item, _ in layer
            if isinstance(item, int)}
    rows = {row["name"]: home[i] for i, row in enumerate(data["nodes"]) if row["op"] == "input"}
    assert rows["image"] == "" and rows["block1.conv.weight"] == "block1"
