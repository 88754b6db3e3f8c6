"""Texts name no file of the package that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = [*(p for folder in ("graphtool", "docs", "benchmarks") for end in ("py", "md", "h", "c")
           for p in sorted((ROOT / folder).rglob(f"*.{end}"))), *ROOT.glob("*.md")]
NAMED = re.compile(r"\b(?<![\w./-])graphtool/[\w/]+\.(?:py|pyi|c|h|md|jsonl)\b")


def dead(text: str) -> set[str]:
    return {name for name in NAMED.findall(text)
            if "NAME" not in name and not (ROOT / name).exists()}  # NAME: the reader's own


def test_finds_a_file_that_does_not_exist():
    assert dead("see graphtool/ir/op.py and graphtool/ir/opp.py.") == {"graphtool/ir/opp.py"}


def test_named_files_exist():
    assert not {str(p.relative_to(ROOT)): names for p in TEXTS if (names := dead(p.read_text()))}
