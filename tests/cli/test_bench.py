"""bench --save and --compare: of a build with itself, with a slower one, with something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`small` and `large`: the same inputs, very different times."""
    from graphtool import dtypes
    from graphtool import ops as o
    from graphtool.compile.as_is import build
    from graphtool.ir.graph import Module, TensorType
    from graphtool.ir.trace import trace
    folder = tmp_path_factory.mktemp("built")
    for name, steps in (("small", 2), ("large", 40)):
        def body(x: object, steps: int = steps) -> object:
            for _ in range(steps):
                x = o.sin(o.matmul(x, x))
            return x
        graph = trace(body, [TensorType(dtypes.float32, (64, 64))])
        build(Module(graph, ("y",)), folder / name, name="net")
    return folder


def test_slower_than_a_saved_base_fails(built: Path, gt: Cli, tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    for runs in ("1 run", "2 runs"):
        result = gt("bench", built / "small", "--seconds", "0.1", "--save", base)
        assert result.code == 0 and result.err.endswith(f"{base}: {runs}\n")
    same = gt("bench", built / "small", "--seconds", "0.1", "--compare", base, "--fail-slower",
              "300%")
    assert same.code == 0, same.out
    result = gt("bench", built / "large", "--seconds", "0.1", "--compare", base)
    assert result.code == 1 and f"slower than {base}: more than the 5 %" in result.out
    found = json.loads(gt("bench", built / "large", "--seconds", "0.1", "--compare", base,
                          "--json").out)
    assert found["compared"]["failed"] and found["compared"]["verdict"] == "slower"
    shown = gt("bench", built / "large", "--seconds", "0.1", "--compare", base, "--format",
               "github")
    assert shown.code == 1 and "::error file=" in shown.out


def test_a_base_is_read_before_the_timing(built: Path, gt: Cli, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    base, small = tmp_path / "base.json", built / "small"
    assert gt("bench", small, "--seconds", "0", "--save", base).code == 0
    base.write_text(base.read_text().replace('"net"', '"other"'))
    named = gt("bench", small, "--seconds", "0", "--compare", base)
    assert f"{base} has the times of other, this build is net" in named.err
    monkeypatch.setattr("graphtool.report.bench.race", lambda *_: pytest.fail("it was timed"))
    assert "GT3135" in gt("bench", small, "--save", base).err
    base.write_text(base.read_text()[:80])
    for option in ("--compare", "--save"):
        assert gt("bench", small, option, base).code == 3


def test_two_builds_run_in_turns(built: Path, gt: Cli) -> None:
    result = gt("bench", built / "large", "--seconds", "0.1", "--compare", built / "small")
    assert result.code == 1 and f"slower than {built / 'small'}" in result.out
    result = gt("bench", built / "small", "--seconds", "0.1", "--compare", built / "large")
    assert result.code == 0 and "faster than" in result.out


def test_what_cannot_be_compared(built: Path, gt: Cli, tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    small = built / "small"
    assert gt("bench", small, "--seconds", "0", "--save", base, "--threads", "1").code == 0
    result = gt("bench", small, "--seconds", "0", "--compare", base, "--threads", "2")
    assert result.code == 2 and "threads 1, here 2" in result.err
    assert "GT3136" in gt("bench", small, "--fail-slower", "much").err
    assert "GT3137" in gt("bench", small, "--vs", "onnxruntime", "--compare", base).err
    assert gt("bench", small, "--compare", small / "build.json").code == 3
    assert gt("bench", small, "--compare", SAMPLES).code == 3
