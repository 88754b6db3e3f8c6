"""The table of all ops as StableHLO, and read back: the same graph, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import UnsupportedError
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.importers.stablehlo import import_text
from graphtool.ir.op import OPS
from graphtool.report.diff import diff
from tests.cases import CASES, Case, arrays, each
from tests.evaluated import EVALUATED
from tests.ops.test_cases import module_of, results

REFUSED = {  # why: `reason_against` in the registry
    "all_gather", "all_reduce", "broadcast_first", "collective_begin", "collective_end",
    "process_rank", "reduce_scatter", "pack_conv_pairs", "pack_int", "pack_pairs"}


def text_of(case: Case) -> str:
    """The case's text; skips what is refused, if it is known."""
    try:
        return stablehlo_of(module_of(case))
    except UnsupportedError as error:
        assert error.code == "GT1050" and error.exit_code == 4
        assert case.op.name in REFUSED
        pytest.skip("refused by name")


@each(CASES)
def test_what_is_read_back_is_the_same(case: Case) -> None:
    again, xs = import_text(text_of(case)), arrays(case)
    assert diff(module_of(case), again).equal
    given = [x for x in xs if isinstance(x, np.ndarray)]
    names = [v.hint for v in again.graph.inputs]
    got = interp.run(again, dict(zip(names, given, strict=True))).values()
    for a, b in zip(got, results(case, xs), strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", EVALUATED, ids=repr)
def test_strings_and_pictures_are_refused(case: Case) -> None:
    with pytest.raises(UnsupportedError, match=r"GT1050.*StableHLO cannot express 1 node"):
        stablehlo_of(module_of(case))


def test_the_exceptions_are_cases() -> None:
    assert set(OPS) >= REFUSED
