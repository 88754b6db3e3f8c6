"""What the page marks and finds in a graph, and its picture in the corner, without a browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.report.test_page_layout import NODE, PAGE, evaluated

pytestmark = pytest.mark.skipif(not NODE, reason="needs node")

GRAPH = """
    const group = (key, parent, layers) => ({key, name: key, size: 2, parent, layers, bends: []});
    const section = {name: "x.onnx", graph: {
      nodes: ["/a/Conv", "/a/Relu", "b", "c"].map((name, i) => ({name, op: i ? "relu" : "conv",
        kind: i ? "arithmetic" : "compute", type: "f32[2]",
        inputs: i ? [0] : ["w.0: f32[3]", "  = 7"]})),
      groups: [group("m0", null, [[["m1", 0]], [[2, 0]], [[3, 0]]]),
               group("m1", "m0", [[[0, 0]], [[1, 0]], [["po1", 0]]])],
      edges: [[0, 1, "f32[2]", "m1", 0, 1], [1, 2, "f32[2]", "m0", "m1", 2],
              [1, 3, "f32[2]", "m0", "m1", 3]]}};
    const p = {section, graph: section.graph, aspect: 1.5, chosen: null,
      found: new Set(), kin: new Set(), view: {x: 0, y: 0, k: 1}, size: () => [300, 250],
      root() { return this.boxes.get("m0"); }};
    for (const name of COLOURS) colours[name] = "#123456";
    prepare(section);
    layout(p);
    """


def shown(script: str) -> Any:
    return evaluated(GRAPH + f"console.log(JSON.stringify({script}));", "draw.js", "save.js",
                     "overview.js", "stages.js", "heat.js", "panels.js", "search.js")


@pytest.mark.parametrize(("text", "hits"), [
    ("relu", [1, 2, 3]), ("RELU /a", [1]), ("w.0", [0]), ("7", []), ("re:^(b|c)$", [2, 3]),
    ("re:conv$", [0]), ("re:(", [])])
def test_what_a_search_finds(text: str, hits: list[int]) -> None:
    """All words, also of a weight's name; or a regular expression in a line, typed to its end."""
    assert shown(f"""[0, 1, 2, 3].filter(i => matcher({text!r},
        {text!r}.toLowerCase().split(" "))(searchText(p.graph, i)))""") == hits


@pytest.mark.parametrize(("item", "before", "after"), [
    ("3", [0, 1, 3], [3]), ("0", [0], [0, 1, 2, 3]), ("'m1'", [0, 1], [0, 1, 2, 3])])
def test_what_a_node_depends_on_and_what_uses_it(item: str, before: list[int],
                                                 after: list[int]) -> None:
    assert shown(f"['before', 'next'].map(way => [...along(p.graph, {item}, p.graph[way])].sort())"
                 ) == [before, after]


def test_nodes_coloured_by_a_number() -> None:
    """A module has the sum of its nodes; the largest is the strongest; 0 has no colour."""
    numbers = "[3, 1, 0, 12].forEach((n, i) => { p.graph.nodes[i].flops = n; })"
    assert shown(f"""(() => {{ heat = "flops"; {numbers};
        p.graph.byKey.get("m1").open = false;
        layout(p);
        return [3, "m1", 2].map(x => [shade(p, x), share(p, x), amount(p.graph, x)]); }})()""") == [
            ["#123456ff", "75 %", 12], ["#12345699", "25 %", 4], ["", "", 0]]


def test_a_kernels_time_is_that_of_its_nodes() -> None:
    """And a number of the user's own may be negative."""
    assert shown("""(() => {
        section.numbers = [["us", "µs", [[["b", "c"], 3], [["nobody"], 5]]],
                           ["loss", "loss", [[["b"], -0.25], [["c"], 0.0625]]]];
        addNumbers(section);
        heat = "loss";
        return [p.graph.nodes.map(n => n.us || 0), HEATS.loss, share(p, 2), shade(p, 2),
                shade(p, 3)];
        })()""") == [[0, 0, 1.5, 1.5], "loss", "-0.25", "#123456ff", "#12345688"]


def test_what_the_colours_mean() -> None:
    """Of the nodes that are drawn; marks of a difference by their own colour."""
    assert shown("legendRows(p)") == [["compute", "compute"], ["arithmetic", "arithmetic"]]
    closed = "p.graph.byKey.get('m1').open = false, layout(p)"
    assert shown(f"(p.section.changes = {{b: 'moved'}}, {closed}, legendRows(p))") == [
        ["arithmetic", "arithmetic"], ["back", "a module"], ["changed", "moved"]]


@pytest.mark.parametrize(("view", "there"), [
    ("{x: 0, y: 0, k: 0.1}", True), ("{x: -50, y: 0, k: 0.1}", False),
    ("{x: 0, y: 0, k: 4}", False)])
def test_the_picture_in_the_corner(view: str, there: bool) -> None:
    """It is there if a part of the graph is out of view, and then as large as the graph is wide."""
    found = shown(f"""(() => {{
        const pen = new Proxy({{}}, {{get: (_, name) => () => 0, set: () => true}});
        globalThis.devicePixelRatio = 1;
        document.createElement = () => ({{getContext: () => pen}});
        p.map = {{style: {{}}, getContext: () => pen}};
        p.view = {view};
        overview(p);
        return [p.map.hidden, p.mapped ? [p.map.width, p.map.height] : null];
    }})()""")
    assert found[0] is there
    assert there or (found[1][0] <= 100 and found[1][1] <= 71 and max(found[1]) > 60)


def test_no_string_of_the_script_spans_lines() -> None:
    """The page leaves out what is before and between lines."""
    for path in PAGE.glob("*.js"):
        assert not [line for line in path.read_text().splitlines() if line.count("`") % 2]
