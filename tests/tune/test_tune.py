"""Every candidate of a site computes the same, and what tune measures is what builds take."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.errors import CompilerError
from graphtool.io.manifest_rows import Choice
from graphtool.ir.plan import Plan, chosen_plan
from graphtool.kernels.choice.choose import choose, plans
from graphtool.kernels.choice.rules import Rules, rules_of
from graphtool.kernels.choice.sites import (
    Attention,
    Conv,
    Packed,
    Product,
    Recurrence,
    Site,
)
from graphtool.kernels.choice.tuning import Tuning, merged, row
from graphtool.native import runtime
from graphtool.report.tuned import stale_line
from graphtool.target import named
from graphtool.tune import measure, search

T = replace(named("native"), threads=2, dot8=True)
SITES = [Conv(1, 9, 11, 24, 40, 3, 3), Conv(2, 8, 6, 48, 48, 3, 3, groups=48),
         Conv(1, 9, 9, 16, 33, 3, 3, dh=5, dw=4, above=5, below=5, left=4, right=4),
         Conv(1, 7, 7, 32, 32, 5, 5, 2, 2, groups=32), Conv(1, 6, 5, 16, 33, 3, 3, 2, 2),
         Product(1, 3, 130, 70), Product(1, 40, 70, 5000), Product(3, 9, 33, 20, False, True),
         Attention(3, 19, 2050, 16, 48), Attention(4, 9, 1030, 8, 8, 2, True),
         Attention(1, 12, 31, 20, 40, masked=True)]


U8, I16 = dtypes.uint8, dtypes.int16
INTEGERS = [
    Conv(1, 9, 11, 24, 40, 3, 3, dtype=U8), Conv(2, 8, 6, 48, 48, 3, 3, groups=48, dtype=U8),
    Conv(1, 9, 11, 24, 40, 3, 3, dtype=I16), Conv(1, 6, 5, 16, 33, 3, 3, 2, 2, dtype=I16),
    Product(1, 3, 130, 70, dtype=U8), Product(1, 40, 70, 33, dtype=I16),
    Product(3, 9, 33, 20, False, dtype=U8)]


@pytest.mark.part(6)
@pytest.mark.parametrize("site", [*SITES, *INTEGERS], ids=str)
def test_every_candidate_computes_the_same(site: Site, tmp_path: Path) -> None:
    module = measure.model(site)
    inputs = made_up.random_inputs(module, 0, {})
    want = interp.run(module, inputs)["y"]
    for i, c in enumerate(plans(site, T, Rules())):
        rules = Rules(tuning=merged([row(site, T, {c: 1.0})]))
        ready = passes.run(module, measure.PASSES, supply={"target": T, "rules": rules})
        assert any(n.attrs.get("plan") == c for n in ready.graph.nodes)
        got = runtime.load(build(ready, tmp_path / str(i), target=T)).run(inputs)["y"]
        assert np.allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max()), str(c)
        assert site not in INTEGERS or np.array_equal(got, want), str(c)


HALF = [replace(s, dtype=kind) for s in (SITES[0], SITES[1], SITES[5]) for kind in dtypes.HALVES]


PACKED = [Packed(1, 40, 100), Packed(20, 33, 64, 8, 16, True, q8=True),
          Packed(3, 20, 128, 2, 64, constant=False)]


@pytest.mark.part(4)
@pytest.mark.parametrize("site", [*HALF, *PACKED], ids=str)
@pytest.mark.parametrize("bf16", [False, True])
def test_sites_of_few_bits_are_measured_as_such(
        site: Site, bf16: bool, tmp_path: Path) -> None:
    """The model of a site has that very site; its candidates compute the same, and get a time."""
    target = replace(T, bf16=bf16)
    module = measure.model(site)
    inputs = made_up.random_inputs(module, 0, {})
    want = interp.run(module, inputs)["y"].astype(np.float64)
    allowed = plans(site, target, rules_of("fast"))
    for c in {allowed[0], allowed[-1]}:
        rules = replace(rules_of("fast"), tuning=merged([row(site, target, {c: 1.0})]))
        ready = passes.run(module, measure.PASSES, supply={"target": target, "rules": rules})
        assert list(ready.choices.values()) == [Choice(str(site), "tuned", {str(c): 1.0})]
        got = runtime.load(build(ready, tmp_path / str(c), target=target)).run(inputs)["y"]
        assert np.allclose(got.astype(np.float64), want, rtol=1e-2, atol=1e-2 * np.abs(want).max())
    times = measure.measure(site, allowed[:1], target, rules_of("fast"), seconds=0.01)
    assert times[allowed[0]] > 0


def test_tune_measures_keeps_and_checks(tmp_path: Path) -> None:
    how = search.Search(T, rules_of(), 0.01)
    module = measure.model(SITES[0])
    ready = passes.run(module, measure.PASSES, supply={"target": T})
    todo = search.sites(ready.choices.values(), how)
    kept: list[Tuning] = []
    (found,) = search.tune(todo, how, None, kept.append, Tuning())
    assert found.best in found.candidates and found.us == found.candidates[found.best]
    tuned = Rules(tuning=kept[-1])
    again = passes.run(module, measure.PASSES, supply={"target": T, "rules": tuned})
    (made,) = again.choices.values()
    assert (made.by, str(chosen_plan(made))) == ("tuned", found.best)


def test_a_choice_that_is_no_longer_best(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *rest = plans(SITES[0], T, Rules())
    known = merged([row(SITES[0], T, {first: 1.0, rest[0]: 2.0})])
    now = {**dict.fromkeys(rest, [2.0] * 9), first: [3.0] * 9, rest[0]: [1.5] * 9}
    monkeypatch.setattr(search, "calls_of", lambda *_, **__: now)
    how = search.Search(T, Rules(tuning=known))
    (found,) = search.check(known, how)
    assert (found.refuted, found.usual, found.best) == (True, str(first), str(rest[0]))
    assert (found.low, found.high) == (2.0, 2.0) and stale_line(found) == (
        f"{first} takes 2.00 times as long as {rest[0]} (2.00 to 2.00 with 95 % confidence)")
    assert not list(search.check(known, replace(how, target=replace(T, threads=1))))


@pytest.mark.parametrize(("usual", "best", "refuted"), [
    ([3.0] * 9, [1.5] * 9, True),
    ([3.0] * 5, [1.5] * 5, False),  # too few calls for bounds
    ([3.0, 1.4] * 10, [1.5, 2.9] * 10, False),  # whichever is first in a spell of noise
    ([1.56] * 9, [1.5] * 9, False)])  # less than the builds differ anyway
def test_noise_refutes_nothing(usual: list[float], best: list[float], refuted: bool,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    first, *rest = plans(SITES[0], T, Rules())
    known = merged([row(SITES[0], T, {first: 1.0, rest[0]: 2.0})])
    monkeypatch.setattr(search, "calls_of", lambda *_, **__: {
        **dict.fromkeys(rest, [9.0] * len(best)), first: usual, rest[0]: best})
    (found,) = search.check(known, search.Search(T, Rules(tuning=known)))
    assert found.refuted == refuted


def test_bytes_of_weights_count_in_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger tile that is faster, by less than what its weights are worth, refutes nothing."""
    site = Conv(1, 14, 14, 256, 256, 3, 3)
    small, large = (next(c for c in plans(site, T, Rules()) if c.get("tile", 0) == tile)
                    for tile in (2, 4))
    known = merged([row(site, T, {small: 100.0, large: 85.0})])
    how = search.Search(T, Rules(tuning=known))
    for now, best, refuted in ((80.0, small, False), (73.0, large, False), (50.0, large, True)):
        times = {small: [100.0] * 9, large: [now] * 9}
        monkeypatch.setattr(search, "calls_of", lambda *_, times=times, **__: times)
        (found,) = search.check(known, how)
        assert (found.usual, found.best, found.refuted) == (str(small), str(best), refuted)


