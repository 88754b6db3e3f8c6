"""The listing is a language: what is printed can be read back, other text is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtool import ops as o
from graphtool import passes
from graphtool.errors import InputError
from graphtool.importers import import_source
from graphtool.io.weights import weight
from graphtool.ir import listing, serial
from graphtool.ir.graph import Graph, Location, Module, Node, Value
from graphtool.ir.listing import ListingStyle
from graphtool.ir.op import OPS, complete_attrs
from graphtool.ir.trace import trace
from graphtool.symbolic import Equation, Symbol, minimum, mod, symbol
from graphtool.transforms.training import Recipe, training
from tests.passes.pass_samples import SAMPLES, module, tensor, text, values

ROOT = Path(__file__).parents[2]
T, P = tensor("f32[4]"), tensor("bool[]")


def branches() -> Module:
    """Regions within regions, whose values have equal names."""
    inner = [trace(fn, [T]) for fn in (o.neg, lambda x: x * values(x, 4, name="w"))]
    outer = [trace(lambda p, x, pair=pair: o.cond(p, x, then=pair[0], orelse=pair[1]), [P, T])
             for pair in (inner, inner[::-1])]
    return module(lambda p, x: o.cond(p, p, x, then=outer[0], orelse=outer[1]), "bool[]", "f32[4]")


def odd() -> Module:
    """Names that need quotes, two outputs of one node, sizes that are expressions, donation."""
    n = symbol("N", 1, None)
    x = Value(tensor("f32[4]"), "input")
    y = Value(type(x.type)(x.type.dtype, (2 * n + 1, n // 2)), "12 \"é\"\n#")
    nodes = []
    for hint, operands, name, attrs in (
            ("size", (x, 1), "mul", {}), ("none", (x, float("-inf")), "max", {}),
            ("onnx::Add_3#2", (x, -0.0), "add", {}), ("return", (x, 1e-45), "add", {})):
        out = Value(x.type, hint)
        nodes.append(Node(OPS[name], operands, complete_attrs(OPS[name], attrs), (out,),
                          "a b.py:3" if hint == "size" else "m.py:7"))
    return Module(Graph((x, y), tuple(nodes), tuple(n.outputs[0] for n in nodes)),
                  ("size", "b c", "", "return"), {"N": Symbol("N", 1, None),
                                                  "M": Symbol("M", None, 9)},
                  {"a b.py:3": Location("a b.py:3 f", "x = \"1\""), "m.py:7": Location("m.py:7")},
                  ((0, 0),), {"precision": "fast", "é e": [1, {"a": None}]},
                  {0: weight(np.ones(4, np.float32))}, {"size": ("simplify.x", "select: a b")})


def constants() -> Module:
    """Elements of all kinds, few and many, equal and different."""
    rows = [np.array([np.nan, -0.0, np.inf, 1e-7]), np.full((5, 5), 0.1, np.float32),
            np.float32([0.1, 3e38, 1e-45]), np.arange(40), np.zeros((0, 3), np.int8),
            np.array([True, False]), np.array(["a\n\"", ""]), np.array(7, np.uint64),
            np.full(30, -0.0), np.full(20, True)]
    return module(lambda x: tuple(x.builder.constant(r, f"c{i}") for i, r in enumerate(rows)),
                  "f32[]")


def trained() -> Module:
    digits = import_source(str(ROOT / "samples/digits.onnx"))
    return training(digits, Recipe("cross_entropy", optimizer="adamw"))


MODULES: dict[str, Any] = {
    **{name: lambda m=m: m for name, m in SAMPLES.items()},
    **{f"{name} optimised": lambda m=m: passes.run(m) for name, m in SAMPLES.items()},
    "branches": branches, "odd": odd, "constants": constants, "trained": trained,
    "digits": lambda: import_source(str(ROOT / "samples/digits.onnx"))}


@pytest.mark.parametrize("name", MODULES)
def test_reads_what_is_printed(name: str) -> None:
    m = MODULES[name]()
    printed = listing.dumps(m, embed=True)
    again = serial.loads(printed)
    assert text(again) == text(m)
    assert listing.dumps(again, embed=True) == printed


def test_the_form_of_each_part(request: pytest.FixtureRequest) -> None:
    path = Path(__file__).parent / "odd.gt"
    printed = listing.dumps(odd(), embed=True)
    if request.config.getoption("--update-golden"):
        path.write_text(printed)
    assert path.read_text() == printed


def test_a_short_listing_is_the_graph_without_its_surroundings() -> None:
    short = "\n".join(listing.listing(odd()))
    full = serial.loads(listing.dumps(odd()))
    again = serial.loads(short)
    assert text(again) == text(Module(full.graph, full.output_names, full.symbols,
                                      donations=full.donations, initial=full.initial))


def test_a_file_finds_its_weights(tmp_path: Path) -> None:
    m = SAMPLES["block"]
    serial.save(m, tmp_path / "m.gt")
    assert text(serial.load(tmp_path / "m.gt")) == text(m)
    short = "\n".join(listing.listing(m, ListingStyle(weights="m.safetensors")))
    assert "= sha256:" in short and max(map(len, short.split("\n"))) < 200
    assert text(serial.loads(short, folder=tmp_path)) == text(m)


HANDWRITTEN = """
# a comment
dim B: 1..            # as many as there are
input x: f32[B,2*B + 1]
y = mul(x,
        2.0)          # the type is inferred
