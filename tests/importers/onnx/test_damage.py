"""No invalid model is accepted: each kind of damage is refused with a code and a place."""

from __future__ import annotations

import pytest

from graphtool.errors import GraphtoolError
from graphtool.importers.onnx import import_model
from graphtool.importers.onnx.driver import reader
from tests.importers.onnx import (  # noqa: F401  (they fill the table)
    damage_demands,
    damage_parts,
    damage_values,
)
from tests.importers.onnx.damage import ROWS


@pytest.mark.parametrize("name", ROWS)
def test_damage_is_refused(name: str) -> None:
    codes, make = ROWS[name]
    proto = make()
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    with pytest.raises(GraphtoolError) as caught:
        import_model(reader.parse_model(data, "m.onnx"))
    assert caught.value.code.startswith(tuple(codes.split())), caught.value
    assert caught.value.where or getattr(caught.value, "items", ())


def test_the_table_is_long() -> None:
    assert len(ROWS) >= 280
