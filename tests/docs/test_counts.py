"""The count of tests in docs/testing.md: what it counts, and that every folder has a kind."""

from __future__ import annotations

from collections import Counter

import pytest

from docs.generators.counts import _SECTION, KINDS, PAGE, counted, section
from tests.docs.sessions import ROOT

FILES = ["tests/ops/test_a.py: 1", "tests/ops/deep/test_a.py: 12", "tests/test_api.py: 3", "",
         "16 tests collected in 1 s"]


def test_what_is_counted() -> None:
    assert counted(FILES) == Counter({"ops": 13, "test_api.py": 3})
    text = section(counted(FILES), 1234, "2026-01-02")
    assert text.startswith("Counted on 2026-01-02 by") and "the 1,234 slow ones" in text
    assert "| all | 16 |" in text and "| passes (`passes`) | 0 |" in text


def test_each_folder_has_one_kind() -> None:
    places = [place for _, found in KINDS for place in found]
    tests = ROOT / "tests"
    folders = {p.parent.relative_to(tests).parts[0] for p in tests.rglob("*/test_*.py")}
    assert sorted(places) == sorted({*folders, *(p.name for p in tests.glob("test_*.py"))})
    with pytest.raises(KeyError, match="elsewhere"):
        counted(["tests/elsewhere/test_a.py: 1"])
    with pytest.raises(ValueError, match="no tests"):
        counted(["no tests collected"])


def test_the_page_has_the_section() -> None:
    assert len(_SECTION.findall(PAGE.read_text())) == 1
