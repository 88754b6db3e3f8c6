"""Dataclasses out of JSON values: what is read, and how an error names the place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from graphtool.io.rows import RowError, decode


@dataclass
class Inner:
    n: int
    pairs: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Outer:
    name: str
    rate: float = 1.0
    size: int | str | None = None
    inner: Inner | None = None
    table: dict[str, float | Inner] = field(default_factory=dict)


def test_what_is_read() -> None:
    raw = {"name": "a", "rate": 2, "size": "n + 1", "inner": {"n": 3, "pairs": [[1, 2]]},
           "table": {"x": 1, "y": {"n": 4}}}
    assert decode(raw, Outer) == Outer("a", 2.0, "n + 1", Inner(3, [(1, 2)]),
                                       {"x": 1.0, "y": Inner(4)})
    assert type(decode(raw, Outer).rate) is float


@pytest.mark.parametrize(("change", "message"), [
    ({"name": 3}, "expected str at $.name"),
    ({"size": True}, "expected int or str or null at $.size"),
    ({"rate": "1"}, "expected float at $.rate"),
    ({"inner": {"n": True}}, "expected int at $.inner.n"),
    ({"inner": {}}, "missing field 'n' at $.inner"),
    ({"inner": []}, "expected null or object at $.inner"),
    ({"inner": {"n": 1, "pairs": [[1, 2], [3]]}}, "expected list of 2 at $.inner.pairs[1]"),
    ({"inner": {"n": 1, "pairs": [[1, "2"]]}}, "expected int at $.inner.pairs[0][1]"),
    ({"inner": {"n": 1, "pairs": 2}}, "expected list at $.inner.pairs"),
    ({"table": {"x": {"n": None}}}, "expected int at $.table.x.n"),
    ({"table": []}, "expected object at $.table"),
    ({"more": 1}, "unknown field 'more' at $")])
def test_where_it_does_not_fit(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RowError) as found:
        decode({"name": "a"} | change, Outer)
    assert str(found.value) == message


def test_a_field_without_a_default() -> None:
    with pytest.raises(RowError, match=r"missing field 'name' at \$"):
        decode({}, Outer)
