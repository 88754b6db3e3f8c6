"""Conditions on one size: what others or the range imply is dropped, and the rest is short."""

from __future__ import annotations

from itertools import permutations

import pytest

from graphtool.symbolic import Dim, Equation, Symbol, dim_of, floordiv, mod
from graphtool.symbolic.checks import sample_sizes
from graphtool.symbolic.equations import satisfying, simplified


def levels(d: Dim, count: int) -> list[Equation]:
    """What a pyramid of so many levels requires: each is twice the next."""
    out = []
    for _ in range(count):
        d, above = floordiv(d + 1, 2), d
        out.append(Equation(2 * d, above))
    return out


H, SHORT, EVEN = Symbol("H", 1, None), Symbol("H", 1, 2), Symbol("H", 2, None, None, 2)
W = dim_of(Symbol("W", 1, None))
CASES = {
    "one": (H, levels(dim_of(H), 1), ["2*((H + 1)//2) == H"]),
    "three levels": (H, levels(dim_of(H), 3), ["(H%8) == 0"]),
    "below a stride": (H, levels(floordiv(dim_of(H) + 1, 2), 3), ["(((H + 1)//2)%8) == 0"]),
    "implied by another": (H, [Equation(mod(dim_of(H), 4), 0), Equation(mod(dim_of(H), 2), 0)],
                           ["(H%4) == 0"]),
    "implied by the range": (SHORT, [Equation(floordiv(dim_of(SHORT), 3), 0)], []),
    "always true": (H, [Equation(mod(dim_of(H) * dim_of(H) - dim_of(H), 2), 0)], []),
    "implied by the step": (EVEN, [Equation(2 * floordiv(dim_of(EVEN), 2), dim_of(EVEN))], []),
    "of two sizes": (H, [Equation(dim_of(H), W)], ["H == W"]),
    "a part is a number": (H, [Equation(1, floordiv(dim_of(H), 8)),
                               Equation(6 * W * floordiv(dim_of(H), 8), 6 * W)],
                           ["1 == (H//8)"]),
    "a part is another number": (H, [Equation(floordiv(dim_of(H), 8), 2),
                                     Equation(W * floordiv(dim_of(H), 8), W)],
                                 ["(H//8) == 2", "W*(H//8) == W"]),
    "not periodic": (H, [Equation(dim_of(H) * dim_of(H), dim_of(H) * 3)], ["H*H == 3*H"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_shortest_form(name: str) -> None:
    s, rows, want = CASES[name]
    found = simplified(rows, {"H": s, "W": Symbol("W", 1, None)})
    assert [str(e) for e in found] == want
    for n in range(s.lo or 0, (s.hi or 99) + 1, s.step):
        for w in (n, n + 1):
            sizes = {"H": n, "W": w}
            assert all(not e.breach(sizes) for e in found) == all(
                not e.breach(sizes) for e in rows)


def test_sizes_that_satisfy_conditions() -> None:
    assert satisfying(H, levels(floordiv(dim_of(H) + 1, 2), 3)) == (16, 16)
    assert satisfying(Symbol("H", 33, None), levels(dim_of(H), 3)) == (40, 8)
    assert satisfying(Symbol("H", 1, 7), levels(dim_of(H), 3)) is None
    assert satisfying(H, [Equation(dim_of(H) * dim_of(H), dim_of(H) * 3)]) is None


@pytest.mark.parametrize("names", list(permutations("PSM")))
@pytest.mark.parametrize("side", range(3))
def test_sizes_made_up_for_a_sum_keep_all_bounds(names: tuple[str, ...], side: int) -> None:
    """However the condition is turned around, and in whatever order the names come."""
    rows = {n: Symbol(n, 1, None) for n in names}
    past, new, total = (dim_of(rows[n]) for n in "PSM")
    turned = (Equation(total, past + new), Equation(past, total - new), Equation(total - past, new))
    sizes = sample_sizes(rows, [turned[side]], {})
    assert sizes["M"] == sizes["P"] + sizes["S"] and min(sizes["P"], sizes["S"]) >= 1
