"""Pictures that the page saves: SVG from the drawing on the canvas, without a browser."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.report.test_page_layout import NODE, evaluated

pytestmark = pytest.mark.skipif(not NODE, reason="needs node")

NAMESPACE = "http://www.w3.org/2000/svg"
BROWSER = f"""
    const devicePixelRatio = 1;
    document.createElement = () => ({{firstChild: {{namespaceURI: "{NAMESPACE}"}},
      getContext: () => ({{measureText: text => ({{width: 6 * text.length}})}})}});
    for (const name of COLOURS) colours[name] = "#123456";
    colours.module = "#00000007";
    """
GRAPH = """
    const group = (key, parent, layers) =>
      ({key, name: key, size: 2, parent, layers, bends: []});
    const p = {aspect: 1.5, found: new Set(), kin: new Set(), chosen: null,
      section: {name: NAME + ".onnx"}, graph: {
        nodes: [NAME, "b", "c", "d"].map(name => (
          {name, op: "conv", kind: "compute", brief: "3→64, 7×7", type: "f32[2]"})),
        groups: [group("m0", null, [[[0, 0]], [["m1", 0]], [[3, 0]]]),
                 group("m1", "m0", [[[1, 0]], [[2, 0]]])],
        edges: [[0, 3, "f32[2]", "m0", 0, 3], [1, 2, "f32[2]", "m1", 1, 2]]},
      root() { return this.boxes.get("m0"); }, size() { return [400, 300]; }};
    prepare(p);
    layout(p);
    p.view = {x: 5, y: 5, k: 0.1};
    """


def saved(name: str, whole: str) -> ET.Element:
    """The picture of a graph whose first node has this name."""
    text = evaluated(f"{BROWSER} const NAME = {json.dumps(name)}; {GRAPH}"
                     f"console.log(JSON.stringify(graphPicture(p, {whole}).text));",
                     "draw.js", "save.js", "heat.js")
    return ET.fromstring(text)


def words(picture: ET.Element) -> list[str]:
    return [e.text or "" for e in picture.iter(f"{{{NAMESPACE}}}text")]


def test_the_whole_graph_with_title_and_legend() -> None:
    """Words and types are there however far the page is zoomed out."""
    found = words(saved("x", "true"))
    assert found[-2:] == ["x.onnx", "compute"]
    assert found.count("conv") == 4 and found.count("3→64, 7×7") == 4 and "f32[2]" in found
    assert "m1  (2 nodes)" in found


def test_what_is_in_view_has_its_size() -> None:
    picture = saved("x", "false")
    assert (picture.get("width"), picture.get("height")) == ("400", "368")


@pytest.mark.parametrize("name", ["</text><script>&", "a\u202eb\u0007\u001b[31m", "\ud800x", "]]>",
                                  "n" * 10_000])
def test_a_hostile_name_stays_text(name: str) -> None:
    picture = saved(name, "true")
    assert {e.tag.removeprefix(f"{{{NAMESPACE}}}") for e in picture.iter()} == {
        "svg", "title", "rect", "g", "path", "text"}
    assert not {"\u202e", "\x1b", "\x07"} & set("".join(words(picture)))
    assert max(map(len, words(picture))) <= 120


def test_corners_are_round_at_the_point() -> None:
    """As arcTo of a canvas; in a straight line there is no corner."""
    path = evaluated(BROWSER + """
        const pen = new SvgPen();
        pen.moveTo(0, 0); pen.arcTo(100, 0, 100, 100, 8); pen.lineTo(100, 100);
        pen.arcTo(100, 150, 100, 200, 8);
        console.log(JSON.stringify(pen.path));""", "draw.js", "save.js", "heat.js")
    assert path == "M0 0L92 0Q100 0 100 8L100 100L100 150"


def test_a_transparent_colour_is_one_of_svg() -> None:
    found: Any = evaluated('console.log(JSON.stringify([tint("fill", "#00000007"), '
                           'tint("fill", "#123456")]));', "save.js")
    assert found == ['fill="#000000" fill-opacity="0.027"', 'fill="#123456"']


def test_layers_alike_are_counted() -> None:
    """Two of three modules have the same ops in the same tree; two alone are no stack."""
    found = evaluated("""
        const group = (key, parent, layers) =>
          ({key, name: key, size: 1, parent, layers, bends: []});
        const counted = ops => {
          const g = {nodes: ops.map(op => ({op, name: op})), edges: [], groups: [
            group("m0", null, [ops.map((_, i) => ["m" + (i + 1), i])]),
            ...ops.map((_, i) => group("m" + (i + 1), "m0", [[[i, 0]]]))]};
          prepare({graph: g});
          return [g.groups[0].alike || null, label(g, "m0")];
        };
        console.log(JSON.stringify([counted(["a", "a", "b", "a"]), counted(["a", "a"])]));""")
    assert found == [[{"count": 3, "size": 1}, "m0  (1 node, 3 × 1 alike)"], [None, "m0  (1 node)"]]


def test_a_narrow_step_has_short_names() -> None:
    """Its columns have headings, and the names of its cells say the module only."""
    found = evaluated("""
        const group = (key, name, parent, layers) =>
          ({key, name, size: 2, parent, layers, bends: []});
        const g = {nodes: [..."abcd"].map(name => ({name, op: "add"})), edges: [], groups: [
          {...group("m0", "", null, [[["m1", 0], ["m2", 1]]]), grid: true},
          group("m1", "block", "m0", [[[0, 0]], [[1, 0]]]),
          group("m2", "block gradient", "m0", [[[2, 0]], [[3, 0]]])]};
        const p = {graph: g};
        prepare(p);
        const shown = aspect => { p.aspect = aspect; layout(p);
          return [boxed(g, "m2"), p.boxes.get("m0").w, p.boxes.get("m0").columns.length]; };
        console.log(JSON.stringify([shown(1.5), shown(0.5)]));""")
    (wide, narrow) = found
    assert (wide[0], narrow[0]) == ("block gradient  (2 nodes)", "block")
    assert narrow[1] < 0.6 * wide[1] and wide[2] == narrow[2] == 2
