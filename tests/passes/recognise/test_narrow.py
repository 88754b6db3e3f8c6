"""16-bit numbers that are rounded once are not the same bits: the rules say so."""

from __future__ import annotations

import pytest

from graphtool import ops as o
from graphtool.assume import allowed
from graphtool.dtypes import DType, float16, float32
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.passes.recognise import RULES
from graphtool.rewrite.engine import apply_rules
from graphtool.rewrite.journal import Journal


@pytest.mark.parametrize(("dtype", "numerics", "found"), [
    (float32, "exact", True), (float16, "exact", False), (float16, "reassociated", True)])
def test_silu(dtype: DType, numerics: str, found: bool) -> None:
    graph = trace(lambda x: x * o.sigmoid(x), [TensorType(dtype, (3,))], ["x"])
    journal = Journal()
    apply_rules(graph, RULES, allowed(numerics), journal)  # type: ignore[arg-type]
    assert [f.rule for f in journal] == ["silu"] * found
    assert [f.needs for f in journal] == [("reassociated",) * (dtype is float16)] * found
