"""Every version of every operator since opset 7: handled, with all inputs, attributes, defaults."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import onnx
import pytest

import graphtool.importers.onnx  # noqa: F401  (fills the registry)
from graphtool.importers.limits import Limits
from graphtool.importers.onnx.driver.reader import attribute
from graphtool.importers.onnx.driver.registry import Handler, find

OLDEST = 7
# our own handler is newer than opset 16's spelling; both are accepted
SPELLINGS = {("GridSample", "mode")}


def versions() -> Iterator[tuple[Any, int]]:
    """Each schema with an opset in which it is in force."""
    table: dict[str, list[Any]] = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "" and not s.deprecated:
            table.setdefault(s.name, []).append(s)
    for rows in table.values():
        rows.sort(key=lambda s: s.since_version)
        for s, following in zip(rows, [*rows[1:], None], strict=True):
            last = following.since_version - 1 if following else onnx.defs.onnx_opset_version()
            if last >= OLDEST:
                yield s, last


CASES = [pytest.param(s, v, id=f"{s.name}-{s.since_version}") for s, v in versions()]


def default(handler: Handler, name: str) -> Any:
    return inspect.signature(handler.fn).parameters[name].default


@pytest.mark.parametrize("schema, opset", CASES)
def test_handlers_know_all_of_the_schema(schema: Any, opset: int) -> None:
    handler = find("", schema.name, opset)
    if handler is None:
        body = schema.has_function or schema.has_context_dependent_function
        assert body
        return
    assert set(schema.attributes) <= set(handler.attrs)
    assert handler.least <= schema.min_input and handler.most >= len(schema.inputs)
    for a in schema.attributes.values():
        ours = default(handler, a.name)
        if a.default_value.type and ours is not None and (schema.name, a.name) not in SPELLINGS:
            assert ours == pytest.approx(attribute(a.default_value, None, Limits()), rel=1e-6) \
                if isinstance(ours, float) else ours == attribute(a.default_value, None, Limits())
