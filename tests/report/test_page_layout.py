"""The page's script where no browser is needed: how long chains become columns."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "graphtool" / "report" / "page"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(not NODE, reason="needs node")


def evaluated(script: str, *more: str) -> Any:
    """What the page's layout, and more of its files, print as JSON."""
    head = """const document = {getElementById: () => ({textContent: '{"sections": []}'})};"""
    assert NODE is not None
    text = "\n".join((PAGE / name).read_text() for name in ("layout.js", "grid.js", *more))
    found = subprocess.run([NODE, "-e", head + text.replace('"use strict";', "") + script],
                           capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


def columns(rows: int, high: int = 34, items: int = 1, aspect: float = 1.5) -> list[int]:
    """How many rows each column has, of rows alike."""
    return list(evaluated(f"""
        aspect = {aspect};
        const row = () => ({{items: Array({items}).fill({{}}), tall: {high}, room: ROW, low: 0,
                            high: 130 * {items}}});
        const made = columns(Array.from({{length: {rows}}}, row));
        console.log(JSON.stringify(made.map(c => c.length)));
        """))


def test_a_short_chain_is_one_column() -> None:
    assert columns(8) == [8]


def test_a_long_chain_is_several_of_equal_length() -> None:
    found = columns(100)
    assert sum(found) == 100 and len(found) > 5 and max(found) - min(found) <= 3


def test_a_narrow_pane_has_fewer_columns() -> None:
    assert len(columns(100, aspect=0.4)) < len(columns(100, aspect=2))


def test_wide_rows_have_fewer_columns() -> None:
    assert len(columns(60, items=8)) < len(columns(60))


def test_few_tall_rows_are_wrapped_too() -> None:
    assert sum(columns(6, high=500)) == 6 and len(columns(6, high=500)) == 3


def test_a_tall_row_may_end_the_first_column() -> None:
    """Its middle is the middle of all rows: the break is before or behind it."""
    found = evaluated("""
        aspect = 1.18;
        const row = (tall, high) => ({items: [{}], tall, room: ROW, low: 0, high});
        const rows = [[34, 250], [34, 250], [34, 150], [776, 1000], [34, 150], [34, 150], [34, 80]];
        console.log(JSON.stringify(columns(rows.map(r => row(...r))).map(c => c.length)));
        """)
    assert found == [4, 3]


def test_columns_break_between_large_rows() -> None:
    """One row of half the height stands alone, whatever is beside it."""
    found = evaluated("""
        aspect = 1;
        const row = tall => ({items: [{}], tall, room: ROW, low: 0, high: 500});
        console.log(JSON.stringify(columns([34, 34, 440, 440, 200].map(row)).map(c => c.length)));
        """)
    assert found == [3, 2]


def test_what_can_be_read_starts_whole() -> None:
    """A page starts with all of the graph, or, if that is too small to read, with its top."""
    found = evaluated("""
        const start = (w, h) => scale(1000, 800, {w, h});
        console.log(JSON.stringify([start(300, 300), start(960, 1267), start(960, 9000)]));
        """)
    assert found == pytest.approx([1.1, 760 / 1267, 0.8])


def test_a_value_without_an_edge_is_a_line_of_its_readers_box() -> None:
    """Closed, a module has one line for all of its readers; where an edge is drawn, none."""
    found = evaluated("""
        const group = (key, parent, layers) =>
          ({key, name: key, size: 2, parent, layers, bends: []});
        const p = {aspect: 1.5, graph: {
          nodes: Array.from({length: 5}, (_, i) => ({name: "n" + i, op: "add", type: ""})),
          groups: [group("m", null, [[[0, 0]], [["m1", 0]], [[3, 0]], [[4, 0]]]),
                   group("m1", "m", [[[1, 0]], [[2, 0]]])],
          edges: [[0, 4, "", "m", 0, 4], [0, 1, ""], [0, 2, ""], [0, 3, ""]]}};
        prepare(p);
        const shown = () => { layout(p); return [[...p.graph.stubs], p.routes.length,
                                                 p.boxes.get(3).h - p.boxes.get(4).h]; };
        const opened = shown();
        p.graph.groups[1].open = false;
        console.log(JSON.stringify([opened, shown()]));
        """)
    assert found == [[[[1, [0]], [2, [0]], [3, [0]]], 1, 12], [[["m1", [0]], [3, [0]]], 1, 12]]


def test_a_module_leaves_room_for_types_and_none_around_its_ports() -> None:
    """An edge enters and leaves a module at a port, a row of its own."""
    found = evaluated("""
        const nodes = [{name: "m.x", op: "exp", type: "f32[2,3,224,224]"}];
        const sizes = [[], ["pi9"], ["pi9", "po0"]].map(ports => {
          const layers = [[[0, 0]]];
          if (ports.length) layers.unshift([[ports[0], 0]]);
          if (ports.length > 1) layers.push([[ports[1], 0]]);
          const group = {key: "m0", name: "m", size: 1, open: true, layers};
          return sized({nodes, byKey: new Map([["m0", group]])}, "m0");
        });
        console.log(JSON.stringify({high: sizes.map(s => s.h), wide: sizes[0].w, row: ROW}));
        """)
    plain, entered, both = found["high"]
    assert 8 < entered - plain < found["row"] / 2 + 8 and both - entered == entered - plain
    assert found["wide"] > 35 + 6 + 6 * len("f32[2,3,224,224]")


def test_a_closed_module_is_marked_as_its_nodes_are() -> None:
    found = evaluated("""
        const group = (key, parent, layers) =>
          ({key, name: key, size: 2, parent, layers, bends: []});
        const marked = more => {
          const nodes = [..."abcd"].map(name => ({name, op: "add"}));
          const groups = [group("m0", null, [[["m1", 0]], [["m2", 0]]]),
                          group("m1", "m0", [[[0, 0]], [[1, 0]]]),
                          group("m2", "m0", [[[2, 0]], [[3, 0]]])];
          const p = {...more, graph: {nodes, edges: [], groups}};
          prepare(p);
          return [p.graph.parts, p.graph.changes].map(m => [m.get("m1"), m.get("m2")]);
        };
        console.log(JSON.stringify([
          marked({parts: {b: "later", a: "first", c: "later"}})[0],
          marked({changes: {a: "added", b: "added", c: "added"}})[1],
          marked({changes: {a: "added", b: "removed"}})[1], marked({})[0]]));
        """)
    assert found == [["first", "later"], ["added", "changed"], ["changed", None], [None, None]]


def test_edges_leave_a_module_at_its_lower_border() -> None:
    """The last column ends above the first one, the port does not."""
    found = evaluated("""
        const group = (key, parent, layers) =>
          ({key, name: key, size: 1, parent, layers, bends: []});
        const layers = [...Array(13).keys()].map(i => [[i, 0]]);
        const p = {aspect: 1.2, graph: {
          nodes: Array.from({length: 14}, () =>
            ({name: "n", op: "add", type: "f32[1234,5678,91]"})),
          groups: [group("m0", null, [[["m1", 0]], [[13, 0]]]),
                   group("m1", "m0", [...layers, [["po12", 0]]])],
          edges: [[12, 13, "f32[1234,5678,91]", "m0", "m1", 13]]}};
        prepare(p);
        p.graph.groups[1].open = true;
        layout(p);
        const m = p.boxes.get("m1"), port = p.boxes.get("m1po12");
        p.graph.groups[1].open = false;
        const closed = sized(p.graph, "m1");
        console.log(JSON.stringify({gap: m.y + m.h - port.y - port.h,
          columns: new Set([0, 12].map(n => p.boxes.get(n).x)).size, over: closed.over}));
        """)
    assert found["columns"] == 2 and found["gap"] == 0 and found["over"] > 50


def test_an_edge_that_goes_back_leaves_at_the_top_and_comes_in_from_below() -> None:
    """Closed modules may read each other, as forward and backward passes do."""
    found = evaluated("""
        const group = (key, parent, layers, bends = []) =>
          ({key, name: key, size: 1, parent, layers, bends});
        const p = {aspect: 1.5, graph: {
          nodes: Array.from({length: 3}, () => ({name: "n", op: "add", type: ""})),
          groups: [group("m", null, [[["m1", 0]], [["b0", 0]], [["m2", 0]]],
                         [["m1", "m2", "b0"]]),
                   group("m1", "m", [[[0, 0]], [[2, 0]]]), group("m2", "m", [[[1, 0]]])],
          edges: [[0, 1, "", "m", "m1", "m2"], [1, 2, "", "m", "m2", "m1"]]}};
        prepare(p);
        for (const x of p.graph.groups.slice(1)) x.open = false;
        layout(p);
        const box = key => p.boxes.get(key);
        console.log(JSON.stringify({
          routes: p.routes.map(r => ({up: r.up, ys: r.points.map(q => q[1])})),
          first: [box("m1").y, box("m1").y + box("m1").h],
          last: [box("m2").y, box("m2").y + box("m2").h]}));
        """)
    (down, back), first, last = found["routes"], found["first"], found["last"]
    assert not down["up"] and down["ys"] == sorted(down["ys"])
    assert (down["ys"][0], down["ys"][-1]) == (first[1], last[0])
    assert back["up"] and back["ys"] == sorted(back["ys"], reverse=True)
    assert (back["ys"][0], back["ys"][-1]) == (last[0], first[1])


@pytest.mark.parametrize(("ports", "title"), [
    ([], ["block (3 nodes)", 10]), ([180], ["block (3 nodes)", 10]),
    ([20], ["block (3 nodes)", 26]), ([90], ["block (3 nodes)", 96]), ([70, 140], ["block", 10])])
def test_no_edge_runs_through_a_title(ports: list[int], title: list[Any]) -> None:
    """It stands beside the edges that enter the module, shorter if there is no room."""
    assert evaluated(f"""
        const pen = {{measureText: text => ({{width: 6 * text.length}})}};
        const box = {{x: 0, y: 0, w: 200, ports: {ports}}};
        console.log(JSON.stringify(clear(pen, box, "block (3 nodes)", "block").slice(0, 2)));
        """, "draw.js") == title


def test_what_is_hidden_is_a_bend() -> None:
    sizes = evaluated("""
        const g = {nodes: [{name: "a", op: "reshape", kind: "shape"}], byKey: new Map()};
        const before = sized(g, 0).h;
        hiding = true;
        console.log(JSON.stringify([before, sized(g, 0).h]));
        """)
    assert sizes == [34, 8]


GRID = """
    const group = (key, rises) => ({key, name: key, size: 2, parent: "m0", rises, bends: [],
      layers: []});
    const node = i => ({name: "n" + i, op: "add", type: "f32[4]", kind: "compute"});
    const p = {aspect: 1.5, graph: {nodes: [0, 1, 2, 3, 4].map(node), groups: [
      {key: "m0", name: "", size: 5, parent: null, grid: true, bends: [],
       layers: [[[0, 0], [3, 1], [4, 2]], [[1, 0], [2, 1]]]}],
      edges: [[0, 1, "", "m0", 0, 1], [1, 2, "", "m0", 1, 2], [2, 3, "", "m0", 2, 3],
              [3, 4, "", "m0", 3, 4], [0, 3, "", "m0", 0, 3]]}};
    prepare(p);
    layout(p);
    const box = i => p.boxes.get(i), way = i => p.routes[i];
"""


def test_a_step_goes_down_the_left_and_up_beside_it() -> None:
    found = evaluated(GRID + """
        console.log(JSON.stringify({
          down: [way(0).points.at(-1)[1] - box(1).y, way(0).up],
          up: [way(2).points.at(-1)[1] - box(3).y - box(3).h, way(2).up],
          columns: [box(1).x < box(2).x, box(3).x < box(4).x, box(0).y === box(4).y]}));
        """)
    assert found == {"down": [0, False], "up": [0, True], "columns": [True, True, True]}


def test_edges_of_a_step_run_between_rows_and_columns() -> None:
    """No corner of an edge is in a box, and no straight part of it crosses one."""
    crossed = evaluated(GRID + """
        const crossed = [];
        for (const r of p.routes) for (let i = 1; i < r.points.length; i++) {
          const [[x0, y0], [x1, y1]] = [r.points[i - 1], r.points[i]];
          for (const n of [0, 1, 2, 3, 4]) {
            const b = box(n);
            if (Math.max(x0, x1) > b.x + 1 && Math.min(x0, x1) < b.x + b.w - 1
              && Math.max(y0, y1) > b.y + 1 && Math.min(y0, y1) < b.y + b.h - 1) crossed.push(n);
          }
        }
        console.log(JSON.stringify([crossed, p.routes.length]));
        """)
    assert crossed == [[], 5]
