"""Exact integer polynomials over named symbols, used for dimensions and for loop indices alike."""

from graphtool.symbolic.checks import bind, check_bounds, check_required, line, sample_sizes
from graphtool.symbolic.conditions import Condition, Entry, compared
from graphtool.symbolic.equations import Equation, equations, solved, with_steps
from graphtool.symbolic.intervals import bounds
from graphtool.symbolic.poly import (
    Atom,
    Call,
    Dim,
    Monomial,
    Poly,
    Symbol,
    decide,
    exact_quotient,
    floordiv,
    known,
    mod,
    single_call,
    symbol_of,
)
from graphtool.symbolic.terms import (
    at_least,
    at_least_sizes,
    ceildiv,
    coefficient,
    dim_of,
    divides,
    evaluate,
    maximum,
    minimum,
    product,
    substitute,
    symbol,
    symbols,
    typical,
    typical_size,
)
from graphtool.symbolic.text import text

__all__ = [
    "Atom", "Call", "Condition", "Dim", "Entry", "Equation", "Monomial", "Poly", "Symbol",
    "at_least", "at_least_sizes", "bind", "bounds", "ceildiv", "check_bounds", "check_required",
    "coefficient", "compared", "decide", "dim_of", "divides", "equations", "evaluate",
    "exact_quotient", "floordiv", "known", "line", "maximum", "minimum", "mod", "product",
    "sample_sizes", "single_call", "solved", "substitute", "symbol", "symbol_of", "symbols",
    "text", "typical", "typical_size", "with_steps"]
