"""The workflow that publishes packages: its steps, run as a runner runs them, on a model with names
that no language takes."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.docs.test_ci_example import ROOT, sh
from tests.package.conftest import hostile_model

PAGE = (ROOT / "docs" / "how-to" / "publish-from-ci.md").read_text()
NEEDS = {"wheel": True, "npm": bool(shutil.which("npm") and find_spec("ziglang"))}


@pytest.mark.parametrize("job", sorted(NEEDS))
def test_the_workflow_makes_what_users_can_install(job: str, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    if not NEEDS[job]:
        pytest.skip("npm or zig is not installed")
    block = re.search(r"<!-- file: publish.yml -->\n```yaml\n(.*?)^```$", PAGE, re.S | re.M)
    assert block
    for tool, module in {"graphtool": "graphtool", "pip": "pip"}.items():
        (tmp_path / tool).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (tmp_path / tool).chmod(0o755)
    hostile_model(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("GITHUB_REF_NAME", "v1.2")
    said = {}
    for step in yaml.safe_load(block[1])["jobs"][job]["steps"]:
        if "run" in step and step["name"] not in ("Install graphtool", "Publish"):
            one = step["run"].replace("--march fat", "--march x86-64-v3")  # compiled once
            said[step["name"]] = done = sh(one)
            assert done.returncode == 0, done.stdout
    (made,) = (tmp_path / "dist").iterdir()
    assert made.name.startswith("mymodel-1.2")
    assert {"wheel": "1.2 ['Outputs', 'run', 'run_into']", "npm": "[ "}[job] in said[
        "Try it as its users will"].stdout
