"""The first case of each op by StableHLO's own interpreter, where jaxlib is installed."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool.errors import UnsupportedError
from graphtool.exporters.stablehlo import stablehlo_of
from tests.cases import CASES, Case, arrays
from tests.closeness import assert_close
from tests.ops.test_cases import module_of, results

pytest.importorskip("jaxlib")
from benchmarks.hlo_peers import Guarded, parsed

FIRST = list({c.op.name: c for c in reversed(CASES)}.values())
interpreter = Guarded("interpreter")


@pytest.mark.parametrize("case", FIRST, ids=repr)
def test_the_interpreter_agrees(case: Case) -> None:
    try:
        text = stablehlo_of(module_of(case))
    except UnsupportedError:
        pytest.skip("refused by name")
    parsed(text)
    xs = arrays(case)
    given = [x for x in xs if isinstance(x, np.ndarray)]
    for a, b in zip(interpreter(text, given), results(case, xs), strict=True):
        assert_close(a, b, given)
