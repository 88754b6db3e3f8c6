"""Every error code in the source is explained, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphtool.explain import CODES

ROOT = Path(__file__).parents[2] / "graphtool"
USED = sorted({code for path in ROOT.rglob("*.[ph]*")
               if path.suffix in (".py", ".h") and path.parent.name != "explain"
               for code in re.findall(r"\bGT\d{4}\b", path.read_text())})


@pytest.mark.parametrize("code", USED)
def test_every_code_is_explained(code: str) -> None:
    assert code in CODES


def test_no_code_is_explained_in_vain() -> None:
    assert sorted(CODES) == USED


def test_explanations_are_sentences() -> None:
    for code, entry in CODES.items():
        assert entry.title and not entry.title.endswith("."), code
        assert entry.text.endswith("."), code
