"""ONNX's own node cases through the importer and the evaluator, with no data files.

`python -m tests.importers.onnx.node_suite [--mode c] [NAME…]` prints what does not pass and a count
by outcome, in the evaluator or in compiled C. A case whose sizes are computed from its inputs is
tried again with the integer inputs pinned.
"""

from __future__ import annotations

import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
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
Attempt = Callable[[dict[str, Any]], tuple[str, str]]


def cases() -> list[Any]:
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases
    return [c for c in collect_testcases(None) if c.model is not None]


def outcome(case: Any) -> tuple[str, str]:
    """What became of the case in the evaluator, and a word why."""
    case = decoded(case)
    return first_accepted(case, lambda fixed: _try(case, fixed))


def decoded(case: Any) -> Any:
    """The case with arrays for protobuf tensors."""
    return replace(case, data_sets=[(_arrays(i), _arrays(o)) for i, o in case.data_sets])


def first_accepted(case: Any, attempt: Attempt) -> tuple[str, str]:
    """The outcome of the first attempt that is not refused: no input pinned, then some."""
    status, why = attempt({})
    for pins in _pins(case):
        if status == REFUSED and pins:
            again, reason = attempt(pins)
            if again == PASS:
                return PINNED, ""
            if again != REFUSED:
                return again, reason
    return status, why


def names_of(case: Any) -> list[str]:
    return [v.name for v in case.model.graph.input]


def _pins(case: Any) -> list[dict[str, Any]]:
    """Sequences and integers pinned to the case's own values; then short float inputs as well."""
    given = dict(zip(names_of(case), case.data_sets[0][0], strict=False))
    fixed = {k: v for k, v in given.items() if isinstance(v, list) or (
        isinstance(v, np.ndarray) and v.size <= SIZES and v.dtype.kind in "iub")}
    floats = {k: v for k, v in given.items() if isinstance(v, np.ndarray) and v.size <= 16}
    return [fixed, fixed | floats]


def _arrays(values: Any) -> list[Any]:
    return [numpy_helper.to_array(v) if isinstance(v, TensorProto) else
            np.asarray(v) if isinstance(v, np.generic) else v for v in values]


def _try(case: Any, fixed: dict[str, Any]) -> tuple[str, str]:
    try:
        module = import_model(case.model, fixed=fixed)
        verify_module(module)
        for inputs, outputs in case.data_sets:
            feed = feed_of(case, inputs)
            same(list(interp.run(module, feed).values()), outputs, case)
    except UnsupportedError as error:
        return REFUSED, reasons(error)
    except AssertionError as error:
        return FAIL, str(error)
    except GraphtoolError as error:
        return ERROR, str(error).replace("\n", " | ")
    return PASS, ""


def feed_of(case: Any, inputs: list[Any]) -> dict[str, Any]:
    return {k: v for k, v in zip(names_of(case), inputs, strict=False) if not isinstance(v, list)}


def reasons(error: UnsupportedError) -> str:
    return "; ".join(f"{i.name}: {i.reason}" for i in error.items) or str(error)


def same(got: list[Any], outputs: list[Any], case: Any) -> None:
    """Assert that the arrays are the case's outputs."""
    wanted = _flat(outputs)
    assert len(got) == len(wanted), f"{len(got)} outputs for {len(wanted)}"
    for value, want in zip(got, wanted, strict=True):
        _same(value, want, case.rtol, case.atol)


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


def evaluated(chosen: list[Any]) -> dict[str, tuple[str, str]]:
    return {case.name: outcome(case) for case in chosen}


def main(only: list[str], mode: str) -> None:
    chosen = [c for c in cases() if not only or any(o in c.name for o in only)]
    if mode == "c":
        from tests.importers.onnx.compiled_suite import compiled
        results = compiled(chosen)
    else:
        results = evaluated(chosen)
    for name, (status, why) in results.items():
        if status not in (PASS, PINNED):
            print(f"{status:8} {name}: {' '.join(why.split())[:200]}")
    print(dict(Counter(status for status, _ in results.values())), len(results))


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only cases with one of these in their names")
    parser.add_argument("--mode", choices=("eval", "c"), default="eval")
    args = parser.parse_args()
    main(args.names, args.mode)
