"""Scalar expressions of pulls as terms of z3, in one of three readings of their numbers.

`bits`: a float is one of an unknown set, and every function of floats or integers is an unknown
function: what is proved so keeps every bit, whatever the type. `ieee`: floats and integers are
those of the machine. `real`: floats are real numbers, which is the class `reassociated`. In all of
them indices are whole numbers, so sizes stay symbols, and a sum is an unknown function of its
terms.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any, Literal

import z3

from graphtool.dtypes import DType
from graphtool.loops.ir import Apply, Const, Index, Load
from graphtool.loops.pull import Names, PExpr, Reduce
from graphtool.symbolic import Call, Dim, Symbol, bounds
from tests.lab.proofs.sums import flat, inside

Reading = Literal["bits", "ieee", "real"]
_FORMATS = {"f16": (5, 11), "bf16": (8, 8), "f32": (8, 24), "f64": (11, 53)}
_NEAREST = z3.RNE()
READ = "read "  # begins the name of the function that reads an input by its indices


class Unsupported(Exception):
    """An expression that this reading of numbers gives no meaning."""


class Terms:
    """The terms of expressions. `facts` are what is known of the symbols in them, `reads` the
    elements that were read."""

    def __init__(self, reading: Reading, names: Names) -> None:
        self.reading, self.names = reading, names
        self.facts: list[Any] = []
        self.reads: list[Any] = []
        self.seen: dict[Any, Any] = {}
        self.bound: dict[str, Any] = {}
        self.depth = 0

    # ---- indices ---------------------------------------------------------------------------

    def symbol(self, s: Symbol) -> Any:
        """A size or an index as an integer, within its bounds."""
        if s.name in self.bound:
            return self.bound[s.name]
        if (s.step, s.offset) != (1, 0):
            raise Unsupported(f"the steps of {s.name}")
        if s not in self.seen:
            x = self.seen[s] = z3.Int(s.name)
            self.facts += [x >= s.lo] if s.lo is not None else []
            self.facts += [x <= s.hi] if s.hi is not None else []
            self.facts += [x < self.dim(s.extent)] if s.extent is not None else []
            if s.name in self.names.indices:
                with suppress(Unsupported):  # data decide it: all that is known are its bounds
                    self.facts.append(x == self.whole(self.names.indices[s.name]))
        return self.seen[s]

    def whole(self, e: PExpr) -> Any:
        """An index that constants decide, as an integer."""
        match e:
            case Const(value):
                return z3.IntVal(int(value))
            case Index(value):
                return self.dim(value)
            case Apply("cast", (x,)):
                return self.whole(x)
            case Apply("select", (c, a, b)):
                return z3.If(self.term(c), self.whole(a), self.whole(b))
            case Apply("max" | "min" as fn, (a, b)):
                return _REALS[fn](self.whole(a), self.whole(b))
        raise Unsupported(type(e).__name__)

    def dim(self, d: Dim) -> Any:
        """A polynomial of sizes and indices as an integer."""
        if isinstance(d, int):
            return z3.IntVal(d)
        return z3.Sum([z3.Product([z3.IntVal(c), *(self.atom(a) for a, p in m for _ in range(p))])
                       for m, c in d.terms])

    def atom(self, a: Any) -> Any:
        """A symbol, or a quotient, remainder, minimum or maximum."""
        if isinstance(a, Symbol):
            return self.symbol(a)
        assert isinstance(a, Call)
        x, y = self.dim(a.a), self.dim(a.b)
        if a.fn in ("//", "%"):
            least = bounds(a.b)[0]
            if least is None or least < 1:  # z3 rounds to the other side below 0
                self.facts.append(y > 0)
            return x / y if a.fn == "//" else x % y
        return z3.If(x <= y, x, y) if a.fn == "min" else z3.If(x <= y, y, x)

    # ---- numbers ---------------------------------------------------------------------------

    def sort(self, dtype: DType) -> Any:
        """The set of the numbers of a type."""
        if dtype.kind == "bool":
            return z3.BoolSort()
        if self.reading == "bits":
            return z3.DeclareSort(dtype.short)
        if dtype.is_float:
            if self.reading == "real":
                return z3.RealSort()
            if dtype.short not in _FORMATS:
                raise Unsupported(str(dtype))
            return z3.FPSort(*_FORMATS[dtype.short])
        if not dtype.is_integer:
            raise Unsupported(str(dtype))
        return z3.IntSort() if self.reading == "real" else z3.BitVecSort(dtype.bits)

    def term(self, e: PExpr) -> Any:
        """The term of an expression, for the places that its reductions are at."""
        key = (e, tuple((name, x.get_id()) for name, x in self.bound.items()))
        if key not in self.seen:
            self.seen[key] = self.made(e)
        return self.seen[key]

    def made(self, e: PExpr) -> Any:
        match e:
            case Const(value, dtype):
                return self.number(value, dtype)
            case Index(value):
                return self.dim(value)
            case Apply(fn, args, dtype) if fn.startswith(READ):
                out = self.unknown(fn, [self.term(a) for a in args], dtype)
                self.reads.append((out, dtype))
                return out
            case Apply(fn, args, dtype):
                return self.applied(fn, args, dtype)
            case Reduce():
                return self.reduced(e)
            case Load() | _:
                raise Unsupported(type(e).__name__)

    def unknown(self, name: str, args: list[Any], dtype: DType) -> Any:
        """An unknown function of terms, which gives equal results for equal terms."""
        real = self.reading == "real" and dtype.is_float
        name, sort = name if real else f"{name}:{dtype.short}", self.sort(dtype)
        return z3.Function(name, *(a.sort() for a in args), sort)(*args) if args else (
            z3.Const(name, sort))

    def number(self, value: Any, dtype: DType) -> Any:
        """A number of a type."""
        sort = self.sort(dtype)
        if dtype.kind == "bool":
            return z3.BoolVal(bool(value))
        if self.reading == "bits":
            return self.unknown(f"the number {value!r}", [], dtype)
        if self.reading == "ieee":
            return z3.FPVal(value, sort) if dtype.is_float else z3.BitVecVal(int(value), dtype.bits)
        if value in _NAMED:
            return _NAMED[value]
        if value in (float("inf"), float("-inf")) or value != value:
            return self.unknown(f"the number {value!r}", [], dtype)
        exact = Fraction(value)
        return z3.RealVal(str(exact)) if dtype.is_float else z3.IntVal(int(value))

    def applied(self, fn: str, args: tuple[PExpr, ...], dtype: DType) -> Any:
        """A scalar function of terms: known where this reading says what it is."""
        if self.reading == "real" and (whole := inside(fn, args, dtype)) is not None:
            return self.term(whole)
        xs = [self.term(a) for a in args]
        if fn == "select":
            return z3.If(*xs)
        kind = args[0].dtype
        if kind.kind == "bool" and fn in _LOGIC:
            return _LOGIC[fn](*xs)
        if fn in _COMPARED and self.reading != "real" and all(map(z3.is_int, xs)):
            return _COMPARED[fn](*xs)  # of indices
        if fn == "eq" and self.reading == "bits" and not kind.is_float:
            return xs[0] == xs[1]
        known = {"bits": {}, "ieee": _FLOATS if kind.is_float else _words(kind),
                 "real": _REALS}[self.reading]
        if fn == "cast":
            return self.converted(xs[0], kind, dtype)
        if fn == "pow" and self.reading == "real" and isinstance(args[1], Const) and (
                args[1].value in (1, 2, 3)):
            return z3.Product([xs[0]] * int(args[1].value))
        return known[fn](*xs) if fn in known else self.unknown(fn, xs, dtype)

    def converted(self, x: Any, kind: DType, dtype: DType) -> Any:
        """`cast`, which saturates."""
        if self.reading == "ieee" and kind.is_float and dtype.is_float:
            return z3.fpFPToFP(_NEAREST, x, self.sort(dtype))
        if self.reading == "ieee" and kind.is_integer and dtype.is_float:
            signed = z3.fpSignedToFP if kind.low < 0 else z3.fpUnsignedToFP
            return signed(_NEAREST, x, self.sort(dtype))
        if self.reading == "ieee" and kind.is_integer and dtype.is_integer:
            if dtype.bits <= kind.bits:
                return z3.Extract(dtype.bits - 1, 0, x)
            extend = z3.SignExt if kind.low < 0 else z3.ZeroExt
            return extend(dtype.bits - kind.bits, x)
        if self.reading == "ieee" and kind.is_float and dtype.is_integer:
            return self.cut(x, kind, dtype)
        if self.reading == "real" and kind.is_integer and dtype.is_float:
            return z3.ToReal(x)
        if self.reading == "real" and kind.is_integer and dtype.is_integer:
            return x  # the rules bound their sums, so that no integer wraps around
        if self.reading == "real" and kind.is_float and dtype.is_float:
            return x
        return self.unknown("cast", [x], dtype)

    def cut(self, x: Any, kind: DType, dtype: DType) -> Any:
        """A float as an integer: cut towards 0 and to the range of the type; NaN is 0."""
        sort = self.sort(kind)
        low, high = (z3.fpRealToFP(_NEAREST, z3.RealVal(n), sort) for n in (dtype.low, dtype.high))
        to = z3.fpToSBV if dtype.low < 0 else z3.fpToUBV
        words = self.sort(dtype)
        return z3.If(z3.fpIsNaN(x), z3.BitVecVal(0, dtype.bits), z3.If(
            z3.fpGEQ(x, high), z3.BitVecVal(dtype.high, dtype.bits), z3.If(
                z3.fpLEQ(x, low), z3.BitVecVal(dtype.low, dtype.bits), to(z3.RTZ(), x, words))))

    # ---- reductions ------------------------------------------------------------------------

    def reduced(self, e: Reduce) -> Any:
        """A reduction as an unknown function of its sizes, its start and its term at an unknown
        place. If such functions are equal for all functions, then the terms are, at all places."""
        e = flat(e)
        saved, self.bound = self.bound, dict(self.bound)
        self.depth += 1
        sizes = [self.dim(d) for _, d in e.iters]
        for k, (s, _) in enumerate(e.iters):
            at = self.bound[s.name] = z3.Int(f"place {self.depth}.{k}")
            self.facts.append(z3.Implies(sizes[k] > 0, z3.And(at >= 0, at < sizes[k])))
        start, body = self.term(e.init), self.term(e.body)
        if self.reading == "real":
            body = z3.simplify(body, som=True)
        self.depth -= 1
        self.bound = saved
        return self.unknown(f"reduce {e.fn} {len(sizes)}", [*sizes, start, body], e.dtype)


_LOGIC: dict[str, Any] = {
    "and": z3.And, "or": z3.Or, "not": z3.Not, "max": z3.Or, "min": z3.And, "xor": z3.Xor,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b}
_COMPARED: dict[str, Any] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}


def _extreme(greater: bool) -> Any:
    """numpy's maximum or minimum: NaN if one is NaN. Of two zeros either, which are equal."""
    def of(a: Any, b: Any) -> Any:
        first = z3.fpGEQ(a, b) if greater else z3.fpLEQ(a, b)
        return z3.If(z3.fpIsNaN(a), a, z3.If(z3.fpIsNaN(b), b, z3.If(first, a, b)))
    return of


