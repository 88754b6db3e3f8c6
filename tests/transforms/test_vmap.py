"""vmap of every case of the table of ops is the stack of the examples' results."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.dtypes import of_numpy
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.ir.verify import verify
from graphtool.transforms.vmap import vmap
from tests.cases import CASES, Case, arrays, each
from tests.evaluating import run

EXAMPLES = 3


def examples(case: Case) -> list[list[Any]]:
    return [arrays(case, seed) for seed in range(EXAMPLES)]


def mapped(case: Case) -> bool:
    """Whether the operands of other seeds give results of the same shape."""
    return any(isinstance(x, np.ndarray) for x in arrays(case))


@each(filter(mapped, CASES), None, 0, 1)
def test_every_case(case: Case, alone: int | None) -> None:
    """With all operands mapped, and with one of the first two the same for all."""
    rows = examples(case)
    at = [i for i, x in enumerate(rows[0]) if isinstance(x, np.ndarray)]
    if alone is not None and not alone < len(at) > 1:
        return
    fixed = None if alone is None else at[alone]
    ts = [TensorType(of_numpy(rows[0][i].dtype), rows[0][i].shape) for i in at]

    def fn(*args: Any) -> Any:
        given = dict(zip(at, args, strict=True))
        return case.op(*[given.get(i, x) for i, x in enumerate(rows[0])], **case.attrs)
    graph = trace(fn, ts)
    wide = vmap(graph, [None if i == fixed else 0 for i in at], EXAMPLES)
    verify(wide)
    stacked = [rows[0][i] if i == fixed else np.stack([r[i] for r in rows]) for i in at]
    alone_results = [run(graph, [(rows[0] if i == fixed else r)[i] for i in at]) for r in rows]
    for k, got in enumerate(run(wide, stacked)):
        want = np.stack([r[k] for r in alone_results])
        assert got.dtype == want.dtype and got.shape == want.shape
        tol = 1e-5 if want.dtype.itemsize >= 4 else 2e-2
        wanted, found = (x.astype(np.float64) if x.dtype.kind in "fV" else x for x in (want, got))
        np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol)


