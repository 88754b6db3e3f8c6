"""Options of torch's functions in combination: some drawn by a seed, all of them when asked for."""

from __future__ import annotations

import pytest

pytest.importorskip("expecttest", reason="torch's table of operators needs it")

import torch

from tests.lab import options
from tests.lab.options import DTYPES, ROWS, SIZES, Found
from tests.lab.options.rows import Row, T

pytestmark = pytest.mark.filterwarnings("ignore")
# torch's own capture refuses these: a check of their arguments reads data
UNCAPTURED = ("torch.cov", "torch.corrcoef", "F.gaussian_nll_loss", "F.affine_grid")


def faults(found: Found) -> list[str]:
    """What is wrong, or refused and not known to be."""
    unknown = [(c, why) for c, why in found.refusals if c.row.function not in UNCAPTURED]
    return [f"{case}: {why}" for case, why in (*found.wrong, *unknown)]


def test_some_combinations_are_torchs() -> None:
    found = options.judged([c for c in options.drawn(0, 20, 2)
                            if c.row.function not in UNCAPTURED])
    assert faults(found) == []
    assert found.right > 25


def test_a_wrong_number_would_be_seen() -> None:
    """A function that gives the importer something else than it gives to torch."""
    row = Row("lambda x, by: x * (by + torch.compiler.is_exporting())", (T("3,4"),), {"by": [2.0]})
    found = options.judged(options.cases(row, 1.0, torch.float64))
    assert len(found.wrong) == 1


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.function[:40])
def test_every_combination_is_torchs(row: Row) -> None:
    found = [options.judged(options.cases(row, s, d)) for s in SIZES for d in DTYPES]
    assert [fault for f in found for fault in faults(f)] == []
    assert any(f.right or f.refusals for f in found)
