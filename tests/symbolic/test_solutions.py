"""Sizes that satisfy equations are found where there are some, each near what was asked for."""

from __future__ import annotations

import pytest

from graphtool.symbolic import Dim, Equation, Symbol, dim_of, floordiv, minimum, mod
from graphtool.symbolic.bounding import with_bounds
from graphtool.symbolic.checks import sample_sizes, solutions
from graphtool.symbolic.equations import equal_or_one

SYMBOLS = {n: Symbol(n, 1) for n in "BHKMNW"}
B, H, K, M, N, W = map(dim_of, SYMBOLS.values())
SYSTEMS = {
    "a divisor of a product": [(mod(B * (K + 15), 527), 0)],
    "a quotient": [(B * (K + 15), floordiv(B * (K + 15), 527) * 527)],
    "two groups": [(mod(B * (K + 15), 97), 0), (mod(H * W + H, 35), 0)],
    "three sizes": [(mod(B * H + W, 211), 0)],
    "equal or 1": [equal_or_one(SYMBOLS["M"], SYMBOLS["N"])],
    "named by another": [(M, N + 3), (mod(N * B, 64), 0)],
    "a product that is a number": [(B * K, 512)],
    "a product of two primes": [(B * K, 1009), (M * N, 127 * 131)],
    "three factors": [(B * K * N, 7 * 64 * 9)],
    "a square": [(mod(N * N + M, 101), 0)],
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_sizes_are_found(name: str) -> None:
    rows = [Equation(a, b) for a, b in SYSTEMS[name]]
    found = sample_sizes(SYMBOLS, rows, {})
    several = list(solutions(SYMBOLS, rows, dict.fromkeys(SYMBOLS, 5)))
    assert several
    for env in (found, *several):
        assert not any(e.breach(env) for e in rows) and min(env.values()) >= 1


def test_bounds_and_what_is_given_count() -> None:
    rows = [Equation(mod(B * (K + 15), 527), 0)]
    bounded = SYMBOLS | {"K": Symbol("K", 1, 100), "B": Symbol("B", 1, 40, None, 2, 0)}
    env = sample_sizes(bounded, rows, {})
    assert env["K"] <= 100 and env["B"] % 2 == 0 and not rows[0].breach(env)
    assert sample_sizes(SYMBOLS, rows, {"B": 7})["B"] == 7
    two = SYMBOLS | {"M": Symbol("M", 2), "N": Symbol("N", 2)}
    env = sample_sizes(two, [Equation(M * N, 37 * 41)], {})
    assert {env["M"], env["N"]} == {37, 41}
    tight = SYMBOLS | {"K": Symbol("K", 1, 2), "B": Symbol("B", 1, 30)}
    assert not list(solutions(tight, rows, dict.fromkeys(SYMBOLS, 2)))


TWICE = floordiv(floordiv(floordiv(H + 1, 2) + 1, 2) + 1, 2)
BOUNDED: dict[str, tuple[Dim, Dim, tuple[int, int | None] | None]] = {
    "a quotient": (1, floordiv(TWICE + 1, 6), (33, 80)),
    "a quotient of more": (floordiv(H, 7), 2, (14, 20)),
    "no more than": (minimum(8, H), H, (1, 8)),
    "no less than": (minimum(8, H), 8, (8, None)),
    "nothing of it alone": (H * 2, W * 3, None),
    "never": (floordiv(H, 7) + 3, 2, None),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_follow_from_equations(name: str) -> None:
    left, right, want = BOUNDED[name]
    row = Equation(left, right)
    found = with_bounds([row], SYMBOLS)
    assert found == ({} if want is None else {"H": want})
    if want is None:
        return
    low, high = want
    outside = [*range(1, low), *(() if high is None else range(high + 1, high + 200))]
    assert all(row.breach({"H": n}) for n in outside)
    inside = dim_of(Symbol("H", low, high))
    assert row.under({"H": inside}).holds


def test_a_stepped_size_is_bounded_too() -> None:
    even = Symbol("H", 2, 100, None, 4, 2)
    assert with_bounds([Equation(floordiv(dim_of(even), 10), 1)], {"H": even}) == {"H": (10, 18)}
