"""Exact integer polynomials over named symbols, used for dimensions and for loop indices alike."""

from graphtool.symbolic.extremes import ceildiv, maximum, minimum
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
    symbol,
    symbol_of,
)
from graphtool.symbolic.terms import coefficient, evaluate, product, substitute, symbols
from graphtool.symbolic.text import text

__all__ = [
    "Atom", "Call", "Dim", "Monomial", "Poly", "Symbol", "bounds", "ceildiv",
    "coefficient", "decide", "evaluate", "exact_quotient", "floordiv", "known", "maximum",
    "minimum", "mod",
    "product", "substitute", "symbol", "symbol_of", "symbols", "text"]
