"""Cases through the importer and the evaluator, and what becomes of them.

A case that is refused because sizes are computed from its inputs is tried again with the integer
inputs pinned to the case's own values; that it passed only so is said.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import interp
from graphtool.dtypes import as_strings
from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.importers.onnx import import_model
from graphtool.integrations.onnx_backend import flattened, parts_of, random_state
from graphtool.ir.graph import Module
from graphtool.ir.verify import verify_module
from tests.lab.suite.cases import Case, cases
from tests.lab.suite.limits import WORKERS, limited

PASS, PINNED, FAIL, REFUSED, ERROR = "passed", "passed pinned", "failed", "refused", "error"
SIZES = 4096
Outcome = tuple[str, str]
Attempt = Callable[[dict[str, Any]], Outcome]


def outcome(case: Case) -> Outcome:
    """What became of the case in the evaluator, and a word why."""
    return first_accepted(case, lambda fixed: _try(case, fixed))


def first_accepted(case: Case, attempt: Attempt) -> Outcome:
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


def _pins(case: Case) -> list[dict[str, Any]]:
    """Sequences and integers pinned to the case's own values; then short float inputs as well."""
    given = dict(zip(case.inputs, case.data_sets[0][0], strict=True))
    fixed = {k: v for k, v in given.items() if isinstance(v, list) or (
        isinstance(v, np.ndarray) and v.size <= SIZES and v.dtype.kind in "ib")}
    floats = {k: v for k, v in given.items()
              if isinstance(v, np.ndarray) and v.size <= 16 and v.dtype.kind != "O"}
    return [fixed, fixed | floats]


def _try(case: Case, fixed: dict[str, Any]) -> Outcome:
    try:
        with limited():
            module = import_model(case.model, fixed=fixed, made_of=made_of(case, fixed))
            verify_module(module)
            for inputs, outputs in case.data_sets:
                got = interp.run(module, feed_of(case, inputs, module))
                same(own(list(got.values()), module), outputs, case)
    except UnsupportedError as error:
        return REFUSED, reasons(error)
    except AssertionError as error:
        return FAIL, str(error)
    except (GraphtoolError, TimeoutError) as error:
        return ERROR, str(error).replace("\n", " | ")
    except Exception as error:  # a bug: the suite is there to show it, and to go on
        return ERROR, f"{type(error).__name__}: {error}"
    return PASS, ""


def feed_of(case: Case, inputs: list[Any], module: Module) -> dict[str, Any]:
    """The arrays by the names of the module's inputs; those of sequences one by one."""
    wanted = {v.hint for v in module.graph.inputs}
    return random_state(module) | {k: x for name, v in zip(case.inputs, inputs, strict=True)
            for k, x in flattened(name, v) if k in wanted}


def made_of(case: Case, fixed: dict[str, Any]) -> dict[str, Any]:
    """How many tensors of which types the sequences and optionals among the inputs are."""
    kinds = {v.name: v.type.WhichOneof("value") for v in case.model.graph.input}
    given = zip(case.inputs, case.data_sets[0][0], strict=True)
    return {k: parts_of(v) for k, v in given if kinds[k] != "tensor_type" and k not in fixed}


def reasons(error: UnsupportedError) -> str:
    return "; ".join(f"{i.name}: {i.reason}" for i in error.items) or str(error)


def own(got: list[Any], module: Module) -> list[Any]:
    """The outputs without the state of the random operators, which stands last."""
    return got[:len(got) - len(module.donations)]


def same(got: list[Any], outputs: list[Any], case: Case) -> None:
    """Assert that the arrays are the case's outputs."""
    wanted = _flat(outputs)
    assert len(got) == len(wanted), f"{len(got)} outputs for {len(wanted)}"
    for value, want in zip(got, wanted, strict=True):
        _same(value, want, case.rtol, case.atol)


def _flat(values: list[Any]) -> list[Any]:
    return [x for v in values for x in (_flat(v) if isinstance(v, list) else
                                        [] if v is None else [v])]


def _same(got: Any, want: Any, rtol: float, atol: float) -> None:
    """As onnx's own runner compares: bfloat16 within two units in the last place."""
    want = np.asarray(want)
    assert got.shape == want.shape, f"{got.shape} for {want.shape}"
    if want.dtype.kind in "OUST":
        assert np.array_equal(got, as_strings(want)), "other strings"
        return
    assert got.dtype == want.dtype, f"{got.dtype} for {want.dtype}"
    if want.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)
    if want.dtype.kind not in "biu":
        got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def evaluated(chosen: list[Case], workers: int = WORKERS) -> dict[str, Outcome]:
    """Name → outcome of the chosen cases, in their order."""
    cases()  # before the workers are forked
    if workers == 1:
        return {case.name: outcome(case) for case in chosen}
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        found = pool.map(_by_name, [c.name for c in chosen], chunksize=16)
        return dict(zip([c.name for c in chosen], found, strict=True))


def _by_name(name: str) -> Outcome:
    return outcome(next(c for c in cases() if c.name == name))
