"""Operators of two operands over pairs of element types: some drawn by a seed, beside torch."""

from __future__ import annotations

import pytest
import torch

from tests.lab import mixed
from tests.lab.mixed_calls import Call, drawn

pytestmark = pytest.mark.filterwarnings("ignore")


def test_some_pairs_are_torchs() -> None:
    found = mixed.judged(drawn(0, 60))
    assert [f"{call}: {why}" for call, why in found.wrong] == []
    assert found.right > 30
    assert all("torch.export cannot capture" in why for _, why in found.refused)


def test_a_wrong_type_or_number_would_be_seen() -> None:
    call = Call("tensor f32 tensor i32", "x + y", torch.ones(3), torch.ones(3, dtype=torch.int32))
    want = call.run(call.x, call.y).numpy()
    assert mixed.apart(call, want, want) == ""
    assert mixed.apart(call, want.astype("f8"), want) == "float64[3] for float32[3]"
    assert mixed.apart(call, want * [1, -1, 1], want).startswith("float64")
    assert "of 1.0 and 1" in mixed.apart(call, want + want, want)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_more_pairs_are_torchs(seed: int) -> None:
    found = mixed.judged(drawn(seed, 1000))
    assert [f"{call}: {why}" for call, why in found.wrong] == []
