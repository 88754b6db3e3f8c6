"""Maps of files in the documentation name each file of their folder once."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.sessions import ROOT


def test_the_map_of_select_has_its_files() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ", Path(ROOT / "docs/explanation/select.md").read_text(),
                      re.M)
    assert sorted(rows) == sorted(p.stem for p in (ROOT / "graphtool/passes/select").glob("*.py"))
