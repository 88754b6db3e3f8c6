"""What the facets of every op promise: by its record, and by its values on the table of cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.dtypes import of_numpy
from graphtool.ir.facets import Align, Axes, Lowering, Movement, Trait, Weighing, with_leading
from graphtool.ir.graph import TensorType
from graphtool.ir.op import OPS, complete_attrs, evaluate
from graphtool.ir.promises import broken
from tests.cases import CASES, Case, arrays, types


def having(trait: Trait) -> Any:
    return pytest.mark.parametrize("case", [c for c in CASES if trait in c.op.traits], ids=repr)


def results(case: Case, xs: list[Any]) -> list[Any]:
    out = evaluate(case.op, xs, complete_attrs(case.op, case.attrs))
    return list(out) if isinstance(out, tuple) else [out]


@pytest.mark.parametrize("op", OPS.values(), ids=repr)
def test_the_record_keeps_its_promises(op: Any) -> None:
    assert broken(op) == []


@pytest.mark.parametrize(("change", "fault"), [
    ({"doc": ""}, "has no doc: say what it computes"),
    ({"eval": None, "decompose": None}, "has neither eval nor decompose"),
    ({"lower": None, "lowering": Lowering.PULL}, "lowers by a pull, and has no `lower`"),
    ({"axes": Axes(Align.TRAILING, names=("axis",))}, "has no attribute 'axis'"),
    ({"axes": Axes()}, "is elementwise, but its axes do not broadcast"),
    ({"traits": Trait.ELEMENTWISE | Trait.SIZE}, "has no attribute 'size'"),
    ({"traits": Trait.COMPOSITE}, "is a composite without decomposition"),
    ({"scaled_by": (7,)}, "is scaled by an operand that it does not have"),
    ({"weighing": Weighing("table", only={"depth": 1})}, "has no attribute 'depth'"),
    ({"movement": Movement.KEEPS}, "only moves elements, but has a cost in operations"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_a_broken_promise_is_seen(change: dict[str, Any], fault: str) -> None:
    assert fault in broken(replace(OPS["add"], **change))


@having(Trait.ELEMENTWISE)
def test_elementwise_ops_see_one_place_only(case: Case) -> None:
    xs = arrays(case)
    (y,) = results(case, xs)
    shape = np.broadcast_shapes(*(x.shape for x in xs if isinstance(x, np.ndarray)))
    assert y.shape == shape
    (back,) = results(case, [np.flip(x) if isinstance(x, np.ndarray) else x for x in xs])
    y, back = (a.astype(float) if a.dtype.kind in "fV" else a for a in (y, np.flip(back)))
    np.testing.assert_allclose(back, y, rtol=1e-6)  # numpy's vector code rounds otherwise


@having(Trait.COMMUTATIVE)
def test_commutative_ops_may_be_swapped(case: Case) -> None:
    xs = arrays(case)
    np.testing.assert_array_equal(results(case, xs)[0], results(case, xs[::-1])[0])


@having(Trait.PICKS)
def test_what_picks_gives_elements_of_its_operands(case: Case) -> None:
    xs = arrays(case)
    (y,) = results(case, xs)
    found = [np.broadcast_to(np.asarray(x, y.dtype), y.shape) for x in xs if x is not None]
    assert np.any([(y == x) | (y != y) for x in found], axis=0).all()


def _short(x: Any) -> Any:
    """x with the digits of float16, if it is an array of floats."""
    floats = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    return x.astype(np.float16).astype(x.dtype) if floats else x


@having(Trait.EXACT)
def test_exact_ops_need_no_more_digits_than_their_operands(case: Case) -> None:
    for y in results(case, [_short(x) for x in arrays(case)]):
        np.testing.assert_array_equal(y, _short(y))


@having(Trait.ADDS)
def test_sums_double_with_their_operands(case: Case) -> None:
    xs = [x.astype(np.int64) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" else x
          for x in arrays(case)]
    (y,), (z,) = results(case, xs), results(case, [x * 2 for x in xs])
    np.testing.assert_array_equal(z, y * 2)


@having(Trait.REDUCTION)
def test_reductions_keep_their_axes(case: Case) -> None:
    x = arrays(case)[0]
    axes = case.attrs.get("axes", (case.attrs.get("axis"),))
    kept = [1 if a in {b % x.ndim for b in axes} else d for a, d in enumerate(x.shape)] if (
        x.ndim) else []
    assert list(results(case, arrays(case))[0].shape) == kept


@having(Trait.LARGEST)
def test_the_largest_stays_the_largest_under_an_increasing_function(case: Case) -> None:
    xs = arrays(case)
    (y,), (z,) = results(case, xs), results(case, [2 * xs[0] + 1, *xs[1:]])
    np.testing.assert_array_equal(z, 2 * y + 1)


@pytest.mark.parametrize("case", [c for c in CASES if c.op.scaled_by], ids=repr)
def test_operands_that_scale_the_result_do(case: Case) -> None:
    xs = arrays(case)
    first = case.op.scaled_by[0]
    if len(xs) <= first or xs[first] is None:
        return
    more = [2 * x if i in case.op.scaled_by and x is not None else x for i, x in enumerate(xs)]
    (y,), (z,) = results(case, xs), results(case, more)
    np.testing.assert_array_equal(z, 2 * y)


@having(Trait.RANDOM)
def test_random_ops_give_the_next_state(case: Case) -> None:
    state = arrays(case)[-1]
    after = results(case, arrays(case))[-1]
    assert after.dtype == state.dtype and after.shape == state.shape
    assert not np.array_equal(after, state)


MOVING = [c for c in CASES if c.op.movement]


@pytest.mark.parametrize("case", MOVING, ids=repr)
def test_movement_computes_nothing(case: Case) -> None:
    """Every element of the result is one of the operands, or the number that fills."""
    xs = [x for x in arrays(case) if isinstance(x, np.ndarray)]
    (y,) = results(case, arrays(case))
    known = {repr(v) for x in xs for v in x.ravel()}
    if case.op.movement & Movement.FILLS:
        known |= {repr(v) for v in y.ravel() if v == case.attrs.get("value", 0)}
    assert {repr(v) for v in y.ravel()} <= known
    if case.op.movement & Movement.SEVERAL:
        assert y.ndim == xs[0].ndim + (Movement.STACKS in case.op.movement)
    if case.op.movement & Movement.ONCE:
        assert y.size <= xs[0].size
    if case.op.movement & (Movement.KEEPS | Movement.PERMUTES | Movement.REVERSES):
        assert y.size == xs[0].size


AXES = [c for c in CASES if c.op.axes and c.op.axes.align is Align.SAME and any(
    isinstance(x, TensorType) and x.rank for x in types(c))]


@pytest.mark.parametrize("case", AXES, ids=repr)
def test_an_axis_in_front_is_left_alone(case: Case) -> None:
    """Two examples at once, by the attributes that the axes facet gives, are the two apart."""
    assert case.op.axes is not None
    both = [arrays(case, seed) for seed in (0, 1)]
    at = [i for i, x in enumerate(both[0]) if isinstance(x, np.ndarray)]
    wide = [np.stack([a, b]) if i in at else a for i, (a, b) in enumerate(zip(*both, strict=True))]
    attrs = with_leading(case.op.axes, complete_attrs(case.op, case.attrs), both[0][at[0]].ndim, 2)
    got = evaluate(case.op, wide, attrs)
    for k, y in enumerate(got if isinstance(got, tuple) else (got,)):
        want = np.stack([results(case, xs)[k] for xs in both])
        assert of_numpy(y.dtype) is of_numpy(want.dtype)
        np.testing.assert_allclose(y.astype(float), want.astype(float), rtol=1e-5, atol=1e-6)
