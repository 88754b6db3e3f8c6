"""Symbols are bound in types, attributes and the table; bounds are checked."""

from __future__ import annotations

import pytest

from graphtool.passes import run
from tests.passes.pass_samples import SAMPLES, assert_same, text


@pytest.mark.parametrize("sample", ["convnet", "block"])
def test_binds_everywhere(sample: str) -> None:
    new = run(SAMPLES[sample], "specialize{B=3}")
    assert not new.symbols
    assert "B" not in {c for v in new.graph.inputs for c in str(v.type)}
    assert '"symbols": {}' in text(new)
    assert_same(SAMPLES[sample], new)  # random inputs take B = 3
