"""ONNX's own node cases through the importer and the evaluator, with no data files.

`python tests/importers/onnx/node_suite.py [NAME…]` prints a table by outcome and operator. A case
whose sizes are computed from its inputs is tried again with the integer inputs pinned.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from graphtool import interp
from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.importers.onnx import import_model
from graphtool.ir.verify import verify_module

PASS, PINNED, FAIL, REFUSED, ERROR = "passed", "passed pinned", "failed", "refused", "error"
SIZES = 4096


def cases() -> list[Any]:
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases
    return [c for c in collect_testcases(None) if c.model is not None]


def outcome(case: Any) -> tuple[str, str]:
    """What became of the case, and a word why."""
    case = replace(case, data_sets=[(_arrays(i), _arrays(o)) for i, o in case.data_sets])
    inputs, _ = case.data_sets[0]
    names = [v.name for v in case.model.graph.input]
    given = dict(zip(names, inputs, strict=False))
    fixed = {k: v for k, v in given.items() if isinstance(v, list) or (
        isinstance(v, np.ndarray) and v.size <= SIZES and v.dtype.kind in "iub")}
    floats = {k: v for k, v in given.items() if isinstance(v, np.ndarray) and v.size <= 16}
    status, why = _try(case, names, {})
    for pins in (fixed, fixed | floats):
        if status == REFUSED and pins:
            again, reason = _try(case, names, pins)
            if again == PASS:
                return PINNED, ""
            if again != REFUSED:
                return again, reason
    return status, why


def _arrays(values: Any) -> list[Any]:
    return [numpy_helper.to_array(v) if isinstance(v, TensorProto) else
            np.asarray(v) if isinstance(v, np.generic) else v for v in values]


def _try(case: Any, names: list[str], fixed: dict[str, Any]) -> tuple[str, str]:
    try:
        module = import_model(case.model, fixed=fixed)
        verify_module(module)
        for inputs, outputs in case.data_sets:
            feed = {k: v for k, v in zip(names, inputs, strict=False) if not isinstance(v, list)}
            got = list(interp.run(module, feed).values())
            wanted = _flat(outputs)
            assert len(got) == len(wanted), f"{len(got)} outputs for {len(wanted)}"
            for value, want in zip(got, wanted, strict=True):
                _same(value, want, case.rtol, case.atol)
    except UnsupportedError as error:
        return REFUSED, "; ".join(f"{i.name}: {i.reason}" for i in error.items)
    except AssertionError as error:
        return FAIL, str(error)
    except GraphtoolError as error:
        return ERROR, str(error).replace("\n", " | ")
    return PASS, ""


def _flat(values: Any) -> list[Any]:
    return [x for v in values for x in (_flat(v) if isinstance(v, list) else
                                        [] if v is None else [v])]


def _same(got: Any, want: Any, rtol: float, atol: float) -> None:
    want = np.asarray(want)
    assert got.dtype == want.dtype, f"{got.dtype} for {want.dtype}"
    assert got.shape == want.shape, f"{got.shape} for {want.shape}"
    if want.dtype.kind not in "biu":
        got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def main(only: list[str]) -> None:
    counts: Counter[str] = Counter()
    for case in cases():
        if only and not any(o in case.name for o in only):
            continue
        status, why = outcome(case)
        counts[status] += 1
        if status not in (PASS, PINNED):
            print(f"{status:8} {case.name}: {' '.join(why.split())[:200]}")
    print(dict(counts), sum(counts.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
