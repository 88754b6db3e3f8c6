"""The count of tests in docs/testing.md: what it counts, and that every folder has a kind."""

from __future__ import annotations

from collections import Counter

import pytest

from docs.generators.counts import _SECTION, KINDS, PAGE, counted, section
from tests.docs.sessions import ROOT

IDS = ["tests/ops/test_a.py::test_b[x::y/z]", "tests/ops/deep/test_a.py::test_c",
       "tests/test_api.py::test_d", "", "3 tests collected in 1 s"]


def test_what_is_counted() -> None:
    assert counted(IDS) == Counter({"ops": 2, "test_api.py": 1})
    text = section(counted(IDS), 1234, "2026-01-02")
    assert text.startswith("Counted on 2026-01-02 by") and "the 1,234 slow ones" in text
    assert "| all | 3 |" in text and "| passes (`passes`) | 0 |" in text


def test_each_folder_has_one_kind() -> None:
    places = [place for _, found in KINDS for place in found]
    tests = ROOT / "tests"
    folders = {p.parent.relative_to(tests).parts[0] for p in tests.rglob("*/test_*.py")}
    assert sorted(places) == sorted({*folders, *(p.name for p in tests.glob("test_*.py"))})
    with pytest.raises(KeyError, match="elsewhere"):
        counted(["tests/elsewhere/test_a.py::test_b"])


def test_the_page_has_the_section() -> None:
    assert len(_SECTION.findall(PAGE.read_text())) == 1
