"""Package and benchmarks are clean under ruff and mypy --strict; every module says what it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", [["ruff", "check", "graphtool", "benchmarks", "docs", "tests"],
                                     ["mypy", "--strict", "graphtool", "benchmarks", "docs"]],
                         ids=lambda c: str(c[0]))
def test_clean(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_every_module_says_what_it_is() -> None:
    for path in sorted((ROOT / "graphtool").rglob("*.py")):
        first = path.read_text().lstrip()
        assert first.startswith('"""') and not first.startswith('""""""'), path
