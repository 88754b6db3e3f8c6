"""What a test needs is read from its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import kinds

SOURCE = """
import subprocess
from graphtool.compile.as_is import build as made

def helper():
    return subprocess.run(["true"], check=True)

def built(tmp_path):
    return made(None, tmp_path)

def test_process():
    helper()

def test_compiled(built):
    pass

def test_late():
    import torch

def test_verb(gt):
    assert gt("build", "m.onnx").code == 0

def test_quick(gt):
    assert gt("show", "m.onnx").code == 0
"""


@pytest.mark.parametrize(("name", "needed"), [
    ("process", {"process"}), ("compiled", {"compiled"}), ("late", {"torch"}),
    ("verb", {"compiled"}), ("quick", set())])
def test_what_a_function_needs(name: str, needed: set[str], tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SOURCE)
    assert kinds.needs(tmp_path / "test_it.py", f"test_{name}") == needed


def test_a_file_that_imports_torch_needs_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(f"from tests.importers.torch import agreement\n{SOURCE}")
    assert kinds.needs(tmp_path / "test_it.py", "test_quick") == {"torch"}


@pytest.mark.parametrize(("path", "name", "kind"), [
    ("tests/lower/test_packed.py", "test_every_read", "compiled"),
    ("tests/cli/test_process.py", "test_help_imports_the_command_line_alone", "process"),
    ("tests/integrations/test_torch_backend.py", "test_the_parts_of_a_training_step", "torch")])
def test_of_this_suite(path: str, name: str, kind: str) -> None:
    assert kind in kinds.needs(kinds.ROOT / path, name)
