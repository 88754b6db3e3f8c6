"""Whole models as people write them: loss and every gradient beside torch's, in float64.

`python -m tests.lab wholes` has the table, and trains a third of them as compiled C.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.models.whole import every
from tests.lab import wholes

NAMES = list(every())
TRAINED = [n for n in NAMES if every()[n].steps]


@pytest.mark.part(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [
    n if i % 2 else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(NAMES)])
def test_loss_and_gradients(name: str) -> None:
    row = wholes.gradients(name)
    assert wholes.verdict(row) == "agrees", row


@pytest.mark.part(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [
    n if i % 8 == 4 else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(TRAINED)])
def test_compiled_steps(name: str) -> None:
    number = NAMES.index(name)
    optimizer = wholes.OPTIMIZERS[number % len(wholes.OPTIMIZERS)]
    own, want = (wholes.curve(name, optimizer, d)[0] for d in ("float32", "float64"))
    found, _ = wholes.trained(name, optimizer)
    assert wholes.apart(found, want) <= max(wholes.BOUND, 2 * wholes.apart(own, want))


def test_there_are_enough() -> None:
    assert len(NAMES) >= 60 and len(TRAINED) >= len(NAMES) // 3