def test_nothing_is_measured_without_time() -> None:
    how = search.Search(T, Rules())
    assert not list(search.tune({SITES[0]: 1}, how, 0.0, lambda _: None, Tuning()))


def test_sites_without_alternatives_are_left_out() -> None:
    how = search.Search(replace(T, threads=1), Rules())
    product, conv = Product(1, 8, 64, 64), Conv(1, 8, 8, 32, 32, 3, 3)
    found = [choose(s, how.target, Rules()) for s in (product, conv, conv)]
    assert search.sites([*found, None], how) == {conv: 2}


def test_a_recurrence_is_left_alone() -> None:
    """It has alternatives with costs, but no model of it alone that could be measured."""
    how, found = search.Search(T, Rules()), Recurrence(20, 1, 256, 64)
    made = choose(found, T, Rules())
    assert len(made.us) > 1 and not search.sites([made], how)
    known = merged([row(found, T, {chosen_plan(made): 1.0})])
    assert not list(search.check(known, how))


def test_lines_are_json_with_a_key() -> None:
    line = row(SITES[0], T, {Plan("conv_direct"): 1.5})
    assert json.loads(json.dumps(line.us)) == {"conv_direct": 1.5} and line.threads == 2


@pytest.mark.part(2)
@pytest.mark.parametrize("site", [Product(1, 1, 130, 71), Product(1, 37, 70, 64),
                                  Product(1, 5, 16, 33)], ids=str)
