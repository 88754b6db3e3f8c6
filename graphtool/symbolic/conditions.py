"""Conditions on sizes: comparisons that hold for some inputs only, and arithmetic that asks for the
sign of a size. A function returns None where the result is no size and no condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from graphtool.symbolic.poly import Dim, Poly, floordiv, known, mod, single_call
from graphtool.symbolic.terms import maximum, minimum

Sign = Literal["==", "!=", "<", "<="]


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of two sizes that holds for some inputs only."""

    sign: Sign
    a: Dim
    b: Dim


Truth = bool | Condition
Entry = Dim | Truth
"""What import knows of one element: a size, or a truth value."""


# ---- comparisons -------------------------------------------------------------------------------

def compared(sign: Sign, a: Entry, b: Entry) -> Truth | None:
    """Whether `a sign b` holds, or the condition under which it does. If one of two truth values is
    known, the result is the other value or its opposite."""
    if isinstance(a, (bool, Condition)) or isinstance(b, (bool, Condition)):
        return _equal_truths(sign, a, b)
    if sign == "!=":
        same = compared("==", a, b)
        return None if same is None else negated(same)
    answer = known(a, sign, b)
    if answer is not None:
        return answer
    if sign == "==" and b == 1 and known(0, "<=", a) and known(a, "<=", 1):
        # a divisor has the sign 1, and a size has another sign only if it is 0
        return Condition("!=", _size_of_sign(a), 0)
    return Condition(sign, a, b)


def _size_of_sign(sign: Dim) -> Dim:
    """The size n where `sign` is min(n, 1), else `sign` itself."""
    call = single_call(sign, "min") if isinstance(sign, Poly) else None
    return sign if call is None or 1 not in (call.a, call.b) else (
        call.b if call.a == 1 else call.a)


def _equal_truths(sign: Sign, a: Entry, b: Entry) -> Truth | None:
    for x, other in ((a, b), (b, a)):
        if sign in ("==", "!=") and isinstance(other, bool) and isinstance(x, (bool, Condition)):
            return x if other is (sign == "==") else negated(x)
    return None


def negated(x: Entry) -> Truth | None:
    """The opposite of a truth value."""
    match x:
        case bool():
            return not x
        case Condition("==", a, b):
            return Condition("!=", a, b)
        case Condition("!=", a, b):
            return Condition("==", a, b)
        case Condition("<", a, b):
            return Condition("<=", b, a)
        case Condition("<=", a, b):
            return Condition("<", b, a)
    return None


def both(x: Entry, y: Entry) -> Truth | None:
    """Whether two truth values hold."""
    for p, q in ((x, y), (y, x)):
        if isinstance(p, bool) and isinstance(q, (bool, Condition)):
            return q if p else False
        if isinstance(p, Condition) and isinstance(q, Condition):
            answer = _both(p, q)
            if answer is not None:
                return answer
    return None


def _both(x: Condition, y: Condition) -> Truth | None:
    """x where it implies y: a < b implies a != b. False where they exclude each other: if a is 0,
    so is a % k."""
    if y.sign != "!=" or x.b != y.b:
        return None
    if x.sign == "<" and x.a == y.a:
        return x
    rest = single_call(y.a, "%") if isinstance(y.a, Poly) else None
    if x.sign == "==" and (x.a == y.a or (
            x.b == 0 and rest is not None and mod(x.a, rest.b) == y.a)):
        return False
    return None


def either(x: Entry, y: Entry) -> Truth | None:
    """Whether one of two truth values holds."""
    for p, q in ((x, y), (y, x)):
        if isinstance(p, bool) and isinstance(q, (bool, Condition)):
            return True if p else q
    return None


# ---- arithmetic --------------------------------------------------------------------------------

def sign_of(a: Dim) -> Dim | None:
    """min(a, 1) of a size that is not negative, max(a, −1) of a size that is not positive."""
    if known(0, "<=", a) is True:
        return minimum(a, 1)
    return maximum(a, -1) if known(a, "<=", 0) is True else None


def magnitude(a: Dim) -> Dim | None:
    """|a| of a size whose sign is known."""
    if known(0, "<=", a) is True:
        return a
    return -a if known(a, "<=", 0) is True else None


def quotient(a: Dim, b: Dim) -> Dim | None:
    """a / b cut towards 0, for b > 0 and an a whose sign is known."""
    return _truncating(floordiv, a, b)


def remainder(a: Dim, b: Dim) -> Dim | None:
    """a − b·(a / b cut towards 0), for b > 0 and an a whose sign is known."""
    return _truncating(mod, a, b)


def _truncating(down: Callable[[Dim, Dim], Dim], a: Dim, b: Dim) -> Dim | None:
    if known(0, "<", b) is not True:
        return None
    if known(0, "<=", a) is True:
        return down(a, b)
    return -down(-a, b) if known(a, "<=", 0) is True else None


def modulo(a: Dim, b: Dim) -> Dim | None:
    """a − b·⌊a / b⌋, for b > 0."""
    return mod(a, b) if known(0, "<", b) is True else None


def chosen(condition: Entry, a: Entry, b: Entry) -> Entry | None:
    """a where the condition holds, else b. Of an open condition it is known only where that asks
    whether p % k is not 0, which is how JAX divides towards −∞: b and a multiple of
    ⌈p / k⌉ − ⌊p / k⌋, which is 0 or 1."""
    if isinstance(condition, bool):
        return a if condition else b
    rest = _remainder(condition) if isinstance(condition, Condition) else None
    if rest is None or isinstance(a, (bool, Condition)) or isinstance(b, (bool, Condition)):
        return None
    p, k = rest
    down = floordiv(p, k)
    left_over, exact = mod(p, k), p - k * down
    entry = b + (a - b) * (floordiv(p + k - 1, k) - down)
    sign = next((c for c in (1, -1) if b == left_over * c), 0)
    return entry + (exact - left_over) * sign


def _remainder(asked: Condition) -> tuple[Poly, int] | None:
    """(p, k) where the condition is that p % k is not 0."""
    gaps = {"!=": (asked.a - asked.b, asked.b - asked.a), "<": (asked.b - asked.a,)}
    for gap in gaps.get(asked.sign, ()):
        call = single_call(gap, "%") if isinstance(gap, Poly) else None
        if call is not None and isinstance(call.a, Poly) and isinstance(call.b, int):
            return call.a, call.b
    return None
