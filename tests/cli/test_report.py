"""`report`: true figures, the same bytes without times, one self-contained page, no lost fault."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool.io import npz
from graphtool.io.elf import read_elf
from graphtool.ir import serial
from graphtool.ir.graph import is_constant
from graphtool.native import runtime
from tests.cli.conftest import DIGITS, SAMPLES, Cli

TEST = SAMPLES / "digits_test.npz"


@pytest.fixture
def build(gt: Cli, tmp_path: Path) -> Path:
    assert gt("build", DIGITS, "-o", tmp_path / "build", "--keep").code == 0
    return tmp_path / "build"


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def test_the_figures_are_the_builds(gt: Cli, build: Path, tmp_path: Path) -> None:
    done = gt("report", build, "-o", tmp_path / "r", "--model", DIGITS, "--data", TEST,
              "--seconds", "0")
    assert done.code == 0 and done.out.strip().endswith("report.html")
    found = told(tmp_path / "r")
    assert found["sizes"]["library"] == (build / "libdigits.so").stat().st_size
    assert 0 < found["sizes"]["code"] < found["sizes"]["library"]
    data = npz.load(TEST)
    y = runtime.load(build).run({"image": data["image"]})["logits"]
    rows = {(r["measure"], r["by"]): r["value"] for r in found["accuracy"]}
    assert rows["right class", "y"] == float((y.argmax(1) == data["y"]).mean())
    assert rows["relative error", "onnxruntime"] < 1e-4
    assert found["times"]["timing"]["median_ms"] > 0
    kinds = {r["kind"] for r in found["inexact"]}
    assert {"class", "finite", "approximate", "reassociated"} <= kinds
    assert all(f["ok"] for f in found["files"])
    assert any(r["part"] == "the C library" for r in found["licences"])


def test_the_trace_goes_from_each_node_to_its_lines_of_c(gt: Cli, build: Path, tmp_path: Path
                                                         ) -> None:
    assert gt("report", build, "-o", tmp_path / "r", "--no-times").code == 0
    with (tmp_path / "r" / "trace.csv").open() as table:
        rows = list(csv.DictReader(table))
    first, _ = sorted((build / "stages").glob("*.graph.json"))
    nodes = {n.outputs[0].hint for n in serial.load(first).graph.nodes if not is_constant(n)}
    assert {r["value"] for r in rows} == nodes and {r["became"] for r in rows} == {
        "kernels", "merged"}
    for r in rows:
        lines = (build / r["file"]).read_text().splitlines()
        part = lines[int(r["first line"]) - 1:int(r["last line"])]
        assert part[0].startswith("/* ") and part[-1] == "}"
        assert any(line.startswith(f"void {r['function']}(") for line in part)
    assert {r["kernel"] for r in rows} == {s["kernel"] for s in json.loads(
        (build / "build.json").read_text())["steps"]}
    found = told(tmp_path / "r")["traced"]
    assert found["nodes"] == len(nodes) and not found["lost"] and not found["orphans"]


def test_a_build_of_a_graph_has_a_trace_if_it_keeps_its_stages(gt: Cli, tmp_path: Path) -> None:
    gt("import", DIGITS, "--no-check", "-o", tmp_path / "d.graph.json")
    for name, keep in (("a", []), ("b", ["--keep"])):
        gt("build", tmp_path / "d.graph.json", "-o", tmp_path / name, *keep)
        assert gt("report", tmp_path / name, "-o", tmp_path / f"r{name}", "--no-times").code == 0
    assert told(tmp_path / "ra")["traced"] is None and not (tmp_path / "ra/trace.csv").exists()
    assert told(tmp_path / "rb")["traced"]["became"] == {"kernels": 12, "merged": 1}


def test_without_times_equal_builds_have_equal_reports(gt: Cli, build: Path, tmp_path: Path
                                                       ) -> None:
    texts = []
    for name in "ab":
        assert gt("report", build, "-o", tmp_path / name, "--no-times").code == 0
        texts.append({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()})
    assert texts[0] == texts[1] and sorted(texts[0]) == [
        "report.html", "report.json", "report.md", "trace.csv"]


class Links(HTMLParser):
    """Collects what a page would load, and checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{k}={v}" for k, v in attrs if k in ("src", "href")]
        if tag not in ("meta", "html"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "html":
            assert self.open.pop() == tag


def test_the_page_is_one_file(gt: Cli, build: Path, tmp_path: Path) -> None:
    manifest = build / "build.json"
    manifest.write_text(manifest.read_text().replace('"target": "native"', '"target": "<b>|x`y"'))
    assert gt("report", build, "-o", tmp_path / "r", "--no-times").code == 0
    text = (tmp_path / "r" / "report.html").read_text()
    page = Links()
    page.feed(text)
    assert not page.found and not page.open and "&lt;b&gt;|x`y" in text and "<b>" not in text
    assert "| target | &lt;b>\\|x\\`y |" in (tmp_path / "r" / "report.md").read_text()


def test_a_changed_file_is_an_exit_code(gt: Cli, build: Path, tmp_path: Path) -> None:
    (build / "digits.c").write_text("/* another */")
    done = gt("report", build, "-o", tmp_path / "r", "--no-times")
    assert done.code == 1 and "not as built: digits.c" in done.err
    assert [f["name"] for f in told(tmp_path / "r")["files"] if not f["ok"]] == ["digits.c"]


def test_expected_outputs_and_bad_data(gt: Cli, build: Path, tmp_path: Path) -> None:
    image = npz.load(TEST)["image"][:5]
    y = runtime.load(build).run({"image": image})["logits"]
    npz.save({"image": image, "logits": y + np.float32(0.5)}, tmp_path / "d.npz")
    assert gt("report", build, "-o", tmp_path / "r", "--no-times", "--data",
              tmp_path / "d.npz").code == 0
    rows = {r["measure"]: r for r in told(tmp_path / "r")["accuracy"]}
    assert abs(rows["largest difference"]["value"] - 0.5) < 1e-5
    assert rows["relative error"]["examples"] == 5
    npz.save({"picture": image}, tmp_path / "e.npz")
    done = gt("report", build, "-o", tmp_path / "s", "--data", tmp_path / "e.npz")
    assert done.code == 3 and "GT0641" in done.err and not (tmp_path / "s").exists()
    npz.save({"image": image, "logits": y[:, :3]}, tmp_path / "f.npz")
    assert "GT0641" in gt("report", build, "-o", tmp_path / "s", "--data", tmp_path / "f.npz").err


@pytest.mark.parametrize("form", [["--static"], ["--weights", "embed"], ["--precision", "strict"]])
def test_other_builds(form: list[str], gt: Cli, tmp_path: Path) -> None:
    assert gt("build", DIGITS, "-o", tmp_path / "b", *form).code == 0
    assert gt("report", tmp_path / "b", "-o", tmp_path / "r", "--seconds", "0").code == 0
    found = told(tmp_path / "r")
    assert (found["times"] is None) == ("--static" in form)
    assert found["reproduce"][0].endswith(" ".join(form))
    assert ("finite" in {r["kind"] for r in found["inexact"]}) == ("strict" not in form)


def test_a_training_build_and_entry_points(gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                           ) -> None:
    monkeypatch.chdir(tmp_path)
    assert gt("import", f"{SAMPLES}/mlp.py:model", "-o", "m.graph.json", "--no-check").code == 0
    assert gt("grad", "m.graph.json", "--loss", "mse", "--optimizer", "sgd", "-o",
              "t.graph.json").code == 0
    assert gt("build", "t.graph.json", "-o", "t").code == 0
    assert gt("report", "t", "-o", "r").code == 0 and told(Path("r"))["kind"] == "training"
    assert gt("build", "a=m.graph.json", "b=m.graph.json", "-o", "e").code == 0
    assert gt("report", "e", "-o", "s", "--seconds", "0", "--entry", "b").code == 0
    assert [f["name"] for f in told(Path("s"))["functions"]] == ["a", "b"]


def test_the_licence_that_a_model_states(gt: Cli, tmp_path: Path) -> None:
    import onnx
    model = onnx.load(DIGITS)
    model.metadata_props.add(key="License", value="CC-BY-4.0")
    onnx.save(model, tmp_path / "m.onnx")
    assert gt("build", tmp_path / "m.onnx", "-o", tmp_path / "b", "--keep").code == 0
    assert gt("report", tmp_path / "b", "-o", tmp_path / "r", "--no-times").code == 0
    assert told(tmp_path / "r")["licences"][0]["licence"] == "CC-BY-4.0"


def test_the_code_is_that_of_other_readers(build: Path) -> None:
    text = subprocess.run(["size", "-A", build / "libdigits.so"], capture_output=True, text=True)
    found = read_elf(build / "libdigits.so")
    assert found is not None and read_elf(build / "build.json") is None
    named = re.findall(r"^\.(?:init|plt|plt\.\w+|text|fini)\s+(\d+)", text.stdout, re.M)
    assert not named or found.code == sum(map(int, named))


def test_a_cut_library_is_no_traceback(build: Path, tmp_path: Path) -> None:
    data = (build / "libdigits.so").read_bytes()
    for n in (6, 64, len(data) // 2, len(data) - 1):
        (tmp_path / "x.so").write_bytes(data[:n])
        read_elf(tmp_path / "x.so")
