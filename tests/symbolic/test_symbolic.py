"""Dimensions as polynomials: arithmetic, simplification by bounds, text, against plain integers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtool import symbolic as s
from graphtool.errors import InputError
from graphtool.symbolic.parse import parse
from tests.growth import calls

B, T = s.symbol("B", 1, 8), s.symbol("T", 0, None)
N, K = s.symbol("N", 2), s.symbol("K", 1)
I = s.symbol("i", 0, None, T)  # noqa: E741  (a loop over T)
TABLE = {"B": B, "T": T, "i": I}
LEAVES = st.one_of(st.integers(-6, 6), st.sampled_from([B, T, I]))


def grow(children: st.SearchStrategy[s.Dim]) -> st.SearchStrategy[s.Dim]:
    pair = st.tuples(children, children)
    by = st.tuples(children, st.integers(1, 6))
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]), pair.map(lambda p: p[0] - p[1]),
        pair.map(lambda p: p[0] * p[1]), by.map(lambda p: s.floordiv(*p)),
        by.map(lambda p: s.mod(*p)), pair.map(lambda p: s.minimum(*p)),
        pair.map(lambda p: s.maximum(*p)), by.map(lambda p: s.floordiv(p[0], B) + p[1]))


DIMS = st.recursive(LEAVES, grow, max_leaves=6)
SIZES = st.integers(1, 9).flatmap(lambda t: st.tuples(
    st.integers(1, 8), st.just(t), st.integers(0, t - 1)))


@settings(max_examples=300, deadline=None)
@given(DIMS, SIZES)
def test_text_reads_back(d: s.Dim, sizes: tuple[int, int, int]) -> None:
    env = dict(zip("BTi", sizes, strict=True))
    assert s.substitute(parse(s.text(d), TABLE), env) == s.substitute(d, env)


@settings(max_examples=300, deadline=None)
@given(st.tuples(DIMS, DIMS), st.integers(1, 7), SIZES)
def test_simplification_keeps_values(pair: tuple[s.Dim, s.Dim], n: int,
                                     sizes: tuple[int, int, int]) -> None:
    env = dict(zip("BTi", sizes, strict=True))
    a, b = (s.substitute(d, env) for d in pair)
    assert isinstance(a, int) and isinstance(b, int)
    for got, want in ((s.floordiv(pair[0], n), a // n), (s.mod(pair[0], n), a % n),
                      (s.minimum(*pair), min(a, b)), (s.maximum(*pair), max(a, b)),
                      (pair[0] * pair[1], a * b)):
        assert s.substitute(got, env) == want


@settings(max_examples=300, deadline=None)
@given(DIMS, SIZES)
def test_bounds_hold(d: s.Dim, sizes: tuple[int, int, int]) -> None:
    value = s.substitute(d, dict(zip("BTi", sizes, strict=True)))
    lo, hi = s.bounds(d)
    assert isinstance(value, int)
    assert (lo is None or lo <= value) and (hi is None or value <= hi)


@pytest.mark.parametrize(("size", "want"), [
    ((N - 2) * (N - 2), (0, None)), (N * (N - 2) * (N - 2) * 8, (0, None)),
    (3 * (N - 1) * (K - 1) - 4, (-4, None)), ((1 - N) * K, (None, -1)),
    ((N - 3) * (N - 3), (None, None))])
def test_bounds_of_products(size: s.Dim, want: tuple[int | None, int | None]) -> None:
    assert s.bounds(size) == want


@pytest.mark.parametrize(("size", "want"), [
    (N - s.floordiv(N, 2), (1, None)), (s.floordiv(N, 2) - N, (None, -1)),
    (3 * s.floordiv(N + K, 3) - N - K, (-2, 0)), (s.floordiv(T + 5, 4) * 4 - T, (2, 5))])
def test_bounds_of_quotients(size: s.Dim, want: tuple[int | None, int | None]) -> None:
    assert s.bounds(size) == want


@pytest.mark.parametrize(("got", "want"), [
    ((I * 128 + s.symbol("j", 0, 127)) // 128, I),
    ((B * T) // T, B), (s.mod(B * 4 + 3, 4), 3), (s.floordiv(B * 4 + 3, 4), B),
    (s.minimum(I, T - 1), I), (s.maximum(B, 1), B), (B - B, 0)])
def test_simplifies(got: s.Dim, want: s.Dim) -> None:
    assert got == want


def test_undecided_comparisons_raise() -> None:
    with pytest.raises(InputError, match="cannot decide"):
        _ = T > B


def test_only_the_relations_that_are_told_apart_are_decided() -> None:
    assert s.known(T, "<=", T + 1) is s.known(T, "<", T + 1) is True
    with pytest.raises(KeyError):
        s.known(T, ">=", T + 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["", "B +", "(B", "B B", "unknown", "B // 0", "__import__('os')",
                                    "1.5", "B ** 2", "(" * 5000])
def test_bad_text_is_one_coded_error(source: str) -> None:
    with pytest.raises(InputError, match="cannot read"):
        parse(source, TABLE)


def test_a_product_of_negative_sizes_is_bounded() -> None:
    assert s.bounds(-s.floordiv(-s.symbol("n", 1), 2)) == (1, None)
    n, m = s.floordiv(-s.symbol("n", 1), 2), s.floordiv(-s.symbol("m", 3), 2)  # at most -1 and -2
    assert s.bounds(n * m) == (2, None)
    assert s.known(n * m, "==", 0) is False


def halved(d: s.Dim, times: int) -> s.Dim:
    for _ in range(times):
        d = s.floordiv(d + 1, 2)
    return d


def test_bounds_of_many_quotients_take_few_steps() -> None:
    """As the sizes of a detector's levels: the number of their orders is not that of the steps."""
    sizes = [s.dim_of(s.Symbol(name, 1)) for name in "HW"]
    total: s.Dim = sum((-1) ** n * 3 * halved(d + n, n) for d in sizes for n in range(2, 7))
    assert calls(lambda: s.bounds(total)) < 20_000
    assert s.bounds(total)[0] == -7
