"""torch's own samples: a few ops by default, the committed exceptions among the slow tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from tests.lab.opinfo_samples import DTYPES  # noqa: E402
from tests.lab.opinfo_worker import check  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
COMMITTED = Path(__file__).parents[1] / "benchmarks" / "results" / "opinfo_exceptions.json"
DIFFERS = "its results differ"
EXCEPTIONS: dict[str, list[str]] = json.loads(COMMITTED.read_text())


@pytest.mark.parametrize(("op", "dtype"), [
    ("add", torch.bool), ("gather", torch.float32), ("sum", torch.int64),
    ("nn.functional.avg_pool2d", torch.int64), ("index_put", torch.float64),
    ("var", torch.float32)])
def test_the_evaluator_is_torch(op: str, dtype: torch.dtype) -> None:
    (row,) = check(op, [dtype], 6, None)
    assert row["eval_ok"] == row["samples"], row


def test_compiled_code_is_torch(tmp_path: Path) -> None:
    (row,) = check("clamp", [torch.float32], 3, tmp_path)
    assert row["c_ok"] == row["samples"], row


@pytest.mark.slow
@pytest.mark.parametrize("op", EXCEPTIONS)
def test_an_exception_is_still_one(op: str, tmp_path: Path) -> None:
    """What is no longer refused or wrong must leave the list."""
    differs = DIFFERS in EXCEPTIONS[op]
    rows = check(op, DTYPES, 6, tmp_path if differs else None)
    found = {reason for r in rows for reason in r["reasons"]}
    found |= {DIFFERS for r in rows if r.get("eval_wrong") or r.get("c_wrong")}
    assert found, f"{op} passes now"
