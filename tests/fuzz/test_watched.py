"""Sanitizers over compiled graphs: they are silent, and see faults that are planted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import helper

from graphtool.emit.c import emit
from graphtool.importers.onnx import import_model
from graphtool.loops.program import Program
from graphtool.target import named
from tests.lab.fuzz import watched as module
from tests.lab.fuzz.compiled import in_c
from tests.lab.fuzz.growing import info, model_of
from tests.lab.fuzz.sanitized import work
from tests.lab.fuzz.variants import Variant
from tests.lab.fuzz.watched import Ready, kind_of, watched

V3 = Variant("x86-64-v3", "x86-64-v3", "default")


def product(n: int) -> Ready:
    """A chain of products and sums whose steps several threads share."""
    f32 = np.dtype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "x"], ["y"]), helper.make_node("Softmax", ["y"], ["s"]),
         helper.make_node("MatMul", ["s", "y"], ["z"])], "chain",
        [info("x", f32, [n, n])], [info("z", f32, [n, n])])
    x = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    return {"x": x}, in_c(import_model(model_of(graph)), V3, "f0")


def runs(sanitizer: str, tmp_path: Path) -> None:
    """Skip where the sanitizer does not work on this machine."""
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    for call in (["gcc", f"-fsanitize={sanitizer}", "a.c"], ["./a.out"]):
        if subprocess.run(call, cwd=tmp_path, capture_output=True).returncode:
            pytest.skip(f"-fsanitize={sanitizer} does not work here")


@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_nothing_is_found(sanitizers: str, tmp_path: Path) -> None:
    runs(sanitizers, tmp_path)
    assert watched([product(96)], tmp_path, named("x86-64-v3"), sanitizers) == {}


def test_an_overrun_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs("address,undefined", tmp_path)

    def broken(program: Program) -> dict[str, str]:
        return {name: text.replace("arena_at(s, ", "arena_at(s, 65536 + ")
                for name, text in emit(program).items()}
    monkeypatch.setattr(module, "emit", broken)
    said = watched([product(96)], tmp_path, named("x86-64-v3"), "address,undefined")
    assert "AddressSanitizer" in said["f0"]


def test_a_missing_wait_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs("thread", tmp_path)

    def broken(program: Program) -> dict[str, str]:
        files = emit(program)
        wait = re.compile(r"(void gt_barrier\(gt_worker \*w\)\n\{\n)")
        assert any(wait.search(text) for text in files.values())
        return {name: wait.sub(r"\1    return;\n", text) for name, text in files.items()}
    monkeypatch.setattr(module, "emit", broken)
    said = watched([product(96)], tmp_path, named("x86-64-v3"), "thread")
    assert said["f0"].startswith("ThreadSanitizer: data")


def test_a_span(tmp_path: Path) -> None:
    runs("address,undefined", tmp_path)
    out = work((0, 2), lambda seed: None, "address,undefined")
    assert out.compiled.total() == 2 and out.findings == []


def test_the_kind_of_a_fault() -> None:
    said = "x.c:3: runtime error: index 12 out of bounds for type 'int [4]'\n    #0 0x1 in gt_row x"
    assert kind_of(said) == "index N out of bounds for type 'int [N]' gt_row"
    assert kind_of("SUMMARY: AddressSanitizer: heap-buffer-overflow a.c:3 in f") == (
        "AddressSanitizer: heap-buffer-overflow")
