"""Options of the whole test suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true",
                     help="rewrite the golden files and schemas from what the code gives")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked slow run when asked for: `pytest -m slow`."""
    if not config.option.markexpr:
        slow = [i for i in items if i.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [i for i in items if i not in set(slow)]
