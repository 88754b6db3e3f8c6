"""The command line: a typer app, one file a group of verbs. Computes nothing itself."""

from __future__ import annotations

import sys


def main() -> None:
    """The `graphtool` program; leaves with one of the documented exit codes."""
    from graphtool.cli.faults import run
    sys.exit(run(sys.argv[1:]))
