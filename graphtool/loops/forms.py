"""Forms of expressions that compilers turn into better code, and the rules that find them.

A language names the rules that help it. They are applied to what a kernel stores just before it is
printed, so a program, its interpreter and its file have none of these forms. A rule takes an
expression whose operands were rewritten, and returns the form, or None to decline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.loops.ir import Apply, Const, Expr, Load, Name
from graphtool.loops.walk import mapped

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class PrintedFunction:
    """A function that only printed expressions have: the name of it in the library of a language,
    where `{t}` is the suffix of the result's type, and what it computes."""

    text: str
    numpy: Callable[..., Array]


FORMS: Mapping[str, PrintedFunction] = {
    # both arms are computed, and the choice is made by bit operations
    "choose": PrintedFunction("gt_choose_{t}", np.where),
    # x / s, where r is 1 / s
    "over": PrintedFunction("gt_over_{t}", lambda x, s, r: x / s),
    # round(x), at least low and at most low + 255; NaN becomes low
    "steps": PrintedFunction("gt_steps_u8", lambda x, low: np.fmin(
        np.fmax(np.rint(x), low), low + np.float32(255))),
}


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a rule may know of the kernel: whether it stores truth values, whether it is for a
    machine without vectors and of little memory, the least size of the buffer that each parameter
    is given, all that each number is in some run, and the scalars whose inverses have names."""

    masks: bool = False
    small: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    inverses: frozenset[str] = frozenset()

    def known(self, e: Expr) -> tuple[float, ...]:
        """What a number can be; nothing if it is unknown."""
        match e:
            case Const(value):
                return (value,)
            case Name(name):
                return self.numbers.get(name, ())
        return ()


Rule = Callable[[Expr, KernelFacts], Expr | None]


def in_forms(e: Expr, rules: Sequence[Rule], around: KernelFacts = KernelFacts()) -> Expr:
    """The expression with the first form that a rule finds for each part of it, operands first."""
    def change(part: Expr) -> Expr:
        results = (rule(part, around) for rule in rules)
        return next((form for form in results if form is not None), part)
    return mapped(e, change) if rules else e


def choose(e: Expr, around: KernelFacts) -> Expr | None:
    """select(c, a, b) of floats → choose(c, a, b): for a compiler that would make a branch.

    gcc does not vectorise a ?: with arithmetic in an arm, be it that it moved some there (which it
    does not for a comparison), nor one of a condition that was loaded or that takes arithmetic;
    both arms are safe to run. Where a condition is stored next to the value that it selects, gcc
    would make one branch for both, which random signs mispredict.
    """
    match e:
        case Apply("select", (c, a, b)) if e.dtype.is_float and (
                around.masks or not (_compares(c) and _plain(a) and _plain(b))):
            return Apply("choose", e.args, e.dtype)
    return None


def _compares(e: Expr) -> bool:
    """Whether a condition only compares numbers at hand, or indices."""
    match e:
        case Apply("and" | "or" | "not", args):
            return all(map(_compares, args))
        case Apply("lt" | "le" | "gt" | "ge" | "eq" | "ne", args):
            return all(_plain(x) or not x.dtype.is_float for x in args)
    return isinstance(e, Const)


def _plain(e: Expr) -> bool:
    """Whether an arm takes no arithmetic."""
    return isinstance(e, (Const, Name)) or (isinstance(e, Load) and not e.dtype.is_narrow)


def limited(e: Expr, around: KernelFacts) -> Expr | None:
    """exp(min(x, c)) → exp(choose(x >= c, c, x)), and the same of expm1, max, and a min that is
    scaled or a factor: gcc makes a branch around the exponential or the product, with the result
    for c computed before."""
    match e:
        case Apply("mul", (x, y)) if e.dtype.is_float and not around.known(y):
            factors = _chosen(x, around), _chosen(y, around)
            return None if factors == (x, y) else Apply("mul", factors, e.dtype)
        case Apply("exp" | "expm1" as fn, (x,)) if e.dtype.is_float:
            chosen = _chosen(x, around)
            return None if chosen is x else Apply(fn, (chosen,), e.dtype)
    return None


def _chosen(e: Expr, around: KernelFacts) -> Expr:
    """The expression, with a choice in place of the minimum or maximum that it scales."""
    match e:
        case Apply("min" | "max" as fn, (x, c)) if e.dtype.is_float and around.known(c):
            x = _chosen(x, around)
            beyond = Apply("ge" if fn == "min" else "le", (x, c), dtypes.bool_)
            return Apply("choose", (beyond, c, x), e.dtype)
        case Apply("mul" | "div" as fn, (x, c)) if around.known(c) and (
                scaled := _chosen(x, around)) is not x:
            return Apply(fn, (scaled, c), e.dtype)
        case Apply("over", (x, s, r)) if (scaled := _chosen(x, around)) is not x:
            return Apply("over", (scaled, s, r), e.dtype)
    return e


def over(e: Expr, around: KernelFacts) -> Expr | None:
    """x / s → over(x, s, 1/s) in float32, for numbers s with an inverse; that of a number which a
    run passes is passed too."""
    match e:
        case Apply("div", (x, Name(name) as s)) if name in around.inverses and x != Const(
                1.0, e.dtype):  # that is the inverse
            return Apply("over", (x, s, Name(inverse_name(s), s.dtype)), e.dtype)
        case Apply("div", (x, s)) if (values := around.known(s)) and all(
                has_inverse(v, s.dtype) for v in values):
            inverse = Name(inverse_name(s), s.dtype) if isinstance(s, Name) else Const(
                inverse_of(values[0]), s.dtype)
            return Apply("over", (x, s, inverse), e.dtype)
    return None


def has_inverse(s: float, dtype: DType) -> bool:
    """Whether division by s is computed by means of 1/s: in float32, where neither s nor 1/s is
    near the ends of the range and a multiplication by 1/s is not exact anyway."""
    if dtype is not dtypes.float32:
        return False
    s32 = np.float32(s)
    return bool(2.0 ** -100 < abs(s32) < 2.0 ** 100 and abs(np.frexp(s32)[0]) != 0.5)


def inverse_of(s: float) -> float:
    """1/s in float32."""
    return float(np.float32(1) / np.float32(s))


def inverse_name(s: Name) -> str:
    """What the inverse of a number that runs pass is called."""
    return f"over_{s.name}"


def steps(e: Expr, around: KernelFacts) -> Expr | None:
    """float32((int)uint8(round(x) + z) - z) → steps(x, -z): a quantised number in steps from its
    zero point z, which need not become an integer in between."""
    match e:
        case Apply("cast", (Apply("sub", (wide, zero)) as inner,), dtypes.float32) if (
                inner.dtype is dtypes.int32):
            zeros = around.known(zero)
        case Apply("cast", (wide,), dtypes.float32):
            zeros = (0,)
        case _:
            return None
    while isinstance(wide, Apply) and wide.fn == "cast" and wide.dtype is dtypes.int32:
        wide = wide.args[0]
    low: Expr = Const(0.0, dtypes.float32)
    match wide:
        case Apply("cast", (Apply("add", (Apply("round", (x,)), Const(added))),)) if zeros == (
                added,):
            low = Const(float(-added), dtypes.float32)
        case Apply("cast", (Apply("add", (Apply("round", (x,)), Name() as added)),)) if (
                zeros and zeros == around.known(added)):
            low = Apply("neg", (added,), dtypes.float32)
        case Apply("cast", (Apply("round", (x,)),)) if zeros == (0,):
            pass
        case _:
            return None
    if wide.dtype is not dtypes.uint8 or x.dtype is not dtypes.float32 or not all(
            0 <= z <= 255 for z in zeros):
        return None
    return Apply("steps", (x, low), dtypes.float32)
