"""Scalar expressions and index polynomials as text, with the fewest parentheses C allows."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.emit.language import C, Language
from graphtool.errors import InternalError
from graphtool.loops.forms import FORMS
from graphtool.loops.ir import Apply, Const, Expr, Index, Load, Name
from graphtool.loops.walk import fold
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Call, Dim, Symbol, bounds

PRIMARY, UNARY, MUL, ADD, TERNARY = 16, 14, 13, 12, 3
_BITS = (6, 7, 8)  # | ^ &: gcc wants parentheses around whatever stands in them
Text = tuple[str, int]  # C text and the precedence of its outermost operator


class ExprPrinter:
    """Prints expressions; `dims` maps symbols of the program to identifiers. Elements of the
    buffers `packed` share bytes."""

    def __init__(self, dims: Mapping[str, str], packed: Container[str] = (),
                 language: Language = C) -> None:
        self.dims, self.packed, self.language = dims, packed, language
        self.exact = set[str]()  # rows of small integers that stand there as they are
        self.texts: dict[Expr, Text] = {}

    def expr(self, e: Expr, least: int = 0) -> str:
        """The C text of `e`, in parentheses if its operator binds less tightly than `least`."""
        text, prec = self.text(e)
        return f"({text})" if prec < least else text

    def text(self, e: Expr) -> Text:
        """The C text of `e` and the precedence of its outermost operator.

        Raises InternalError GT7201 for a node that is not an expression.
        """
        return fold(e, self.form, self.texts)

    def form(self, e: Expr, _: list[Text]) -> Text:
        """As `text`, where the operands of `e` are printed already.

        A load of a narrow float becomes f32 and a load from a packed buffer is wrapped to its type.
        """
        match e:
            case Const(value, dtype):
                if dtype.is_narrow:
                    value = float(np.asarray(value).astype(dtype.numpy))
                return literal(value, dtype.computes)
            case Name(name):
                return name, PRIMARY
            case Index(value):
                text, prec = self.dim(value)
                if self.language.size != self.language.small:
                    return text, prec
                wide = self.language.type(dtypes.int64)
                return f"({wide}){text if prec >= UNARY else f'({text})'}", UNARY
            case Load(buffer, index, dtype):
                read = self.read(buffer, index, dtype)
                if dtype.is_narrow:
                    return f"gt_{dtype.short}_to_f32({read})", PRIMARY
                if dtype.is_packed and buffer not in self.exact:  # the upper bits may be anything
                    return f"gt_wrap_{dtype.short}({read})", PRIMARY
                return read, PRIMARY
            case Apply():
                return self.apply(e)
        raise InternalError("GT7201", f"{type(e).__name__} cannot be printed as C")

    def read(self, buffer: str, index: Dim, dtype: DType) -> str:
        """The C text that reads element `index` of the buffer."""
        if buffer in self.packed:
            return f"gt_field{dtype.bits}({buffer}, {self.index(index)})"
        return f"{buffer}[{self.index(index)}]"

    def apply(self, e: Apply) -> Text:
        """The C text and precedence of a scalar function call: an operator where C has one that
        gives the same result, else a call of a `gt_` function."""
        if form := FORMS.get(e.fn):
            name = form.text.format(t=e.dtype.computes.short)
            return f"{name}({', '.join(map(self.expr, e.args))})", PRIMARY
        if e.fn == "select":
            c, a, b = e.args
            return (f"{self.expr(c, 9)} ? {self.expr(a, TERNARY + 1)} : "
                    f"{self.expr(b, TERNARY)}"), TERNARY
        if e.fn == "cast":
            return self.cast(e.args[0], e.dtype)
        if e.fn == "bitcast":
            return self.bitcast(e.args[0], e.dtype)
        row = BY_NAME[e.fn]
        operand = e.args[0].dtype.computes
        if e.fn == "not" and operand is dtypes.bool_:
            return f"!{self.expr(e.args[0], UNARY)}", UNARY
        if operand is dtypes.bool_ and e.fn in ("max", "min"):  # on 0 and 1
            row = BY_NAME["or" if e.fn == "max" else "and"]
        if e.fn == "div" and operand.is_integer:  # the operator traps on 0
            return f"gt_div_{operand.short}({', '.join(self.expr(a) for a in e.args)})", PRIMARY
        if overflows(e.fn, operand):
            return f"gt_{e.fn}_{operand.short}({', '.join(map(self.expr, e.args))})", PRIMARY
        if not row.prec:
            text = self.language.scalars.get(e.fn, row.c)
            return text.format(*(self.expr(a) for a in e.args), t=operand.short), PRIMARY
        args = [self.operand(a, row.prec, n) for n, a in enumerate(e.args)]
        text = row.c.format(*args)
        if e.dtype.is_integer and e.dtype.is_packed:
            return f"gt_wrap_{e.dtype.short}({text})", PRIMARY
        narrow = operand.is_integer and operand.bits < 32 and row.result == "same"
        return (f"({self.language.type(operand)})({text})", UNARY) if narrow else (text, row.prec)

    def operand(self, e: Expr, prec: int, position: int) -> str:
        """The text of the operand at `position` of an operator of precedence `prec`.

        A compound operand of a bit operator is in parentheses, and so is a negative number after a
        unary operator.
        """
        if prec in _BITS:
            text = self.expr(e, UNARY)
            return f"({text})" if text.startswith("!") else text
        if prec == UNARY:
            text = self.expr(e, UNARY)
            return f"({text})" if text.startswith("-") else text
        return self.expr(e, prec + (position > 0) if prec > 10 else 11)

    def cast(self, x: Expr, to: DType) -> Text:
        """The C text of a conversion with the rounding, clamping and wrapping that `to`
        requires."""
        source, out = x.dtype.computes, to.computes
        if to.is_narrow:  # round to the narrow type
            if x.dtype is to:
                return self.text(x)
            if x.dtype is dtypes.float32 and to in dtypes.HALVES:
                return f"gt_rounded_{to.short}({self.expr(x)})", PRIMARY
            return f"gt_{to.short}_to_f32({self.narrowed(x, to)})", PRIMARY
        if source.is_float and to.is_integer:
            return f"gt_cast_{source.short}_{to.short}({self.expr(x)})", PRIMARY
        if to.is_integer and to.is_packed:
            wide = f"({self.language.size}){self.expr(x, UNARY)}"
            return f"gt_wrap_{to.short}({wide})", PRIMARY
        if source is out:
            return self.text(x)
        if out is dtypes.bool_:
            return f"{self.expr(x, 10)} != 0", 9
        return f"({self.language.type(out)}){self.expr(x, UNARY)}", UNARY

    def narrowed(self, x: Expr, to: DType) -> str:
        """The C text of the bits of a narrow float: x rounded to it, whatever type x has."""
        text = self.expr(x)
        if x.dtype is dtypes.float64:
            text = f"gt_f64_to_odd({text})" if to.bits <= 8 else f"(float)({text})"
        return f"gt_f32_to_{to.short}({text})"

    def bitcast(self, x: Expr, to: DType) -> Text:
        """The C text that reads the bits of `x` as type `to`, which has the same size."""
        if to.is_narrow:
            return f"gt_{to.short}_to_f32({self.bits(x, to)})", PRIMARY
        if x.dtype is to:
            return self.text(x)
        if to is dtypes.bool_:  # a byte that is not 0
            return f"{self.bits(x, to)} != 0", 9
        if to.is_packed:  # an integer of less than a byte is computed in a whole one
            return f"gt_wrap_{to.short}({self.bits(x, to)})", PRIMARY
        if x.dtype.is_narrow or x.dtype is dtypes.bool_:
            return self.bits(x, to), UNARY
        return f"gt_bitcast_{x.dtype.short}_{to.short}({self.expr(x)})", PRIMARY

    def bits(self, x: Expr, to: DType) -> str:
        """The C text of the bits of `x` in the C type of `to`, which binds as a cast does."""
        text = self.stored(x, x.dtype) if x.dtype.is_narrow else self.expr(x, UNARY)
        if to.is_narrow and x.dtype.is_packed and x.dtype.kind == "int":  # the sign fills a byte
            return f"({self.language.type(to)})({text} & {(1 << to.bits) - 1})"
        return f"({self.language.type(to)}){text}"

    def stored(self, e: Expr, to: DType) -> str:
        """The C text of the expression in the form that a buffer of type `to` stores."""
        match e:
            case Load(buffer, index, dtype) if dtype is to:  # a copy keeps all bits
                return self.read(buffer, index, dtype)
            case Apply("cast", (x,)) if to.is_narrow and e.dtype is to and x.dtype is not to:
                return self.narrowed(x, to)
            case Apply("bitcast", (x,)) if to.is_narrow and e.dtype is to:
                return self.bits(x, to)
        return self.narrowed(e, to) if to.is_narrow else self.expr(e)

    # ---- index polynomials -----------------------------------------------------------------

    def dim(self, d: Dim) -> Text:
        """The C text and precedence of an index polynomial, one product for each term."""
        if isinstance(d, int):
            return str(d), PRIMARY if d >= 0 else UNARY
        return joined_terms(([self.atom(a) for a, p in mono for _ in range(p)], coeff)
                            for mono, coeff in d.terms)

    def index(self, d: Dim, least: int = 0) -> str:
        """The C text of an index, in parentheses if it binds less tightly than `least`."""
        text, prec = self.dim(d)
        return f"({text})" if prec < least else text

    def magnitude(self, d: Dim) -> str:
        """C that bounds the size of `d`, and of each number met when it is computed, in double."""
        if isinstance(d, int):
            return f"{abs(d)}.0"
        terms = []
        for mono, coeff in d.terms:
            factors = [self.atom_magnitude(a) for a, p in mono for _ in range(p)]
            terms.append(" * ".join([f"{abs(coeff)}.0"] * (abs(coeff) != 1 or not factors)
                                    + factors))
        return " + ".join(terms)

    def atom_magnitude(self, a: Symbol | Call) -> str:
        """As `magnitude`, of a symbol or of a call: no result of one exceeds both operands. It is
        at least 1, as a size of 0 beside it would hide a factor that is too large."""
        if isinstance(a, Symbol):
            size = f"(double){self.dims.get(a.name, a.name)}"
            return size if (a.lo or 0) >= 1 else f"gt_greater({size}, 1.0)"
        return f"gt_greater({self.magnitude(a.a)}, {self.magnitude(a.b)})"

    def atom(self, a: Symbol | Call) -> str:
        """The C text of a symbol or of a min, max, floor division or modulo of indices.

        `/` and `%` of C are used only where the dividend cannot be negative.
        """
        if isinstance(a, Symbol):
            return self.dims.get(a.name, a.name)
        if a.fn in ("min", "max"):
            return f"gt_{a.fn}_i64({self.index(a.a)}, {self.index(a.b)})"
        low = bounds(a.a)[0]
        if low is not None and low >= 0:
            sign = "/" if a.fn == "//" else "%"
            return f"({self.index(a.a, MUL)} {sign} {self.index(a.b, UNARY)})"
        name = "floordiv" if a.fn == "//" else "floormod"
        return f"gt_{name}({self.index(a.a)}, {self.index(a.b)})"


def joined_terms(terms: Iterable[tuple[list[str], int]]) -> Text:
    """The C text and precedence of a sum of products of these factors and a coefficient."""
    out, prec, count = "", PRIMARY, 0
    for count, (factors, coeff) in enumerate(terms, 1):
        if abs(coeff) != 1 or not factors:
            factors = [*factors, str(abs(coeff))]
        sign = ("-" if coeff < 0 else "") if count == 1 else (" - " if coeff < 0 else " + ")
        out += sign + " * ".join(factors)
        negative = UNARY if sign == "-" else PRIMARY
        prec = min(prec, MUL if len(factors) > 1 else PRIMARY, negative)
    return out, ADD if count > 1 else prec


def overflows(fn: str, operand: DType) -> bool:
    """Whether C leaves the operator undefined for large operands, which here wrap around.

    C computes in int what is narrower: only a product of two u16 does not fit.
    """
    if fn not in ("add", "sub", "mul", "neg"):
        return False
    signed = operand.is_integer and operand.kind != "uint" and operand.bits >= 32
    return signed or (fn == "mul" and operand is dtypes.uint16)


def literal(value: float, dtype: DType) -> Text:
    """A C constant of exactly this value and type."""
    if dtype is dtypes.bool_:
        return str(int(bool(value))), PRIMARY
    if dtype.is_integer:
        return _integer(int(value), dtype)
    if value != value:
        return "NAN", PRIMARY
    if value in (np.inf, -np.inf):
        return ("INFINITY", PRIMARY) if value > 0 else ("-INFINITY", UNARY)
    if dtype is dtypes.float32:
        with np.errstate(over="ignore"):
            single = np.float32(value)
        if np.isinf(single):
            return literal(float(single), dtype)
        text = np.format_float_positional(single, trim="0") if 1e-4 <= abs(single) < 1e7 or (
            single == 0) else np.format_float_scientific(single, trim="0")
        text += "f"
    else:
        text = repr(float(value))
    return text, UNARY if text.startswith("-") else PRIMARY


def _integer(value: int, dtype: DType) -> Text:
    if dtype.kind == "uint":
        return (f"{value}u" if dtype.bits <= 32 else f"UINT64_C({value})"), PRIMARY
    if dtype.bits == 64:
        if value == -2**63:
            return "INT64_MIN", PRIMARY
        return (str(value), PRIMARY if value >= 0 else UNARY) if abs(value) < 2**31 else (
            (f"INT64_C({value})", PRIMARY))
    if dtype.bits == 32 and value == -2**31:
        return "INT32_MIN", PRIMARY
    return str(value), PRIMARY if value >= 0 else UNARY


