"""--format of the verbs that find something: the same exit code in each, and one JSON."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import onnx
import pytest
from onnx import helper

from graphtool.report.findings import FORMATS
from tests.cli.conftest import DIGITS, SAMPLES, Cli


def _timeless(text: str) -> str:
    return re.sub('"seconds": [^,]*', "", text)


@pytest.mark.part(3)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("line", "code"), [
    ("diff {g} {other}", 1), ("diff {g} {g}", 0), ("support {onnx}", 0), ("lint {onnx}", 1),
    ("doctor", 0),
    ("check {g} {g}", 0), ("check {g} {other}", 1), ("opt {g} --bisect", 0),
    ("opt {g} --bisect --rtol 0 --atol 0", 1), ("opt {g} --check --passes fold,cse", 0),
    ("opt {g} --check --rtol 0 --atol 0", 1)])
def test_every_format_has_the_same_code(
        form: str, line: str, code: int, gt: Cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "digits.safetensors").write_bytes((folder / "digits.safetensors").read_bytes())
    (tmp_path / "other.graph.json").write_text((folder / "digits.graph.json").read_text().replace(
        '"op": "relu"', '"op": "tanh"', 1))
    words = line.format(g=folder / "digits.graph.json", other=tmp_path / "other.graph.json",
                        onnx=DIGITS).split()
    result = gt(*words, "--format", form)
    assert (result.code, result.err) == (code, "")
    match form:
        case "junit":
            suite = ET.fromstring(result.out.encode())[0]
            assert bool(int(suite.get("failures") or 0)) == (code != 0)
        case "sarif":
            results = json.loads(result.out)["runs"][0]["results"]
            assert bool([r for r in results if r["level"] == "error"]) == (code != 0)
        case "json" | "text" if words == ["doctor"]:  # it measures
            assert result.out
        case "json":
            assert _timeless(result.out) == _timeless(gt(*words, "--json").out)
        case "github":
            assert ("::error " in result.out) == (code != 0)
        case "text":
            assert result.out == gt(*words).out
        case "markdown":
            assert result.out.startswith("### ")


@pytest.mark.torch
def test_a_diff_points_into_the_source(gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                       ) -> None:
    (tmp_path / "samples").symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    assert gt("import", "samples/mlp.py:model", "-o", "a.graph.json", "--no-check").code == 0
    text = Path("a.graph.json").read_text()
    Path("b.graph.json").write_text(text.replace('"op": "relu"', '"op": "tanh"', 1))
    assert "~ relu: relu → tanh  # mlp.py:19 MLP.forward\n" in gt(
        "diff", "a.graph.json", "b.graph.json").out
    assert "::error file=b.graph.json,line=20," in gt(
        "diff", "a.graph.json", "b.graph.json", "--format", "github").out
    Path("mlp.py").write_text("")  # once the source is here
    assert "::error file=mlp.py,line=19," in gt(
        "diff", "a.graph.json", "b.graph.json", "--format=github").out


def test_places_of_one_operator_are_told_apart(gt: Cli, tmp_path: Path) -> None:
    """By an annotation, by what GitHub knows a result by, and by a test case's name."""
    nodes = [helper.make_node("NoSuch", [a], [b], name=f"node_{b}") for a, b in ("xy", "yz")]
    ports = [[helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2])] for n in "xz"]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", *ports)), tmp_path / "m.onnx")
    out = {form: gt("support", tmp_path / "m.onnx", "--format", form).out
           for form in ("github", "sarif", "junit")}
    results = json.loads(out["sarif"])["runs"][0]["results"]
    assert len({r["partialFingerprints"]["graphtool/v1"] for r in results}) == 2
    for node in ("node_y", "node_z"):
        assert f"NoSuch: no such operator, at {node} (NoSuch)" in out["github"]
        assert any(node in r["message"]["text"] for r in results)
        assert f'name="NoSuch at {node} (NoSuch)"' in out["junit"]


def test_doctor_tells_versions_in_every_format(gt: Cli) -> None:
    assert "| ok | `numpy` |" in gt("doctor", "--format", "markdown").out
    assert 'name="numpy"' in gt("doctor", "--format", "junit").out


def test_options_that_contradict_each_other(gt: Cli, folder: Path) -> None:
    g = folder / "digits.graph.json"
    result = gt("diff", g, g, "--json", "--format", "sarif")
    assert result.code == 2 and "GT3017" in result.err
    assert gt("diff", g, g, "--json", "--format", "json").code == 0
    assert "did you mean 'sarif'" in gt("check", g, g, "--format", "sarf").err


def test_an_error_is_an_annotation_too(gt: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
                                       ) -> None:
    monkeypatch.chdir(folder)
    result = gt("diff", "cut.graph.json", "digits.graph.json", "--format", "github")
    assert result.code == 3 and result.out.startswith(
        "::error file=cut.graph.json,line=1,title=graphtool error::graphtool: GT")
    assert gt("diff", "cut.graph.json", "digits.graph.json").out == ""


def test_import_of_a_directory_says_what_it_is(gt: Cli, folder: Path, tmp_path: Path) -> None:
    result = gt("import", folder)
    assert result.code == 2 and "is a directory, not a model" in result.err
    assert "bad.onnx" in result.err
    assert "expected MODEL.onnx" in gt("import", folder / "empty").err
    (tmp_path / "build.json").write_text("{}")
    assert f"`graphtool show {tmp_path}` reads it" in gt("import", tmp_path).err


def test_a_bisection_points_at_the_rules_node(gt: Cli, folder: Path) -> None:
    graph = folder / "digits.graph.json"
    done = gt("opt", graph, "--bisect", "--rtol", "0", "--atol", "0", "--format", "sarif")
    found, = json.loads(done.out)["runs"][0]["results"]
    assert found["ruleId"].startswith("opt/") and found["locations"]
    refused = gt("opt", graph, "--format", "sarif")
    assert refused.code == 2 and "GT3017" in refused.err


def test_why_reads_builds(gt: Cli, tmp_path: Path) -> None:
    for name, more in (("kept", ["--keep"]), ("bare", [])):
        assert gt("build", DIGITS, "-o", tmp_path / name, *more).code == 0
    kept = gt("why", tmp_path / "kept", "getitem_3")
    assert kept.code == 0 and "freeze conv_factor" in kept.out and "digits_k4() at" in kept.out
    bare = gt("why", tmp_path / "bare", "block2.relu")
    assert bare.code == 0 and "no graphs" in bare.out and "digits_k4() at" in bare.out
    wrong = gt("why", tmp_path / "bare", "block2.relo")
    assert wrong.code == 3 and "did you mean 'block2.relu'" in wrong.err
    assert "GT3141" in gt("why", tmp_path / "bare", "x", "--passes", "dce").err
