"""Two builds side by side: kernels by what they compute, how both were compiled, what runs cost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphtool.cli.faults import run
from graphtool.io.manifest import read_manifest
from graphtool.io.manifest_rows import Manifest, StepRow
from graphtool.report.build_diff import build_diff, calls, lines, summary
from tests.cli.conftest import DIGITS, Cli
from tests.cli.test_view import needs_view


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One by default and one in strict numerics, which has other products."""
    folder = tmp_path_factory.mktemp("builds")
    a, b = folder / "a", folder / "b"
    for path, more in ((a, ()), (b, ("--precision", "strict"))):
        assert run(["build", DIGITS, "-o", str(path), "--march", "x86-64-v3", "--name", "net",
                    *more]) == 0
    return a, b


def both(builds: tuple[Path, Path]) -> tuple[Manifest, Manifest]:
    return read_manifest(builds[0]), read_manifest(builds[1])


@pytest.mark.compiled
def test_a_build_equals_itself(builds: tuple[Path, Path], gt: Cli) -> None:
    a, _ = builds
    result = gt("diff", a, a)
    assert (result.code, result.out) == (0, "equal: a and a have the same 10 kernels\n")


@pytest.mark.compiled
def test_kernels_plans_bytes_and_flags(builds: tuple[Path, Path], gt: Cli) -> None:
    result = gt("diff", *builds)
    assert result.code == 1 and " calls in all\n" in result.out
    assert re.search(r"\nprecision +default → strict\n", result.out)
    assert re.search(r"\nflags +none → .*-ffp-contract=off", result.out)
    assert re.search(r"block2.relu +k\d+.*winograd\{.* → conv_\w+", result.out)
    found = json.loads(gt("diff", *builds, "--json").out)
    assert not found["equal"] and len(found["rows"]) >= 10
    assert {d["name"] for d in found["totals"]} <= {"kernels", "FLOPs", "bytes moved",
                                                    "weight bytes", "arena bytes"}
    assert "| precision | default → strict |" in gt("diff", *builds, "--format", "markdown").out


def step(kernel: str, label: str, **more: Any) -> StepRow:
    return StepRow(kernel, label, "", 8, True, bytes=4, **more)


def with_steps(m: Manifest, *steps: StepRow) -> Manifest:
    from dataclasses import replace
    return replace(m, steps=list(steps))


def test_calls_of_equal_labels_belong_together(builds: tuple[Path, Path]) -> None:
    m, _ = both(builds)
    found = build_diff(with_steps(m, step("k0", "a"), step("k1", "b"), step("k2", "c")),
                       with_steps(m, step("k0", "a + b"), step("k1", "d"), step("k2", "c")))
    sides = [(r.what, r.before and r.before.kernel, r.after and r.after.kernel)
             for r in found.rows]
    assert sides == [("a + b", "k0", "k0"), ("b", "k1", None), ("d", None, "k1"),
                     ("c", "k2", "k2")]
    assert summary(found, "x", "y") == "1 added, 1 removed; 4 calls in all"
    assert calls(found).rows == [("b", "k1 → none", "", "4 B", ""),
                                 ("d", "none → k1", "", "4 B", "")]


def test_other_weights_are_a_difference(builds: tuple[Path, Path]) -> None:
    from dataclasses import replace
    m, _ = both(builds)
    other = replace(m, files={**m.files, m.weights: "0" * 64})
    found = build_diff(m, other)
    assert not found.equal and lines(found, "a", "b")[-1].startswith("weights  sha256 ")


def test_other_weights_in_the_library_are_a_difference(builds: tuple[Path, Path]) -> None:
    from dataclasses import replace
    m = replace(both(builds)[0], weights_mode="embed")
    name = m.weights.replace(".safetensors", "_weights0.c")
    a, b = (replace(m, files={**m.files, name: digit * 64}) for digit in "01")
    found = build_diff(a, b)
    assert not found.equal and lines(found, "a", "b")[-1].startswith("weights  sha256 ")
    assert build_diff(a, a).equal


def test_measured_times_are_those_of_the_profiles(builds: tuple[Path, Path]) -> None:
    m, _ = both(builds)
    found = build_diff(m, m, ({"k0": 1.0}, {"k0": 3.0}))
    assert found.measured and calls(found, whole=True).rows[0][-1] == "1 → 3"
    assert calls(found).rows == []


@needs_view
def test_the_page_shows_both(builds: tuple[Path, Path], gt: Cli, tmp_path: Path) -> None:
    assert gt("view", *builds, "-o", tmp_path / "x.html").code == 0
    text = (tmp_path / "x.html").read_text()
    assert '"name":"difference of builds"' in text and "Times of kernels, as the builds" in text


def test_a_build_beside_something_else(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "build.json").write_text("{}")
    for pair in ((tmp_path / "b", DIGITS), (DIGITS, tmp_path / "b"), (tmp_path / "b", "absent")):
        result = gt("diff", *pair)
        other = next(x for x in pair if x != tmp_path / "b")
        assert result.code == 2 and f"GT3098]: a build is compared with a build, and {other}" in (
            result.err)
