"""The site builds without a warning: no dead link, no page outside the table of contents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.sessions import ROOT


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "trees",
         ROOT / "docs", tmp_path / "site"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
