"""A command line in this process that forgets its plug-ins after each call."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphtool import plugins
from graphtool.cli.faults import run
from tests.cli.conftest import Cli, Result

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "plugins"


@pytest.fixture
def gt(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`gt("show", path, "--plugin", file)` as tests/cli has it."""
    def call(*args: object) -> Result:
        capsys.readouterr()
        code = run([str(a) for a in args])
        out, err = capsys.readouterr()
        for name in list(plugins.LOADED):
            plugins.unload(name)
        assert "Traceback" not in out + err
        return Result(code, out, err)
    return call


def example(name: str) -> str:
    """The option that loads one of the documentation's plug-ins."""
    return f"--plugin={EXAMPLES / name}.py"