_FLOATS: dict[str, Any] = {
    "add": lambda a, b: z3.fpAdd(_NEAREST, a, b), "sub": lambda a, b: z3.fpSub(_NEAREST, a, b),
    "mul": lambda a, b: z3.fpMul(_NEAREST, a, b), "div": lambda a, b: z3.fpDiv(_NEAREST, a, b),
    "neg": z3.fpNeg, "abs": z3.fpAbs, "sqrt": lambda a: z3.fpSqrt(_NEAREST, a),
    "max": _extreme(True), "min": _extreme(False),
    "eq": z3.fpEQ, "ne": lambda a, b: z3.Not(z3.fpEQ(a, b)), "lt": z3.fpLT, "le": z3.fpLEQ,
    "gt": z3.fpGT, "ge": z3.fpGEQ, "is_nan": z3.fpIsNaN, "is_inf": z3.fpIsInf,
    "round": lambda a: z3.fpRoundToIntegral(_NEAREST, a),
    "rsqrt": lambda a: z3.fpDiv(_NEAREST, z3.FPVal(1, a.sort()), z3.fpSqrt(_NEAREST, a))}
# a number that was rounded when it was written stands for the one that is meant
_HALF = z3.Real("√½")
_ROOT_2_PI = z3.Real("√(2/π)")
_NAMED = {0.5**0.5: _HALF, 2**0.5: 2 * _HALF, 0.7978845608028654: _ROOT_2_PI,
          0.044715: z3.RealVal("0.044715"),
          0.044715 * 0.7978845608028654: z3.RealVal("0.044715") * _ROOT_2_PI}
