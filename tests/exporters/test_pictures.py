"""Pictures in three languages: well formed whatever the names, nothing lost, no box on another."""

from __future__ import annotations

import shutil
import subprocess
import xml.dom.minidom
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtool import dtypes
from graphtool import ops as o
from graphtool.exporters import FORMATS
from graphtool.exporters.picture import Picture, picture
from graphtool.exporters.svg import layout
from graphtool.ir.graph import Graph, Group, Module, TensorType
from graphtool.ir.trace import trace
from tests.report.graphs import layers, random_module

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = '"><script>&amp;`#;\\"|]]>\x01 —\n'


def named(name: str) -> Module:
    g = trace(lambda x: o.exp(x), [TensorType(dtypes.float32, (2,))], [name])
    return Module(g, (name,))


@pytest.mark.parametrize("format", FORMATS)
def test_golden(format: str, request: pytest.FixtureRequest) -> None:
    path = GOLDEN / f"layers.{format}"
    text = FORMATS[format](picture(layers(2)))
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.long
@given(st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_svg_is_xml_whatever_the_names(name: str) -> None:
    xml.dom.minidom.parseString(FORMATS["svg"](picture(named(name))).encode())


@pytest.mark.parametrize("format", FORMATS)
def test_names_cannot_break_out(format: str) -> None:
    assert "<script" not in FORMATS[format](picture(named(HOSTILE))) or format == "dot"


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_graphviz_takes_the_dot() -> None:
    for m in (layers(3), named(HOSTILE)):
        done = subprocess.run(["dot", "-Tsvg"], input=FORMATS["dot"](picture(m)).encode(),
                              capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_every_node_and_edge_is_there() -> None:
    p = picture(random_module(3), constants=True)
    m = random_module(3).graph
    assert len(p.boxes) == len(m.inputs) + len(m.nodes) + len(m.outputs)
    ids = {b.id for b in p.boxes}
    assert {a.start for a in p.arrows} | {a.end for a in p.arrows} <= ids


def test_constants_stand_in_their_readers() -> None:
    p = picture(layers(1))
    assert not [b for b in p.boxes if b.kind == "constant"]
    assert any("@l0.w: f32[4,4]" in line for b in p.boxes for line in b.lines)


def test_a_group_is_one_box() -> None:
    m = layers(2)
    g = m.graph
    members = tuple(n for n in g.nodes if n.op.name != "constant")[:3]
    group = Group(members[-1].outputs[0], members, "template")
    p = picture(replace(m, graph=Graph(g.inputs, g.nodes, g.outputs, (group,))), groups=True)
    (box,) = (b for b in p.boxes if b.kind == "group")
    assert "matmul → add → relu" in box.lines and len(p.boxes) == 8


@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_overlap_and_arrows_go_down(seed: int) -> None:
    p: Picture = picture(random_module(seed))
    placed = layout({b.id: (60.0 + 7 * len(b.id), 30.0) for b in p.boxes},
                    [(a.start, a.end) for a in p.arrows])
    for a, b in combinations(placed.places.values(), 2):
        assert (abs(a.y - b.y) >= (a.height + b.height) / 2
                or abs(a.x - b.x) >= (a.width + b.width) / 2)
    for a in p.arrows:
        ys = [q.y for q in placed.routes[a.start, a.end]]
        assert ys == sorted(ys) and len(set(ys)) == len(ys)