p, q: i64[B,2] = top_k(y, k=2, axis=1)
constant @c: f32[7000] = 0.5
z = reshape(y, shape=((2*B + 1)*B,)) at model.py:3
return z,
       p as "the best"
"""


def test_a_listing_by_hand() -> None:
    m = serial.loads(HANDWRITTEN)
    assert [str(v.type) for v in m.graph.outputs] == ["f32[2*B*B + B]", "f32[B,2]"]
    assert m.output_names == ("z", "the best")
    assert m.graph.nodes[-1].where == "model.py:3"


FAULTS = [  # code, line and column, what stands there instead of `y: f32[4] = neg(x)`
    ("GT0357", "2:3", "y f32[4] = neg(x)"), ("GT0357", "2:4", "y: = neg(x)"),
    ("GT0357", "2:13", "y: f32[4] = -neg(x)"), ("GT0357", "3:1", "y: f32[4] = neg(x"),
    ("GT0357", "2:20", "y: f32[4] = neg(x) x"), ("GT0357", "2:17", 'y: f32[4] = neg("x)'),
    ("GT0357", "2:18", "y: f32[4] = neg(x; x)"), ("GT0357", "2:22", "y: f32[4] = neg(a=1, x)"),
    ("GT0357", "2:22", "y: f32[4] = neg(a=1, a=2)"), ("GT0357", "2:6", "dim B"),
    ("GT0357", "2:8", "dim B: 3"), ("GT0357", "2:16", "param w: f32[4]"),
    ("GT0357", "2:19", "param w: f32[4] = none"), ("GT0357", "2:22", "param w: f32[4] = [1 2]"),
    ("GT0357", "3:7", "return x, x"), ("GT0357", "2:10", "meta a = {"),
    ("GT0357", "2:19", "param w: f32[B] = 1.0"), ("GT0357", "2:341", "y = neg(x, a=((((" * 20),
    ("GT0401", "2:1", "y: f32[4] = nag(x)"), ("GT0349", "2:1", "y: f32[4] = neg(z)"),
    ("GT0355", "2:1", "y: f32[5] = neg(x)"), ("GT0348", "2:1", "y, z = neg(x)"),
    ("GT0402", "2:1", "y: f32[4] = neg(x, a=1)"), ("GT0345", "2:1", "y: f32[-4] = neg(x)"),
    ("GT0311", "2:1", "y: f32[4,M] = neg(x)"), ("GT0412", "2:1", "y = slice(x, start=(0,), "
     "limit=(9,), strides=(1,))"), ("GT0301", "2:1", "y: g32[4] = neg(x)"),
    ("GT0346", "2:1", "x: f32[4] = neg(x)"), ("GT0352", "2:7", "param w: f32[4] = sha256:12"),
    ("GT0352", "2:7", "param y: f32[4] = [1.0]"), ("GT0354", "2:7", "group x (nest): x"),
    ("GT0301", "2:1", "y = cast(x, dtype=3)"),
    ("GT0350", "2:1", "y = reduce_sum(x, axes=0)"),
    ("GT0344", "3:1", "y = neg(x)\nreturn y donates y\n#"), ("GT0334", "", "version 9 since 4.0"),
    ("GT0356", "", "dim B: 3..1"),
]


@pytest.mark.parametrize(("code", "place", "line"), FAULTS, ids=[f[2][:40] for f in FAULTS])
def test_a_fault_has_its_place(code: str, place: str, line: str) -> None:
    source = f"input x: f32[4]\n{line}" + ("\nreturn x\n" if "#" not in line else "")
    with pytest.raises(InputError) as caught:
        serial.loads(source, "m.gt")
    assert (caught.value.code, caught.value.where.split("\n")[0]) == (
        code, f"m.gt:{place}" if place else "m.gt")


def test_a_fault_shows_the_line_and_the_column() -> None:
    with pytest.raises(InputError) as caught:
        serial.loads("input x: f32[4]\ny: f32[4] = neg(x;)\nreturn y", "m.gt")
    assert str(caught.value) == (
        "error[GT0357]: expected ',' or ')' after an operand or an attribute\n"
        "  at m.gt:2:18\n  at y: f32[4] = neg(x;)\n  at                  ^")


PRINTED = [listing.dumps(MODULES[n](), embed=True)
           for n in ("siblings", "block optimised", "branches", "odd", "constants")]
SCRAPS = st.sampled_from(["(", ")", "[", "]", ",", ":", "=", '"', "\n", "#", " at ", "return",
                          "-", "1e999", "none", "nan", "B", "//0", "sha256:", "\\", "\u2028", "",
                          "9" * 5000, "then:\n", "((((((", "donates", "\0", "f32[", "0..", "dim "])


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PRINTED), st.data())
def test_any_text_is_read_or_refused(printed: str, data: st.DataObject) -> None:
    """A listing with pieces cut out, moved or put in gives a module or one coded error."""
    for _ in range(data.draw(st.integers(1, 3))):
        a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(printed))] * 2)))
        b = min(b, a + data.draw(st.sampled_from([0, 1, 5, 80])))
        printed = printed[:a] + data.draw(SCRAPS | st.text(max_size=4)) + printed[b:]
    try:
        assert serial.loads(listing.dumps(serial.loads(printed), embed=True))
    except InputError as error:
        assert error.code.startswith("GT0")


@given(st.text(max_size=60))
def test_any_characters_are_read_or_refused(source: str) -> None:
    with pytest.raises(InputError):
        serial.loads(f"input x: f32[{source}")


# ---- names of all kinds --------------------------------------------------------------------------

HOSTILE = ["", " ", "a b", "\"", "\\", "a\"b\\", "a\nb", "\r\n\t", ")", "(", "a,b", "[3]", "f32[2]",
           "#", "a#b", "a # b", "=", "a == b", "%", "H % 2 == 0", "min", "max", "min(a, b)", "none",
           "true", "false", "nan", "inf", "-inf", "-1", "0", "12", "1e3", "1.", "²", "٣", "é",
           "中\u2028文", "\x00\x1b[31m", "\x7f", "\x85", "\xa0", "a;b", "*/ x /*", "$(x)", "a:b",
           "a::b", "//", "a//2", "2*a + 1", "return", "dim", "size", "require", "input", "as", "of",
           "at", "donates", "then", "body:", "# comment", "sha256:00", "base64:", "{}", "a{b=1}",
           "'", "`", "@", "/", "~", "-", "_", "a_", "p%s%n", "</script>", "q\\u000a", "x" * 3000]
NAMES = st.sampled_from(HOSTILE) | st.text(max_size=8) | st.text('()[]"\\,=#%*/ ab1\n', max_size=8)


def named(names: list[str]) -> Module:
    """A graph whose dims, values, constants, outputs, places and notes have these names."""
    a, b, c, d, e, f = names
    n, m, k = symbol(a, 1, None), symbol(b, 0, 64), symbol(c, 1, None, step=2, offset=1)
    x, w = Value(tensor("f32[4]"), d), Value(tensor("f32[4]"), e)
    x = Value(type(x.type)(x.type.dtype, (2 * n + m, k, minimum(n, m * k))), d)
    graph = trace(lambda x, w: (
        o.reshape(x, shape=((2 * n + m) * k, minimum(n, m * k))),
        o.broadcast(w, shape=(n, m, 4)),
        w * values(w, 4, name=f, param=True),
        o.cond(o.gt(o.reshape(o.reduce_sum(w, axes=(0,)), shape=()), 0.0), w,
               then=trace(o.neg, [w.type], [e]),
               orelse=trace(o.relu, [w.type], [f]))[0]), [x.type, w.type], [d, e])
    nodes = tuple(replace(node, where=names[i % 6], of=(names[i % 5], names[i % 6]))
                  for i, node in enumerate(graph.nodes))
    return Module(Graph(graph.inputs, nodes, graph.outputs), (f, c, d, a),
                  {s: size for s, size in ((a, Symbol(a, 1, None)), (b, Symbol(b, 0, 64)),
                                           (c, Symbol(c, 1, None, None, 2, 1)))},
                  {s: Location(names[0], names[1]) for s in names}, ((2, 1),),
                  {s: [s, {s: s}] for s in names}, {}, {s: (f, e) for s in names},
                  requires=(Equation(n, m * 2), Equation(mod(n, 2), k), Equation(m, n // 2)))


def reads_back(names: list[str]) -> None:
    m = named(names)
    printed = listing.dumps(m, embed=True)
    again = serial.loads(printed)
    assert text(serial.loads(text(m))) == text(again) == text(m)
    assert listing.dumps(again, embed=True) == printed
    assert serial.loads("\n".join(listing.listing(m, ListingStyle("embed", where=True))))


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:20])
def test_a_hostile_name_is_read_back(name: str) -> None:
    for at in range(3):
        names = ["a", "b", "c", name, name, name]
        names[at] = name
        reads_back(names)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.lists(NAMES, min_size=6, max_size=6).filter(lambda names: len(set(names[:3])) == 3))
def test_any_names_are_read_back(names: list[str]) -> None:
    reads_back(names)
