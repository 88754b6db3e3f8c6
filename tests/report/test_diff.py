"""The diff is not fooled by names and order, and says one change in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.ir.graph import Graph, Group, Module, TensorType
from graphtool.ir.trace import trace
from graphtool.report.diff import diff
from graphtool.report.diff_text import markdown, text
from tests.growth import calls
from tests.report.graphs import disguised, layers, module, random_module

SEEDS = st.integers(0, 10**6)


def found(a: Module, b: Module) -> list[tuple[str, str]]:
    return [(c.kind, c.detail) for c in diff(a, b).changes]


@given(SEEDS, SEEDS)
@settings(max_examples=60, deadline=None)
def test_renaming_and_reordering_is_no_difference(seed: int, other: int) -> None:
    m = random_module(seed)
    assert diff(m, disguised(m, other)).equal and diff(disguised(m, other), m).equal


@given(SEEDS, SEEDS, SEEDS)
@settings(max_examples=30, deadline=None)
def test_the_report_does_not_depend_on_names(seed: int, other: int, third: int) -> None:
    a, b = layers(6, odd=seed % 6, extra=other % 6), layers(6, weights=third % 6)
    assert sorted(found(a, b)) == sorted(found(disguised(a, other), disguised(b, third)))


@given(st.integers(0, 7), SEEDS)
@settings(max_examples=20, deadline=None)
def test_one_change_is_one_line(layer: int, seed: int) -> None:
    plain = layers(8)
    assert found(plain, disguised(layers(8, odd=layer), seed)) == [("changed", "relu → tanh")]
    assert found(plain, disguised(layers(8, extra=layer), seed)) == [("added", "f32[2,4]")]
    assert found(disguised(layers(8, extra=layer), seed), plain) == [("removed", "f32[2,4]")]
    (kind, detail), = found(plain, disguised(layers(8, weights=layer), seed))
    assert kind == "changed" and detail.startswith("data sha256:")


def test_several_changes_at_once() -> None:
    a, b = layers(12, odd=2, weights=9), layers(12, odd=7, extra=4, weights=9)
    assert sorted(found(a, b)) == [("added", "f32[2,4]"), ("changed", "relu → tanh"),
                                   ("changed", "tanh → relu")]


def net(fn: object, shape: tuple[int, ...] = (4, 4)) -> Module:
    return module(trace(fn, [TensorType(dtypes.float32, shape)] * 2))  # type: ignore[arg-type]


CHANGES = [
    ("an attribute", lambda x, y: o.matmul(x, y), lambda x, y: o.matmul(x, y, transpose_b=True),
     [("changed", "transpose_b default → true")]),
    ("a literal", lambda x, y: o.mul(x, 2.0) + y, lambda x, y: o.mul(x, 3.0) + y,
     [("changed", "operand 1 2.0 → 3.0")]),
    ("operands exchanged", lambda x, y: o.sub(x, y), lambda x, y: o.sub(y, x),
     [("moved", "operand 0 x0 → x1, operand 1 x1 → x0")]),
    ("another operand", lambda x, y: o.add(o.exp(x), o.neg(y)),
     lambda x, y: o.add(o.exp(y), o.neg(y)), [("moved", "operand 0 x0 → x1")]),
    ("outputs exchanged", lambda x, y: (o.exp(x), o.neg(y)),
     lambda x, y: (o.neg(y), o.exp(x)),
     [("moved", "operand 0 exp → neg, operand 1 neg → exp")]),
    ("a node in between", lambda x, y: o.add(x, y), lambda x, y: o.add(o.exp(x), y),
     [("added", "f32[4,4]")]),
]


@pytest.mark.parametrize(("name", "a", "b", "wanted"), CHANGES, ids=[c[0] for c in CHANGES])
def test_kinds_of_change(name: str, a: object, b: object, wanted: list[tuple[str, str]]) -> None:
    assert found(net(a), net(b)) == wanted


def test_types_that_follow_are_counted_not_listed() -> None:
    body = lambda x, y: o.exp(o.add(o.neg(x), 1.0))  # noqa: E731
    d = diff(net(body), net(body, (8, 4)))
    assert [(c.kind, c.name) for c in d.changes] == [("retyped", "x0"), ("retyped", "x1")]
    assert d.retyped_after == 3
    assert {t.name: (t.before, t.after) for t in d.totals}["peak memory"] == (128, 256)


def quantised(x: object) -> object:
    """Rounded on the way in, as an int8 layer reads its input."""
    return o.mul(o.clamp(o.round(o.div(x, 0.5)), -127.0, 127.0), 0.5)


def test_what_is_put_in_between_hides_nothing_that_stayed() -> None:
    def layer(x: object, w: object, read: object) -> object:
        return o.relu(o.matmul(read(x), w))  # type: ignore[operator]
    before = net(lambda x, y: layer(layer(x, y, o.tanh), y, o.tanh))
    after = net(lambda x, y: layer(layer(x, y, quantised), y, quantised))
    there = found(before, after)
    assert [k for k, _ in there].count("removed") == 2 and len(there) == 2 + 2 * 4
    back = found(after, before)
    assert [k for k, _ in back].count("added") == 2 and len(back) == len(there)


def test_of_several_alike_the_one_whose_operands_are_alike_is_found() -> None:
    def part(x: object, at: int) -> object:
        return o.exp(o.slice(x, start=(0, at), limit=(4, at + 1), strides=(1, 1)))
    before = net(lambda x, y: o.neg(o.sub(part(o.tanh(x), 0), part(o.tanh(x), 2))))
    after = net(lambda x, y: o.neg(o.mul(part(o.relu(x), 2), o.mul(part(o.relu(x), 0), 2.0))))
    assert not any("start" in detail and " → " in detail for _, detail in found(before, after))


def test_figures_of_fused_graphs_are_of_the_program_and_others_are_bounds() -> None:
    plain = net(lambda x, y: o.relu(o.neg(o.exp(x))))
    fused, other = passes.run(plain), passes.run(net(lambda x, y: o.neg(o.exp(x))))
    lines = text(diff(plain, fused), "a", "b")
    assert "  kernels       at most 3 → 1" in lines
    assert "  bytes moved   at most 384 B → 128 B" in lines
    assert "  peak memory   at most 128 B → 0 B" in lines
    (moved,) = [d for d in diff(fused, other).totals if d.name == "bytes moved"]
    assert moved.known == (True, True) and moved.before == moved.after == 128


def test_groups_are_left_out() -> None:
    m = layers(3)
    node = m.graph.nodes[-1]
    group = Group(node.outputs[0], (node,), "nest")
    g = m.graph
    assert diff(m, replace(m, graph=Graph(g.inputs, g.nodes, g.outputs, (group,)))).equal


def test_text_and_markdown() -> None:
    d = diff(layers(4), layers(4, odd=1))
    assert text(d, "a", "b")[0] == "~ tanh: relu → tanh"
    assert text(d, "a", "b")[2] == "1 changed; 16 → 16 nodes"
    lines = markdown(d, "a", "b")
    assert lines[0] == "### `a` → `b`" and "| changed | `tanh` | tanh | relu → tanh |  |" in lines
    same = diff(layers(4), layers(4))
    assert text(same, "a", "b") == ["equal: 16 nodes"]
    assert markdown(same, "a", "b")[-1] == "Equal: 16 nodes."


@pytest.mark.long
def test_work_grows_with_the_number_of_nodes() -> None:
    def work(n: int) -> int:
        a, b = layers(n), layers(n, odd=n // 2)
        found = []
        made = calls(lambda: found.append(diff(a, b)))
        assert len(found[0].changes) == 1 and sum(found[0].nodes) == 8 * n
        return made
    assert work(2000) < 2.1 * work(1000)


def test_an_op_is_named_even_where_the_node_has_its_name() -> None:
    one = module(trace(lambda x: o.exp(x), [TensorType(dtypes.float32, (4,))]))
    two = module(trace(lambda x: o.neg(o.exp(x)), [TensorType(dtypes.float32, (4,))]))
    assert text(diff(one, two), "a", "b")[0] == "+ neg: neg f32[4]"
