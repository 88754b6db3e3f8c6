"""Every command of the documentation runs, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.sessions import ROOT, check, fits

PAGES = sorted(p.relative_to(ROOT) for p in (ROOT / "docs").rglob("*.md")
               if "reference" not in p.parts)


@pytest.mark.parametrize("page", [Path("README.md"), *PAGES], ids=str)
def test_the_outputs_are_the_real_ones(
        page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if page.stem == "import-from-jax":
        pytest.importorskip("jax")  # an extra that the tests do without
    check(ROOT / page, tmp_path, request.config.getoption("--update-golden"))


@pytest.mark.parametrize(("expected", "real", "same"), [
    ("a … c\n", "a b c\n", True),
    ("a … c\n", "a b d\n", False),
    ("a\n…\nc\n", "a\nb\nb\nc\n", True),
    ("a\n…\nc\n", "a\nb\n", False),
    ("a.c\n", "abc\n", False),
    ("", "a\n", False)])
def test_an_elision_stands_for_anything(expected: str, real: str, same: bool) -> None:
    assert fits(expected, real) == same


def test_a_wrong_output_is_found_and_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one; echo 2.5 ms\ntwo\n```\n")
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
    with pytest.raises(AssertionError, match="differ"):
        check(page, tmp_path / "a", update=False)
    check(page, tmp_path / "b", update=True)
    assert page.read_text() == "```console\n$ echo one; echo 2.5 ms\none\n… ms\n```\n"
    check(page, tmp_path / "c", update=False)
