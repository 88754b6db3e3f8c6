"""Evidence for a build of the safety profile: tests that find a fault, coverage, the trace."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes
from graphtool import ops as o
from graphtool.cli.faults import run
from graphtool.emit.deviations import DEVIATIONS, deviations_text
from graphtool.errors import CompilerError, UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import board
from graphtool.report import evidence as shown
from graphtool.report.unit_tests import made_up
from tests.native.cuda.models import weights

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
DOCS = Path(__file__).parents[2] / "docs/how-to/build-for-a-safety-review.md"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiler, no boards."""
    monkeypatch.setattr(shown, "COMPILERS", ("gcc",))
    monkeypatch.setattr(shown, "LEVELS", ("-O1",))
    monkeypatch.setattr(board, "EMULATED", {})


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with a padded convolution and a softmax."""
    def body(x: Any, q: Any) -> tuple[Any, ...]:
        y = o.relu(o.conv(x, weights(x, 4, 3, 3, 3), padding=((1, 1), (1, 1))))
        return o.softmax(o.reduce_sum(y, axes=(2, 3)), axis=1), o.cast(q, dtype=dtypes.int32) * 3
    types = [TensorType(dtypes.float32, (1, 3, 7, 7)), TensorType(dtypes.int8, (5,))]
    m = Module(trace(body, types, ["x", "q"]), ("y", "z"), {})
    path = tmp_path_factory.mktemp("evidence") / "b"
    return graphtool.build(m, path, profile="safety", name="net", keep=True)


def test_each_kernel_is_tested_and_covered(build: Path, tmp_path: Path) -> None:
    assert run(["report", str(build), "--no-times", "--evidence", "-o", str(tmp_path / "r")]) == 0
    with (tmp_path / "r" / "trace.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if r["kernel"]]
    assert rows and all(r["test"] == f"net_test_{r['kernel']}" for r in rows)
    found = shown.evidence(build, "net")
    assert found.holds and {t.exact for t in found.tests} == {True, False}
    assert [r.differences for r in found.replications] == [0]
    for c in found.coverage:
        assert c.lines_run == 100.0, c
    text = (tmp_path / "r" / "evidence.md").read_text()
    assert "## Deviations" in text
    assert found.proofs.holds and len(found.proofs.kernels) == len(found.tests)
    assert f"This is proved of {len(found.tests)} of {len(found.tests)} kernels." in text


@pytest.mark.parametrize(("right", "wrong"), [
    ("acc0 += ", "acc0 -= "), pytest.param(" < 7)", " < 6)", marks=pytest.mark.slow),
    pytest.param(", 3)", ", 2)", marks=pytest.mark.slow)])
def test_a_fault_is_found(build: Path, tmp_path: Path, right: str, wrong: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(build, broken)
    path = broken / "net_kernels0.c"
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    assert not shown.evidence(broken, "net").holds


def test_a_board_that_is_too_small_is_no_fault(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> str:
        raise CompilerError("GT2121", "failed", where="region `flash' overflowed by 9 bytes")
    monkeypatch.setattr(board, "EMULATED", {"cortex-m4": "mps2-an386"})
    monkeypatch.setattr(board, "missing", lambda _: [])
    monkeypatch.setattr(board, "run", run)
    (tmp_path / "net_test_main.c").touch()
    assert [r.differences for r in shown._boards(tmp_path, "net")] == [None]


def test_only_a_kept_build_of_the_profile_has_evidence(tmp_path: Path) -> None:
    m = Module(trace(lambda x: (o.neg(x),), [TensorType(dtypes.float32, (3,))], ["x"]), ("y",), {})
    path = graphtool.build(m, tmp_path / "b", name="net", keep=True)
    with pytest.raises(UsageError) as error:
        shown.evidence(path, "net")
    assert error.value.code == "GT2134"


def test_inputs_are_spread_over_their_type() -> None:
    x, q = made_up(4096, 7, dtypes.float32), made_up(4096, 7, dtypes.int8)
    assert -2 <= x.min() < -1.99 and 1.99 < x.max() < 2 and abs(x.mean()) < 0.1
    assert q.min() == -128 and q.max() == 127 and set(np.unique(made_up(64, 1, dtypes.bool_))) == {
        False, True}


def misra(folder: Path, *files: str) -> set[str]:
    """The rules of MISRA C:2012 of which cppcheck's addon finds a case."""
    done = subprocess.run(
        ["cppcheck", "--std=c99", "-DFLT_EVAL_METHOD=0", "-DNAN=0.0f", "-DINFINITY=1e30f",
         "--enable=style", "--addon=misra", *files],
        cwd=folder, capture_output=True, text=True, check=True, timeout=300)
    assert all(f"Checking {file} ..." in done.stdout for file in files)
    return set(re.findall(r"\[misra-c2012-([\d.]+)\]", done.stderr))


@pytest.mark.skipif(shutil.which("cppcheck") is None, reason="cppcheck is not installed")
def test_misra_finds_no_rule_outside_of_the_list(build: Path, tmp_path: Path) -> None:
    listed = {d.rule for d in DEVIATIONS}
    assert {"2.5", "12.1"} <= misra(build, "net.c", "net_kernels0.c", "net_load.c") <= listed
    broken = shutil.copytree(build, tmp_path / "broken")
    path = broken / "net_kernels0.c"
    path.write_text(path.read_text().replace("float acc0 = 0.0f;", "float acc0 = (float)010;", 1))
    assert misra(broken, path.name) - listed == {"7.1"}  # an octal number


def test_the_deviations_are_in_the_build_and_in_the_documentation(build: Path) -> None:
    assert deviations_text() in (build / "deviations.md").read_text()
    assert deviations_text() in DOCS.read_text()
    assert len({d.rule for d in DEVIATIONS}) == len(DEVIATIONS)
