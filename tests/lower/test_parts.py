"""Products of float32 by parts on a matrix unit, compiled: by tiles where this machine has them,
and by the multiply-adds that stand in for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.plan import chosen_plan
from graphtool.ir.trace import trace
from graphtool.kernels.choice.choose import choose, plans
from graphtool.kernels.choice.rules import rules_of
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.kernels.conv_grad_parts import CONV_GRAD_PARTS, OP, pays
from graphtool.kernels.conv_parts import CONV_PARTS
from graphtool.kernels.gemm import GEMM
from graphtool.kernels.gemm_parts import ENOUGH, GEMM_PARTS, GEMM_PARTS_MOVING
from graphtool.kernels.images import space
from graphtool.symbolic import Symbol, symbol_of
from graphtool.target import named
from tests.lower.test_amx import COPIED, TARGETS, Array

# the greatest error by so many parts, relative to the sum of the magnitudes of the terms; that of
# multiply-adds is up to this for sums of 1,100
ERROR = {3: 1e-6, 2: 4e-5}


def built(x: Array, w: Array, plan: Any, name: str, folder: Path, turned: bool = False) -> Path:
    """x·w + 1 by the kernel of a plan; x may be transposed in memory."""
    target = replace(TARGETS[name], threads=2)

    def function(x: Any) -> Any:
        x = o.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)) if turned else x
        constant, n = x.builder.constant(w), w.shape[-1]
        if plan.kind == GEMM.kind:
            return o.gemm(x, o.pack(constant, nr=target.nr), n=n, plan=plan) + 1.0
        if plan.kind == GEMM_PARTS_MOVING.kind:
            one = (1,) * x.ndim
            w_now = constant + o.slice(x, start=(0,) * x.ndim, limit=one, strides=one) * 0.0
            panels = o.pack(w_now, nr=target.nr)
            return o.gemm_parts_moving(x, panels, n=n, plan=plan) + 1.0
        panels = o.pack_parts(constant, nr=target.nr, parts=plan.get("parts", 3))
        return o.gemm_parts(x, panels, n=n, plan=plan) + 1.0
    graph = trace(function, [TensorType(dtypes.float32, x.shape)], ["x"])
    done = passes.run(Module(graph, ("y",)), "fold,fuse", supply={"target": target})
    return build(done, folder, target=target)


@pytest.mark.part(12)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "deep", "split", "parts", "form"), [
    *((*case, 1 + i % 2, 3, GEMM_PARTS) for i, case in enumerate(COPIED)),
    *((*case, 2 - i % 2, 3, GEMM_PARTS_MOVING) for i, case in enumerate(COPIED[1::2])),
    (45, 70, 100, 64, 1, 2, GEMM_PARTS), (45, 70, 100, 64, 1, 2, GEMM_PARTS_MOVING)],
    ids=lambda v: getattr(v, "kind", str(v)))
def test_products(m: int, n: int, k: int, deep: int, split: int, parts: int, form: Any,
                  turned: bool, target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(m + n + k)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((2, m, k), (2, k, n)))
    exact, size = x.astype(float) @ w, np.abs(x).astype(float) @ np.abs(w)
    plan = form.plan(split=split, deep=deep, near=40, parts=parts)
    given = np.ascontiguousarray(x.swapaxes(1, 2)) if turned else x
    folder = built(given, w, plan, target, tmp_path / "b", turned)
    for threads in (1, 2):
        (got,) = graphtool.load(folder, threads=threads)(x=given).values()
        assert (np.abs(got - 1.0 - exact) <= ERROR[parts] * (size + 1)).all()


# images with their padding, filters, strides, dilation, groups
CONVOLUTIONS = [((2, 8, 9, 70), (20, 70, 2, 3), (2, 1), (1, 2), 1),
                ((1, 16, 17, 8), (64, 8, 1, 5), (1, 2), (1, 1), 1),
                ((3, 15, 14, 64), (64, 64, 3, 3), (2, 2), (1, 1), 1),
                ((1, 20, 20, 3), (40, 3, 7, 7), (2, 2), (1, 1), 1),
                ((1, 12, 13, 64), (128, 32, 3, 3), (1, 1), (2, 2), 2),
                ((1, 1, 200, 32), (48, 32, 1, 7), (1, 1), (1, 3), 1),
                ((1, 1, 2, 3), (5, 3, 1, 1), (1, 1), (1, 1), 1)]


@pytest.mark.part(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize(("image", "filters", "strides", "dilation", "groups"), CONVOLUTIONS,
                         ids=str)
def test_convolutions(image: Any, filters: Any, strides: Any, dilation: Any, groups: int,
                      parts: int, target: str, tmp_path: Path) -> None:
    """Some pixels read an infinity or a NaN: where the definition has them, and nowhere else."""
    rng = np.random.default_rng(sum(image))
    x, w = spread(rng, image, 0), spread(rng, filters, 0)
    x[0, -1, -1, 0], x[0, 0, 0, -1] = np.inf, np.nan
    size = (groups, filters[0] // groups, *filters[1:])
    matrix = w.reshape(size).transpose(0, 3, 4, 2, 1).reshape(groups, -1, size[1])
    plan = CONV_PARTS.plan(parts=parts, deep=64 if parts == 3 else 768, split=parts - 1, near=40)

    def function(x: Any) -> Any:
        panels = o.pack_parts(x.builder.constant(matrix), nr=TARGETS[target].nr, parts=parts)
        return o.conv_parts(x, panels, channels=filters[0], window=filters[2:], strides=strides,
                            dilation=dilation, plan=plan) + 1.0
    graph = trace(function, [TensorType(dtypes.float32, x.shape)], ["x"])
    done = passes.run(Module(graph, ("y",)), "fold,fuse", supply={"target": TARGETS[target]})
    folder = build(done, tmp_path / "b", target=replace(TARGETS[target], threads=2))
    plain = trace(lambda x, w: o.conv(x, w, strides=strides, rhs_dilation=dilation, groups=groups,
                                      channels_last=True, padding=None) + 1.0,
                  [TensorType(dtypes.float64, s) for s in (image, filters)], ["x", "w"])
    (want,) = interp.run(Module(plain, ("y",)), {"x": x.astype(float), "w": w.astype(float)}
                         ).values()
    for threads in (1, 2):
        (got,) = graphtool.load(folder, threads=threads)(x=x).values()
        bound = ERROR[parts] * 40 * np.sqrt(matrix[0].size)
        np.testing.assert_allclose(got, want, rtol=0, atol=bound)


# images with their padding, filters, strides, dilation
GRADIENTS = [((2, 8, 9, 70), (20, 70, 2, 3), (2, 1), (1, 2)),
             ((3, 15, 14, 64), (64, 64, 3, 3), (2, 2), (1, 1)),
             ((1, 12, 13, 16), (40, 16, 3, 3), (1, 1), (2, 2)),
             ((2, 6, 5, 3), (33, 3, 3, 3), (1, 1), (1, 1))]


@pytest.mark.part(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("image", "filters", "strides", "dilation"), GRADIENTS, ids=str)
def test_gradients_of_weights(image: Any, filters: Any, strides: Any, dilation: Any,
                              special: bool, target: str, tmp_path: Path) -> None:
    """`special`: numbers that do not split, on both sides; and pixels are adjacent in memory."""
    rng = np.random.default_rng(sum(image))
    high, wide = space(TensorType(dtypes.float32, image), filters[2:], strides, dilation)
    x, g = spread(rng, image, 0), spread(rng, (image[0], high, wide, filters[0]), 0)
    if special:
        x[0, 0, 0, 0], x[-1, 1, 1, 1] = np.inf, 1e31
        g[0, 0, 1, 2], g[0, -1, -1, -1] = np.nan, -np.inf

    def function(g: Any, x: Any, op: Any, **more: Any) -> Any:
        rows = o.reshape(g, shape=(image[0] * high * wide, filters[0])) if not special else (
            o.transpose(o.reshape(g, shape=(filters[0], image[0] * high * wide)), perm=(1, 0)))
        return op(rows, x, window=filters[2:], strides=strides, dilation=dilation, **more) + 1.0
    kinds, names = [TensorType(dtypes.float32, v.shape) for v in (g, x)], ["g", "x"]
    plan = CONV_GRAD_PARTS.plan(parts=3, deep=64, split=1 + special, near=40)
    graph = trace(lambda g, x: function(g, x, o.conv_grad_parts, plan=plan), kinds, names)
    done = passes.run(Module(graph, ("y",)), "fold,fuse", supply={"target": TARGETS[target]})
    folder = build(done, tmp_path / "b", target=replace(TARGETS[target], threads=2))
    with np.errstate(invalid="ignore"):
        (want,) = interp.run(Module(trace(lambda g, x: function(g, x, OP.decompose), [
            TensorType(dtypes.float64, v.shape) for v in (g, x)], names), ("y",)),
            {"g": g.astype(float), "x": x.astype(float)}).values()
    for threads in (1, 2):
        (got,) = graphtool.load(folder, threads=threads)(g=g, x=x).values()
        np.testing.assert_allclose(got, want, rtol=1e-5 if special else 0,
                                   atol=ERROR[3] * 40 * np.sqrt(high * wide))


def spread(rng: np.random.Generator, shape: tuple[int, ...], by: Any) -> Array:
    """Numbers whose exponents have this standard deviation, but none that does not split."""
    x = rng.standard_normal(shape) * 2.0 ** (by * rng.standard_normal(shape))
    return np.clip(x, -2.0 ** 28, 2.0 ** 28).astype(np.float32)


def cancelling(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Rows whose second half is the first one, with the other sign and a little noise."""
    x = rng.standard_normal(shape).astype(np.float32)
    x[:, shape[1] // 2:] = -x[:, :shape[1] // 2] * np.float32(1 + 2 ** -20)
    return x


def test_the_error_is_that_of_multiply_adds(tmp_path: Path) -> None:
    """Wide exponents within a row and from row to row, tiny numbers, sums that cancel, terms of one
    sign: the error relative to the magnitudes of the terms is at most twice that of multiply-adds,
    or two units in the last place."""
    rng = np.random.default_rng(5)
    m, n, k = 70, 40, 600
    rows = 2.0 ** rng.integers(-120, 20, (m, 1))
    w = spread(rng, (k, n), 3)
    w[k // 2:] = w[:k // 2]
    inputs = [spread(rng, (m, k), 0), spread(rng, (m, k), 30), spread(rng, (m, k), 1) * rows,
              spread(rng, (m, k), 3) * 1e-41, cancelling(rng, (m, k)),
              np.abs(spread(rng, (m, k), 1)), np.eye(m, k, dtype=np.float32) * 1e-30]
    errors: dict[str, list[float]] = {}
    for plan in (GEMM.plan(nv=2), GEMM_PARTS.plan(), GEMM_PARTS_MOVING.plan()):
        model = graphtool.load(built(inputs[0], w, plan, "tiles", tmp_path / plan.kind))
        for x in (x.astype(np.float32) for x in inputs):
            (got,) = model(x=x).values()
            exact, size = x.astype(float) @ w + 1, np.abs(x).astype(float) @ np.abs(w) + 1
            errors.setdefault(plan.kind, []).append(float((np.abs(got - exact) / size).max()))
    for fma, *parts in zip(*errors.values(), strict=True):
        assert max(parts) <= max(2 * fma, 2.0 ** -22)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", [GEMM_PARTS, GEMM_PARTS_MOVING], ids=lambda f: f.kind)
def test_numbers_that_do_not_split(form: Any, target: str, tmp_path: Path) -> None:
    """NaN and infinities are where the definition has them, and what is large is multiplied too."""
    rng = np.random.default_rng(6)
    x, w = spread(rng, (150, 70), 0), spread(rng, (70, 40), 0)
    w[3, 5] = 0
    x[2, 3], x[40, 69], x[100], x[140, 8] = np.inf, np.nan, -np.inf, 1e37
    if form is GEMM_PARTS_MOVING:
        w[60, 39], w[5, 38], w[69, 37] = np.inf, np.nan, -1e31
    folder = built(x, w, form.plan(deep=32), target, tmp_path / "b")
    with np.errstate(invalid="ignore"):
        want = (x[:, :, None].astype(float) * w[None]).sum(1) + 1
    for threads in (1, 2):
        (got,) = graphtool.load(folder, threads=threads)(x=x).values()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        assert np.isnan(got[2, 5]) and np.isinf(got[2, 4]) and np.isnan(got[40]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_an_open_number_of_rows(target: str, tmp_path: Path) -> None:
    """None, few and many, at a distance that is open too. The weights stay floats, which another
    entry point can share."""
    w = spread(np.random.default_rng(7), (300, 256), 0)
    sizes = rows, apart = Symbol("B", 0, 400), Symbol("N", 300, 400)
    module = Module(trace(lambda x: o.matmul(x.take(1, 0, 300), x.builder.constant(w)), [
        TensorType(dtypes.float32, (symbol_of(rows), symbol_of(apart)))], ["x"]), ("y",),
                    symbols={s.name: s for s in sizes})
    done = passes.run(module, None, supply={"target": TARGETS[target]})
    assert [n.op.name for n in done.graph.nodes if n.op.name.startswith("gemm")] == [
        "gemm_parts_moving"]
    folder = build(done, tmp_path / "b", target=TARGETS[target])
    for count in (0, 1, 33, 400):
        x = spread(np.random.default_rng(count), (count, 307), 0)
        (got,) = graphtool.load(folder)(x=x).values()
        np.testing.assert_allclose(got, x[:, :300] @ w, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("value", [1.0, np.inf, np.nan, 1e9])
@pytest.mark.parametrize(("shape", "window"), [((256, 64), 1), ((1, 64, 16, 16), 1),
                                               ((1, 64, 41, 41), 2)], ids=str)
def test_weights_that_do_not_split_are_for_multiply_adds(shape: Any, window: int,
                                                         value: float) -> None:
    """Of layers and of convolutions."""
    w = np.ones((64 * window * window, 128), np.float32)
    w[5, 5] = value

    def function(x: Any) -> Any:
        if len(shape) == 2:
            return o.matmul(x, x.builder.constant(w))
        filters = x.builder.constant(w.T.reshape(128, 64, window, window).copy())
        return o.conv(x, filters, strides=(window, window), padding=None)
    module = Module(trace(function, [TensorType(dtypes.float32, shape)], ["x"]), ("y",))
    done = passes.run(module, None, supply={"target": TARGETS["tiles"]})
    split, whole = ("gemm_parts", "gemm") if window == 1 else ("conv_parts", "conv_direct")
    kernels = [n.op.name for n in done.graph.nodes if n.op.name.startswith(("gemm", "conv_"))]
    assert kernels == [split if value == 1 else whole]
    x = np.ones(shape, np.float32)
    (got,), (want,) = (interp.run(m, {"x": x}).values() for m in (done, module))
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(("site", "precision", "kind"), [
    (Product(1, 128, 768, 768), "default", "gemm_parts{split=2,near=1024,parts=3}"),
    (Product(1, 128, 768, 768), "high", "gemm_parts{split=2,near=1024,parts=2}"),
    (Product(1, 128, 768, 768), "strict", "gemm"), (Product(1, 128, 768, 768), "fast", "gemm_amx"),
    (Product(1, 128, 768, 768, large=True), "default", "gemm{nv=2}"),
    (Product(1, 1, 768, 768), "default", "gemm{nv=2,beside=4}"),
    (Product(1, 128, 768, 768, fixed=False), "default", "gemm_parts_moving"),
    (Product(1, 1024, 384, 1024, False), "default", "gemm_parts_moving"),
    (Product(1, 1024, 384, 1024, False, True), "default", "gemm_parts_moving"),
    (Product(1, 1024, 384, 1024, False, True), "strict", "gemm_blocked"),
    (Product(1, 128, 768, 768, dtype=dtypes.uint8), "default", "gemm_amx"),
    (Conv(1, 28, 28, 128, 128, 3, 3, 2, 2), "default", "conv_parts{split=1"),
    (Conv(1, 28, 28, 128, 128, 3, 3, 2, 2), "strict", "conv_direct"),
    (Conv(1, 28, 28, 128, 128, 3, 3, 2, 2, large=True), "default", "conv_direct"),
    (Conv(1, 112, 112, 3, 64, 7, 7, 2, 2), "default", "conv_direct")])
def test_what_is_chosen(site: Product | Conv, precision: str, kind: str) -> None:
    made = choose(site, named("amx", 1), rules_of(precision))
    assert str(chosen_plan(made)).startswith(kind)
    for other in ("x86-64-v4", "x86-64-v3", "x86-64", "generic"):
        assert "parts" not in str(chosen_plan(choose(site, named(other, 1), rules_of(precision))))
    unsure = choose(site, named("amx", 1), rules_of(precision, assume="nothing"))
    assert str(chosen_plan(unsure)) == str(chosen_plan(made))


def test_the_unit_takes_an_open_number_of_rows_where_splitting_weights_pays() -> None:
    """A run splits the weights again, which is much of the work where there are few columns."""
    target, rules = named("amx", 2), rules_of("default")
    wide, narrow = ([p for p in plans(Product(1, 4096, n, k, fixed=False), target, rules)
                     if p.kind == "gemm_parts_moving"] for n, k in ((768, 256), (64, 367)))
    assert [p.get("few", ENOUGH) for p in wide] == [ENOUGH]
    assert [p.get("few", ENOUGH) > 2 * ENOUGH for p in narrow] == [True]


@pytest.mark.parametrize(("site", "precision", "parts"), [
    (Conv(8, 14, 14, 256, 256, 3, 3), "default", 3), (Conv(8, 14, 14, 256, 256, 3, 3), "high", 2),
    (Conv(8, 28, 28, 64, 128, 3, 3, 2, 2), "default", 3),
    (Conv(8, 14, 14, 256, 256, 3, 3), "strict", 0),
    (Conv(8, 14, 14, 256, 16, 3, 3), "default", 0),
    (Conv(8, 14, 14, 256, 256, 3, 3, dtype=dtypes.bfloat16), "default", 0)])
def test_gradients_for_which_the_unit_is_chosen(site: Conv, precision: str, parts: int) -> None:
    plan = pays(site, named("amx", 1), rules_of(precision))
    assert (plan.get("parts", 3) if plan else 0) == parts
    assert pays(site, named("x86-64-v4", 1), rules_of(precision)) is None
