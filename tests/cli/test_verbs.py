"""Each verb once on good input: what it prints and what it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import graphtool.cli.verbs  # noqa: F401  (fills the table)
from graphtool.errors import InputError
from graphtool.io import npz
from graphtool.native import board
from graphtool.verbs import families
from tests.cli.conftest import DIGITS, SAMPLES, Cli, Result


@pytest.fixture(scope="session")
def g(folder: Path) -> Path:
    return folder / "digits.graph.json"


@pytest.mark.parametrize("verb", families())
def test_every_verb_has_help(verb: str, gt: Cli) -> None:
    result = gt(verb, "--help")
    assert result.code == 0 and f"graphtool {verb}" in result.out


def test_help_and_version(gt: Cli) -> None:
    assert gt().out == gt("--help").out == gt("-h").out != ""
    assert gt("--version").out.startswith("graphtool ")


@pytest.mark.compiled
def test_import_of_onnx_is_checked(gt: Cli, tmp_path: Path) -> None:
    result = gt("import", DIGITS, "-o", tmp_path / "m.graph.json")
    assert result.code == 0 and result.out == ""
    assert result.err.startswith("checked: the graph agrees with onnxruntime on 2 inputs")
    assert gt("import", DIGITS, "-o", tmp_path / "n.graph.json", "--no-check").err == ""
    assert (tmp_path / "m.graph.json").read_text().replace("m.safe", "n.safe") == (
        tmp_path / "n.graph.json").read_text()


@pytest.mark.torch
@pytest.mark.parametrize("capture", ["export", "fx"])
def test_import_of_torch_is_checked(capture: str, gt: Cli, tmp_path: Path) -> None:
    result = gt("import", f"{SAMPLES}/mlp.py:model", "-o", tmp_path / "m.graph.json",
                "--capture", capture, "--dynamic", "batch=1..64")
    assert result.code == 0 and "agrees with torch on 2 inputs" in result.err
    assert "dim batch: 1..64" in gt("show", tmp_path / "m.graph.json").out


def test_show(g: Path, gt: Cli) -> None:
    assert gt("show", g).out.splitlines()[1:3] == ["dim batch: 0..", "input image: "
                                                   "f32[batch,1,8,8]"]
    assert "location digits.py:33 = " in gt("show", g, "--where").out
    assert "parameters   25,9" in gt("show", g, "--stats").out
    assert gt("show", g, "--tabular").out.split()[:4] == ["kind", "category", "name", "op"]
    rows = gt("show", g, "--tabular", "--category", "shape").out.splitlines()
    assert len(rows) == 2 and "reshape" in rows[1]


def test_eval_by_each_form_of_input(g: Path, folder: Path, gt: Cli, tmp_path: Path) -> None:
    image = npz.load(folder / "in.npz")["image"]
    npz.save({"x": image}, tmp_path / "x.npy")
    outputs = []
    for i, given in enumerate((["--inputs", folder / "in.npz"], ["--inputs", tmp_path / "x.npy"],
                               ["--input", f"image=@{tmp_path}/x.npy"])):
        assert gt("eval", g, *given, "-o", tmp_path / f"{i}.npz").code == 0
        outputs.append(npz.load(tmp_path / f"{i}.npz")["logits"])
    assert all(np.array_equal(outputs[0], o) for o in outputs[1:])
    assert "logits: float32[2, 10]" in gt("eval", g, "--input", "image=2x1x8x8xf32=0.5").out


def test_eval_is_seeded_and_widens(g: Path, gt: Cli, tmp_path: Path) -> None:
    a, b, c = (gt("eval", g, "--random", "--seed", s, "--dim", "batch=2").out for s in (1, 1, 2))
    assert a == b != c and "[2, 10]" in a
    gt("eval", g, "--random", "--dtype", "float64", "-o", tmp_path / "o.npz", "--dump-values",
       tmp_path / "v.npz")
    assert npz.load(tmp_path / "o.npz")["logits"].dtype == np.float64
    assert {"relu", "logits"} < set(npz.load(tmp_path / "v.npz"))


@pytest.mark.long
def test_opt_reports(g: Path, gt: Cli, tmp_path: Path) -> None:
    result = gt("opt", g, "-o", tmp_path / "o.graph.json", "--time", "--stats", "--check",
                "--dump-dir", tmp_path / "dump")
    assert result.code == 0 and "check: the same before and after" in result.out
    assert "rules fired" in result.out and "bytes moved" in result.out
    names = sorted(p.name for p in (tmp_path / "dump").iterdir())
    assert names[:2] == ["000-input.graph.json", "001-dce.graph.json"]
    for name in names[:-1]:
        assert gt("show", tmp_path / "dump" / name).code == 0


def test_opt_prints_after_passes(g: Path, gt: Cli, tmp_path: Path) -> None:
    passes = gt("opt", g, "--list").out.splitlines()
    out = tmp_path / "o.graph.json"
    assert gt("opt", g, "-o", out, "--print-after", "all").out.count("; after") == len(passes)
    some = gt("opt", g, "-o", out, "--print-after", "changed").out
    assert 0 < some.count("; after") < len(passes) and "no change" not in some
    assert gt("opt", g, "-o", out, "--passes", "dce,cse", "--print-after", "cse").out.startswith(
        "; after cse")


def with_epsilon(g: Path, folder: Path, epsilon: float) -> Path:
    """A copy of the graph in which the first batch norm has another epsilon."""
    (folder / "digits.safetensors").write_bytes(g.with_name("digits.safetensors").read_bytes())
    lines = g.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"op": "batch_norm"' in line)
    bare = re.sub(r'"attrs": {[^}]*}, ', "", lines[at])
    lines[at] = bare.replace('"type"', f'"attrs": {{"epsilon": {epsilon}}}, "type"')
    (folder / "changed.graph.json").write_text("".join(lines))
    return folder / "changed.graph.json"


def test_diff(g: Path, gt: Cli, tmp_path: Path) -> None:
    changed = with_epsilon(g, tmp_path, 0.001)
    assert (gt("diff", g, g).code, gt("diff", g, g).out) == (0, "equal: 13 nodes\n")
    result = gt("diff", g, changed)
    assert result.code == 1 and result.out.splitlines()[0].startswith(
        "~ getitem: batch_norm epsilon ")
    assert "1 changed" in result.out and result.out.count("\n~ ") == 0
    assert "| changed | `getitem` | batch_norm |" in gt("diff", g, changed, "--format",
                                                        "markdown").out


@pytest.mark.parametrize(("suffix", "start"), [
    ("svg", "<svg "), ("dot", "digraph"), ("mmd", "flowchart"), ("md", "flowchart")])
def test_draw(suffix: str, start: str, g: Path, gt: Cli, tmp_path: Path) -> None:
    assert gt("draw", g, "-o", tmp_path / f"d.{suffix}").code == 0
    assert (tmp_path / f"d.{suffix}").read_text().startswith(start)


def test_catalogues(gt: Cli) -> None:
    assert gt("ops").out.startswith("op ") and "\nconv " in gt("ops").out
    assert gt("ops", "conv").out.startswith("conv(x, w, strides=none")
    assert "\nfold{max_bytes=1048576}" in gt("passes").out
    assert gt("support", DIGITS).out == "supported: every node of the model\n"
    assert gt("explain", "GT0412").out.startswith("GT0412: ")
    assert gt("explain", "error[GT0412]").out == gt("explain", "412".rjust(4, "0")).out


def test_doctor(gt: Cli) -> None:
    result = gt("doctor")
    assert result.code == 0 and "ok   compiler" in result.out


def test_the_stages_one_by_one(g: Path, folder: Path, gt: Cli, tmp_path: Path) -> None:
    opt, program, built = (tmp_path / n for n in ("o.graph.json", "m.program.json", "built"))
    assert gt("opt", g, "-o", opt).code == 0
    assert gt("lower", opt, "-o", program, "--name", "digits").code == 0
    assert json.loads(program.read_text())["format"] == "graphtool/program"
    assert gt("emit", program, "-o", tmp_path / "c").code == 0
    assert (tmp_path / "c" / "digits.c").exists()
    assert gt("build", program, "-o", built).out == f"{built}\n"
    gt("run", built, "--inputs", folder / "in.npz", "-o", tmp_path / "c.npz")
    gt("eval", g, "--inputs", folder / "in.npz", "-o", tmp_path / "e.npz")
    a, b = (npz.load(tmp_path / f"{n}.npz")["logits"] for n in "ce")
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert gt("check", DIGITS, built, "--inputs", folder / "in.npz").code == 0
    assert gt("check", g, program).code == 0
    assert gt("build", built, "-o", tmp_path / "x").code == 3


def test_build_of_a_model_keeps_its_stages(gt: Cli, tmp_path: Path) -> None:
    assert gt("build", DIGITS, "-o", tmp_path / "b", "--keep").code == 0
    assert sorted(p.name for p in (tmp_path / "b" / "stages").glob("*.json")) == [
        "0-import.graph.json", "1-opt.graph.json", "2-lower.program.json"]
    result = gt("bench", tmp_path / "b", "--seconds", "0", "--threads", "1", "--vs",
                "onnxruntime", "--model", DIGITS)
    assert result.code == 0 and "onnxruntime at 1 thread" in result.out


def test_stages_and_build_appear_together(gt: Cli, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "b"
    assert gt("build", DIGITS, "-o", out, "--keep").code == 0
    before = sorted((p, p.stat().st_ino) for p in out.rglob("*"))
    def full(*_: object) -> None:
        raise InputError("GT0330", "cannot write: no space left")
    monkeypatch.setattr("graphtool.loops.serial.save", full)
    assert gt("build", DIGITS, "-o", out, "--keep", "--name", "other").code == 3
    assert sorted((p, p.stat().st_ino) for p in out.rglob("*")) == before
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_check_shows_where_graphs_part(g: Path, gt: Cli, tmp_path: Path) -> None:
    changed = with_epsilon(g, tmp_path, 0.5)
    result = gt("check", g, changed, "--divergence")
    assert result.code == 1 and result.out.splitlines()[-1].startswith("  FAIL getitem: max abs")


def test_cache(gt: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert gt("cache", "dir").out == f"{tmp_path}/graphtool\n"
    assert gt("cache", "prune", "--limit", "0").out == gt("cache", "clear").out == (
        "0 bytes freed\n")


def test_demo(gt: Cli, tmp_path: Path) -> None:
    result = gt("demo", "-o", tmp_path / "demo", "--seconds", "0")
    assert result.code == 0 and result.out.count("359 right (99.72 %)") == 3


def test_demo_on_a_board(gt: Cli, tmp_path: Path) -> None:
    if board.missing("cortex-m4"):
        pytest.skip("no compiler for boards, or no emulator")
    result = gt("demo", "-o", tmp_path / "demo", "--target", "cortex-m4")
    assert result.code == 0, result.err
    for line in ("359 of 360 images right", "360 of 360 outputs are the evaluator's, bit for bit",
                 "instructions an image", "flash  ", "RAM  "):
        assert line in result.out
    assert (tmp_path / "demo" / "c" / "board.c").is_file()


def test_a_demo_names_what_is_missing_for_a_board(
        gt: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = gt("demo", "-o", tmp_path / "demo", "--target", "rv32imc")
    assert "GT2117" in other.err and "cortex-m4" in other.err
    monkeypatch.setenv("PATH", str(tmp_path))
    none = gt("demo", "-o", tmp_path / "demo", "--target", "cortex-m4")
    assert "error[GT2128]: arm-none-eabi-gcc and qemu-system-arm not found" in none.err
    assert none.code == 5 and "apt install" in none.err


def test_export_stablehlo(g: Path, gt: Cli, tmp_path: Path) -> None:
    text = tmp_path / "m.mlir"
    assert gt("export", g, "--format", "stablehlo", "-o", text) == Result(0, "", "")
    assert text.read_text() == gt("export", g, "--format", "stablehlo").out
    assert gt("import", text, "-o", tmp_path / "again.graph.json", "--no-check").code == 0
    assert gt("diff", g, tmp_path / "again.graph.json").code == 0
    shown = gt("show", g, "--as", "stablehlo").out
    assert shown.startswith("module @") and "__elided__" in shown
    assert "composite" not in gt("export", g, "--format", "stablehlo", "--flat").out


@pytest.mark.compiled
def test_export(g: Path, gt: Cli, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    assert gt("export", g, "--format", "onnx", "-o", model, "--external-data") == Result(0, "", "")
    assert (tmp_path / "m.onnx.data").stat().st_size > 100_000 > model.stat().st_size
    assert gt("check", g, model).code == 0
    assert gt("diff", g, model).code == 0
