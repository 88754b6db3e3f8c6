"""The command line in this process."""

from tests.cli.conftest import gt

__all__ = ["gt"]
