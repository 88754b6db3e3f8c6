"""The reference pages are what the generators make (`--update-golden` rewrites them)."""

from __future__ import annotations

import pytest

from docs.generators import PAGES
from tests.docs.sessions import ROOT

FOLDER = ROOT / "docs" / "reference"


@pytest.mark.parametrize("name", [
    pytest.param(p, marks=[pytest.mark.torch] if p == "api" else ()) for p in PAGES])
def test_pages_are_up_to_date(name: str, request: pytest.FixtureRequest) -> None:
    path, text = FOLDER / f"{name}.md", PAGES[name]()
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text, "--update-golden rewrites it"


def test_no_page_is_left_over() -> None:
    assert {p.stem for p in FOLDER.glob("*.md")} == {*PAGES, "index"}