_INVERSE = z3.Function("1 /", z3.RealSort(), z3.RealSort())  # of 0 some number: no rule needs it
_ROOT = z3.Function("root", z3.RealSort(), z3.RealSort())


def _over(a: Any, b: Any) -> Any:
    return a / b if z3.is_rational_value(b) else a * _INVERSE(z3.simplify(b, som=True))


_REALS: dict[str, Any] = {
    **_COMPARED, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "neg": lambda a: -a, "abs": lambda a: z3.If(a >= 0, a, -a), "div": _over,
    "sqrt": lambda a: _ROOT(z3.simplify(a, som=True)),
    "rsqrt": lambda a: _INVERSE(_ROOT(z3.simplify(a, som=True))),
    "max": lambda a, b: z3.If(a >= b, a, b), "min": lambda a, b: z3.If(a <= b, a, b)}


def _words(kind: DType) -> dict[str, Any]:
    """Integers that wrap around."""
    low = kind.low < 0 if kind.is_integer else False
    less, most = ((lambda a, b: a < b), (lambda a, b: a <= b)) if low else (z3.ULT, z3.ULE)
    return {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
            "neg": lambda a: -a, "abs": lambda a: z3.If(a < 0, -a, a) if low else a,
            "and": lambda a, b: a & b, "or": lambda a, b: a | b, "not": lambda a: ~a,
            "xor": lambda a, b: a ^ b,
            "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": less, "le": most,
            "gt": lambda a, b: less(b, a), "ge": lambda a, b: most(b, a),
            "max": lambda a, b: z3.If(less(a, b), b, a),
            "min": lambda a, b: z3.If(less(a, b), a, b),
            "div": lambda a, b: z3.If(b == 0, b, a / b if low else z3.UDiv(a, b))}


def same(a: Any, b: Any) -> Any:
    """Whether two numbers are equal, or both NaN."""
    if z3.is_fp(a):
        return z3.Or(z3.fpEQ(a, b), z3.And(z3.fpIsNaN(a), z3.fpIsNaN(b)))
    return z3.simplify(a == b, som=True) if z3.is_arith(a) else a == b
