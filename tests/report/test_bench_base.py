"""Bases of times: what is slower for certain fails, what noise may explain does not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from graphtool.errors import GraphtoolError
from graphtool.report import bench as base
from graphtool.report.bench import Compared, bench_outcome, compared


def times(middle: float, noise: float, seed: int, rounds: int = 300) -> list[float]:
    draw = random.Random(seed)
    return [middle * (1 + noise * draw.random()) for _ in range(rounds)]


def against(path: Path, now: list[float], allowed: float = 0.05) -> Compared:
    held = base.to_compare(path, base.fresh("net", 2, {"batch": 1}))
    return base.against_base(held, path, now, allowed)


def save(path: Path, now: list[float]) -> int:
    return base.save(base.to_save(path, base.fresh("net", 2, {"batch": 1})), path, now)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    for seed, middle in enumerate((1.0, 1.03, 0.99)):  # three runs, which differ by 4 %
        assert save(tmp_path / "b.json", times(middle, 0.02, seed)) == seed + 1
    return tmp_path / "b.json"


@pytest.mark.parametrize(("middle", "noise", "verdict", "failed"), [
    (0.97, 0.02, "same", False), (1.3, 0.02, "slower", True), (0.8, 0.02, "faster", False),
    (1.12, 0.02, "slower", True),
    (1.065, 0.02, "unclear", False),  # within what the runs of the base differ, and ours may too
    (1.03, 0.02, "unclear", False)])
def test_verdicts(kept: Path, middle: float, noise: float, verdict: str, failed: bool) -> None:
    found = against(kept, times(middle, noise, 9))
    assert (found.verdict, found.failed) == (verdict, failed), found


def test_runs_that_are_not_known_to_agree(tmp_path: Path) -> None:
    """With one run, 5 % are granted to the moment; with three alike, nothing."""
    for runs, verdict in ((1, "unclear"), (2, "unclear"), (3, "slower")):
        save(tmp_path / "b.json", times(1.0, 0.002, runs))
        assert against(tmp_path / "b.json", times(1.04, 0.002, 9), 0.01).verdict == verdict


def test_what_is_allowed_does_not_fail(kept: Path) -> None:
    now = times(1.2, 0.02, 9)
    assert against(kept, now).failed and not against(kept, now, 0.5).failed
    assert against(kept, now, 0.5).verdict == "slower"


def test_one_noisy_run_gives_no_verdict(tmp_path: Path) -> None:
    noisy = [1.0, 3.0] * 10
    save(tmp_path / "b.json", noisy)
    found = against(tmp_path / "b.json", [1.1, 3.2] * 10)
    assert (found.verdict, found.failed) == ("unclear", False)
    assert "vary too much" in base.compared_lines(found)[0]


def test_few_runs_and_other_processors_give_none(kept: Path, monkeypatch: pytest.MonkeyPatch
                                                 ) -> None:
    few = against(kept, [9.0] * 5)
    assert (few.verdict, few.low, few.failed) == ("unclear", None, False)
    monkeypatch.setattr(base, "processor", lambda: "another")
    other = against(kept, [9.0] * 50)
    assert (other.verdict, other.failed) == ("unclear", False) and "processor" in other.note
    with pytest.raises(GraphtoolError, match="processor"):
        save(kept, [1.0] * 9)


@pytest.mark.parametrize(("name", "threads", "sizes"), [
    ("net", 1, {"batch": 1}), ("net", 2, {"batch": 8}), ("net", 2, {})])
def test_times_of_something_else(kept: Path, name: str, threads: int, sizes: dict[str, int]
                                 ) -> None:
    with pytest.raises(GraphtoolError, match="other times") as error:
        base.to_compare(kept, base.fresh(name, threads, sizes))
    assert error.value.code == "GT3135" and "{" not in error.value.message


@pytest.mark.parametrize("damage", [
    lambda d: d | {"format": "graphtool/graph"}, lambda d: d | {"runs": []},
    lambda d: d | {"runs": [[0.0]]}, lambda d: d | {"runs": [[1.0, -1.0]]},
    lambda d: d | {"runs": [[1e308] * 9]}, lambda d: d | {"runs": [[]]},
    lambda d: d | {"threads": "two"}, lambda d: []])
def test_a_damaged_base_is_refused(kept: Path, damage: object) -> None:
    kept.write_text(json.dumps(damage(json.loads(kept.read_text()))))  # type: ignore[operator]
    with pytest.raises(GraphtoolError) as error:
        against(kept, [1.0] * 9)
    assert error.value.code == "GT3139"


def test_a_newer_base_names_the_release(kept: Path) -> None:
    kept.write_text(kept.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(GraphtoolError) as error:
        against(kept, [1.0] * 9)
    assert error.value.code == "GT0334"


@pytest.mark.parametrize(("text", "found"), [("5%", 0.05), ("2.5 %", 0.025), ("10", 0.1)])
def test_shares(text: str, found: float) -> None:
    assert base.share(text) == pytest.approx(found)


@pytest.mark.parametrize("text", ["", "-5%", "five", "5%%"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(GraphtoolError, match="not a share"):
        base.share(text)


def test_two_builds_in_turns() -> None:
    before, after = times(1.0, 0.02, 1), times(1.2, 0.02, 2)
    b = compared(2, {"graphtool": after, "old": before})
    assert b.ratio is not None
    found = base.in_turns("old", before, after, b.ratio, b.low, b.high, 0.05)
    assert (found.verdict, found.failed) == ("slower", True)
    assert found.low is not None and 1.15 < found.low <= found.ratio
    b.ratio, b.compared = None, found
    outcome = bench_outcome(b, "build")
    assert [f.level for f in outcome.findings] == ["ok", "ok", "error"]
    assert outcome.summary.startswith("slower than old: more than the 5 % that are allowed")