@pytest.mark.parametrize("march", ["native", "x86-64-v3", "generic"])
def test_bfloat16_products(site: Product, march: str, tmp_path: Path) -> None:
    """Compiled code is what the evaluator says of the same rounded operands, at every width."""
    target = replace(named(march), bf16=True)
    module = measure.model(site)
    c = next(c for c in plans(site, target, rules_of("fast")) if c.kind == "gemm_bf16")
    rules = replace(rules_of("fast"), tuning=merged([row(site, target, {c: 1.0})]))
    ready = passes.run(module, measure.PASSES, supply={"target": target, "rules": rules})
    assert any(n.op.name == "gemm_bf16" for n in ready.graph.nodes)
    inputs = made_up.random_inputs(module, 0, {})
    want, exact = interp.run(ready, inputs)["y"], interp.run(module, inputs)["y"]
    assert 1e-3 < np.sqrt(np.mean((want - exact) ** 2) / np.mean(exact ** 2)) < 1e-2
    got = runtime.load(build(ready, tmp_path / "b", target=target)).run(inputs)["y"]
    assert np.allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_bfloat16_keeps_nan_and_infinity(tmp_path: Path) -> None:
    ready = passes.run(measure.model(Product(1, 8, 64, 64)), measure.PASSES, supply={
        "target": replace(T, bf16=True), "rules": rules_of("fast")})
    x = np.ones((8, 64), np.float32)
    x[0, 0], x[1, 1] = np.nan, np.inf
    y = runtime.load(build(ready, tmp_path / "b", target=T)).run({"x": x})["y"]
    assert np.isnan(y[0]).all() and np.isinf(y[1]).all() and np.isfinite(y[2:]).all()


def test_large_products_by_a_library(tmp_path: Path) -> None:
    pytest.importorskip("scipy_openblas32")
    module = measure.model(Product(1, 40, 70, 65))
    ready = passes.run(module, measure.PASSES, supply={
        "target": T, "rules": rules_of(kernels="blas")})
    assert any(n.op.name == "blas" for n in ready.graph.nodes)
    inputs = made_up.random_inputs(module, 0, {})
    want = interp.run(module, inputs)["y"]
    model = runtime.load(build(ready, tmp_path / "b", target=T), 2)
    assert np.allclose(model.run(inputs)["y"], want, rtol=1e-4, atol=1e-4)


def test_a_missing_library_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphtool.native.objects.supports", lambda *_, **__: False)
    monkeypatch.setattr("graphtool.native.objects.find_spec", lambda _: None)
    ready = passes.run(measure.model(Product(1, 40, 70, 65)), measure.PASSES, supply={
        "target": T, "rules": rules_of(kernels="blas")})
    with pytest.raises(CompilerError, match="GT2130") as caught:
        build(ready, tmp_path / "b", target=T)
    assert "libopenblas-dev" in str(caught.value.hint)


def test_sites_of_integers_are_timed() -> None:
    """The model of a site has that very site, for machines with and without dot products."""
    for site, dot8 in ((INTEGERS[0], True), (INTEGERS[2], False), (INTEGERS[6], True)):
        target = replace(T, dot8=dot8)
        ready = passes.run(measure.model(site), measure.PASSES, supply={"target": target})
        (made,) = ready.choices.values()
        assert (made.site, made.by) == (str(site), "cost")
        assert site in search.sites([made], search.Search(target, Rules()))
    times = measure.measure(INTEGERS[0], plans(INTEGERS[0], T, Rules())[:2], T, Rules(),
                            seconds=0.01)
    assert all(us > 0 for us in times.values())
