"""Exact integer polynomials over named symbols, used for dimensions and for loop indices alike."""

from graphtool.symbolic.atoms import Atom, Call, Monomial, Symbol, text
from graphtool.symbolic.poly import (
    Dim,
    Poly,
    ceildiv,
    exact_quotient,
    floordiv,
    maximum,
    minimum,
    mod,
    symbol,
    symbol_of,
)
from graphtool.symbolic.questions import bounds, decide, known
from graphtool.symbolic.terms import coefficient, product, substitute, symbols

__all__ = [
    "Atom", "Call", "Dim", "Monomial", "Poly", "Symbol", "bounds", "ceildiv",
    "coefficient", "decide", "exact_quotient", "floordiv", "known", "maximum", "minimum", "mod",
    "product", "substitute", "symbol", "symbol_of", "symbols", "text"]
