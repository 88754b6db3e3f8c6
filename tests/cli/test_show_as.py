"""`show --as`: one graph in several languages."""

from __future__ import annotations

import json
from pathlib import Path

from graphtool.io import files
from graphtool.ir.serial import loads, save
from tests.cli.conftest import Cli

BRANCH = """
dim n: 1..4
input p: bool[]
input x: f32[n,2]
param @w: f32[2,2] = [1.0, 2.0, 3.0, 4.0]
y: f32[n,2] = matmul(x, @w)
z: f32[n,2] = cond(p, y)
  then:
    input y: f32[n,2]
    a: f32[n,2] = mul(y, 2.0)
    return a
  orelse:
    input y: f32[n,2]
    b: f32[n,2] = relu(y)
    return b
values: f32[n,1], indices: i64[n,1] = top_k(z, k=1, axis=1)
return values, indices
"""


def graph(folder: Path) -> Path:
    path = folder / "m.graph.json"
    save(loads(BRANCH), path)
    return path


def test_functional(gt: Cli, tmp_path: Path) -> None:
    assert gt("show", graph(tmp_path), "--as", "functional").out == """\
fn (p: bool[], x: f32[n,2]) -> (f32[n,1], i64[n,1]) {
  let @w: f32[2,2] = [1.0, 2.0, 3.0, 4.0];
  let y: f32[n,2] = matmul(x, @w);
  let z: f32[n,2] = cond(p, y,
    then = fn (y: f32[n,2]) -> f32[n,2] {
      let a: f32[n,2] = mul(y, 2.0);
      a
    },
    orelse = fn (y: f32[n,2]) -> f32[n,2] {
      let b: f32[n,2] = relu(y);
      b
    });
  let (values: f32[n,1], indices: i64[n,1]) = top_k(z, k=1, axis=1);
  (values, indices)
}
"""


def test_fx(gt: Cli, tmp_path: Path) -> None:
    path = graph(tmp_path)
    rows = json.loads(gt("show", path, "--as", "fx", "--json").out)["rows"]
    assert [r["opcode"] for r in rows] == [
        "placeholder", "placeholder", "get_attr", "call_function", "call_function",
        "call_function", "output"]
    assert [r["category"] for r in rows] == [
        "data", "data", "data", "compute", "control", "compute", "data"]
    assert rows[2]["name"] == "@w" and rows[2]["target"] == "w"
    assert rows[3]["target"] == "matmul" and rows[3]["args"] == "(x, @w)"
    assert rows[-1]["args"] == "((values, indices),)"
    table = gt("show", path, "--tabular", "--as", "fx").out.splitlines()
    assert table[0].split() == ["opcode", "category", "name", "target", "args", "kwargs"]
    assert len(table) == len(rows) + 1


def test_loops_and_c_are_what_is_built(gt: Cli, tmp_path: Path) -> None:
    path = graph(tmp_path)
    loops, c = (gt("show", path, "--as", form).out for form in ("loops", "c"))
    assert loops.startswith("kernel k0(") and "simd for i0" in loops
    assert "/* ---- model_kernels0.c ---- */" in c and "int model_run(" in c
    assert gt("build", path, "-o", tmp_path / "b", "--name", "model").code == 0
    assert (tmp_path / "b" / "model.c").read_text().strip() in c


def test_the_listing_is_the_usual_one(gt: Cli, tmp_path: Path) -> None:
    path = graph(tmp_path)
    shown = gt("show", path, "--as", "listing").out
    assert gt("show", path).out.splitlines()[-12:] == shown.splitlines()[-12:]


def test_inputs_and_outputs_are_data(gt: Cli, tmp_path: Path) -> None:
    rows = json.loads(gt("show", graph(tmp_path), "--tabular", "--category", "data",
                         "--json").out)["rows"]
    assert [r["kind"] for r in rows] == ["input", "input", "param", "output", "output"]


def test_the_schema_of_the_table(gt: Cli) -> None:
    assert files.read_json(gt("schema", "fx-listing").out.encode(), "-")["title"] == (
        "graphtool fx-listing")
