"""The rules that find forms: when they fire, when they decline, and that a form means the same."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool.dtypes import bool_, float32, float64, int32, uint8
from graphtool.loops.forms import FORMS, KernelFacts, in_forms
from graphtool.loops.forms import choose as choose_rule
from graphtool.loops.forms import limited as limited_rule
from graphtool.loops.forms import over as over_rule
from graphtool.loops.forms import steps as steps_rule
from graphtool.loops.ir import Apply, Const, Expr, Load, Name

X, Y, LOADED = Name("x", float32), Name("y", float32), Name("c", bool_)
SUM = Apply("add", (X, Y), float32)
C = Apply("lt", (X, Y), bool_)
RULES = (choose_rule, limited_rule, over_rule, steps_rule)


def number(value: float) -> Const:
    return Const(value, float32)


def quantised(zero: int, added: int | None = None) -> Expr:
    """float32((int)uint8(round(x) + zero) - zero)."""
    moved = Apply("round", (X,), float32)
    if zero or added:
        moved = Apply("add", (moved, number(float(zero if added is None else added))), float32)
    wide = Apply("cast", (Apply("cast", (moved,), uint8),), int32)
    return Apply("cast", (Apply("sub", (wide, Const(zero, int32)), int32),), float32)


@pytest.mark.parametrize(("e", "form"), [
    (Apply("select", (C, SUM, Y), float32), "choose"),
    (Apply("select", (Load("m", 0, bool_), X, Y), float32), "choose"),
    (Apply("select", (C, Name("a", float64), Apply("neg", (Name("a", float64),), float64)),
           float64), "choose"),
    (Apply("select", (C, X, Y), float32), None),
    (Apply("select", (LOADED, X, Y), float32), "choose"),
    (Apply("select", (Apply("or", (C, Apply("gt", (SUM, Y), bool_)), bool_), X, Y), float32),
     "choose"),
    (Apply("select", (C, Name("i", int32), Apply("neg", (Name("i", int32),), int32)), int32), None),
    (Apply("div", (X, number(3.0)), float32), "over"),
    (Apply("div", (X, number(4.0)), float32), None),
    (Apply("div", (X, Y), float32), None),
    (quantised(128), "steps"), (quantised(0), "steps"),
    (quantised(128, 127), None), (quantised(300), None),
])
def test_where_a_rule_fires(e: Expr, form: str | None) -> None:
    found = in_forms(e, RULES)
    assert found is e if form is None else isinstance(found, Apply) and found.fn == form


def test_a_mask_beside_makes_every_choice_one_of_bits() -> None:
    plain = Apply("select", (C, X, Y), float32)
    assert in_forms(plain, RULES, KernelFacts(masks=True)) == Apply("choose", (C, X, Y), float32)


def test_forms_inside_others() -> None:
    inner = Apply("div", (X, number(3.0)), float32)
    found = in_forms(Apply("select", (C, inner, Y), float32), RULES)
    assert isinstance(found, Apply) and found.fn == "choose"
    assert isinstance(found.args[1], Apply) and found.args[1].fn == "over"


def test_a_limit_of_an_exponential_is_a_choice() -> None:
    below = Apply("min", (X, number(0.0)), float32)
    chosen = Apply("choose", (Apply("ge", (X, number(0.0)), bool_), number(0.0), X), float32)
    assert in_forms(Apply("expm1", (below,), float32), RULES) == Apply("expm1", (chosen,), float32)
    half = Apply("exp", (Apply("mul", (below, number(0.5)), float32),), float32)
    assert in_forms(half, RULES) == Apply(
        "exp", (Apply("mul", (chosen, number(0.5)), float32),), float32)
    for other in (Apply("tanh", (below,), float32), below,
                  Apply("exp", (Apply("min", (X, Y), float32),), float32)):
        assert in_forms(other, RULES) is other


def test_limits_of_a_factor_are_choices() -> None:
    limits = Apply("min", (Apply("max", (SUM, number(0.0)), float32), number(1.0)), float32)
    above = Apply("choose", (Apply("le", (SUM, number(0.0)), bool_), number(0.0), SUM), float32)
    chosen = Apply("choose", (Apply("ge", (above, number(1.0)), bool_), number(1.0), above),
                   float32)
    assert in_forms(Apply("mul", (X, limits), float32), RULES) == Apply("mul", (X, chosen), float32)
    for other in (limits, Apply("mul", (limits, number(3.0)), float32)):
        assert in_forms(other, RULES) is other


def test_numbers_that_runs_pass_take_the_forms_of_literals() -> None:
    scale, zero, whole = Name("num0", float32), Name("num1", float32), Name("num2", int32)
    given = KernelFacts(numbers={"num0": (3.0, 0.7), "num1": (9.0, 128.0), "num2": (9, 128)})
    other = KernelFacts(numbers={"num0": (3.0, 4.0), "num1": (9.0, 128.0), "num2": (9, 127)})
    quotient = Apply("div", (X, scale), float32)
    moved = Apply("add", (Apply("round", (X,), float32), zero), float32)
    wide = Apply("cast", (Apply("cast", (moved,), uint8),), int32)
    counted = Apply("cast", (Apply("sub", (wide, whole), int32),), float32)
    limited = Apply("exp", (Apply("min", (X, scale), float32),), float32)
    inverse = Name("over_num0", float32)
    assert in_forms(quotient, RULES, given) == Apply("over", (X, scale, inverse), float32)
    assert in_forms(counted, RULES, given) == Apply(
        "steps", (X, Apply("neg", (zero,), float32)), float32)
    assert in_forms(limited, RULES, given) is not limited
    for e in (quotient, counted):  # one scale is a power of two, one zero point is another
        assert in_forms(e, RULES, other) is e
    for e in (quotient, counted, limited):  # unknown
        assert in_forms(e, RULES) is e


def test_no_rules_change_nothing() -> None:
    assert in_forms(quantised(128), ()) is quantised(128)


def test_steps_mean_what_was_written() -> None:
    x = np.array([-1e9, -128.5, -128.4, -3.5, -2.5, 0.4, 126.5, 127.4, 3e9, np.nan], np.float32)
    for zero in (0, 128, 255):
        byte = np.clip(np.nan_to_num(np.rint(x)) + zero, 0, 255)
        byte[np.isnan(x)] = 0
        np.testing.assert_array_equal(FORMS["steps"].numpy(x, np.float32(-zero)), byte - zero)


def test_the_others_mean_what_was_written() -> None:
    x, c = np.array([1.0, 2.0], np.float32), np.array([True, False])
    np.testing.assert_array_equal(FORMS["choose"].numpy(c, x, -x), [1.0, -2.0])
    np.testing.assert_array_equal(FORMS["over"].numpy(x, np.float32(3), np.float32(1 / 3)),
                                  x / np.float32(3))
