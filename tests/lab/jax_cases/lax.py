"""jax.lax: the primitives that StableHLO has operations for, in their general forms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.lab.jax_cases import Case, f, ints, unit, words

_ELEMENT = words("""
    abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma
    erf erfc erf_inv exp expm1 floor is_finite lgamma log log1p logistic neg reciprocal
    round rsqrt sign sin sinh sqrt square tan tanh
""")


def _lax(name: str, fn: Any, *args: Any, tolerance: float = 2e-5) -> Case:
    return Case(f"lax.{name}", fn, args, tolerance)


def _conv(name: str, x: Any, w: Any, **how: Any) -> Case:
    return _lax(f"conv {name}", lambda a, b: lax.conv_general_dilated(a, b, **how), x, w)


_IMAGE, _KERNEL = f(2, 4, 9, 8), f(6, 4, 3, 3, seed=1)
_WINDOW = {"window_dimensions": (1, 3, 2), "window_strides": (1, 2, 1)}
CASES: list[Case] = [
    *(_lax(n, getattr(lax, n), unit(3, 5) + (1 if n == "acosh" else 0)) for n in _ELEMENT),
    _lax("igamma", lambda a, x: [lax.igamma(a, x), lax.igammac(a, x)], unit(5) * 3, unit(5) * 4),
    _lax("polygamma", lambda x: lax.polygamma(jnp.full_like(x, 1.0), x), unit(5) + 1,
         tolerance=1e-4),
    _lax("betainc", lax.betainc, unit(5) * 3, unit(5, seed=1) * 3, unit(5, seed=2),
         tolerance=1e-4),
    _lax("zeta", lax.zeta, unit(5) + 2, unit(5, seed=1) + 1, tolerance=1e-4),
    _lax("population_count", lambda i: [lax.population_count(i), lax.clz(i)],
         ints(999, 7, low=-999)),
    _lax("shift", lambda i: [lax.shift_left(i, jnp.int32(3)), lax.shift_right_logical(
        i, jnp.int32(3)), lax.shift_right_arithmetic(i, jnp.int32(3))], ints(99, 7, low=-99)),
    _lax("bitcast_convert_type", lambda x: [
        lax.bitcast_convert_type(x, jnp.int32), lax.bitcast_convert_type(x, jnp.uint8),
        lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.int16), jnp.float32)], f(3, 4)),
    _lax("convert_element_type", lambda x: [x.astype(t) for t in (
        jnp.int32, jnp.uint8, jnp.bool_, jnp.float16, jnp.bfloat16, jnp.int8)], unit(3, 4) * 100),
    _lax("reduce_precision", lambda x: [lax.reduce_precision(x, 5, 10),
                                        lax.reduce_precision(x, 8, 7)], f(3, 4)),
    _lax("clamp", lambda x: lax.clamp(-0.5, x, x[0, 0]), f(3, 4)),
    _lax("select_n", lambda i, x: lax.select_n(i, x, 2 * x, 3 * x), ints(3, 3, 4), f(3, 4)),
    _lax("pad", lambda x, v: [lax.pad(x, v, ((1, 2, 0), (-1, 3, 1))),
                              lax.pad(x, jnp.float32(3), ((-1, -1, 2), (0, 0, 0)))],
         f(4, 5), f()),
    _lax("rev", lambda x: lax.rev(x, (0, 2)), f(2, 3, 4)),
    _lax("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4, 5), (1, 3)), f(3, 5)),
    _lax("iota", lambda x: lax.broadcasted_iota(jnp.float32, (3, 4), 0) + x, f(3, 4)),
    _lax("dot_general", lambda a, b: [
        lax.dot_general(a, b, (((1, 3), (3, 0)), ((0,), (1,)))),
        lax.dot_general(a, b, (((3,), (0,)), ((), ())))], f(2, 3, 4, 5), f(5, 2, 6, 3, seed=1)),
    _lax("dot_general types", lambda a, b: [
        lax.dot_general(a.astype(t), b.astype(t), (((1,), (0,)), ((), ())),
                        preferred_element_type=u) for t, u in (
            (jnp.bfloat16, jnp.float32), (jnp.int8, jnp.int32), (jnp.bfloat16, jnp.bfloat16))],
         f(4, 5) * 9, f(5, 3, seed=1) * 9),
    _conv("plain", _IMAGE, _KERNEL, window_strides=(1, 1), padding="SAME"),
    _conv("strided", _IMAGE, _KERNEL, window_strides=(2, 3), padding=((1, 2), (0, 1))),
    _conv("dilated", _IMAGE, _KERNEL, window_strides=(1, 1), padding="VALID",
          rhs_dilation=(2, 3)),
    _conv("transposed", _IMAGE, _KERNEL, window_strides=(1, 1), padding=((2, 2), (1, 3)),
          lhs_dilation=(2, 3)),
    _conv("cropped", _IMAGE, _KERNEL, window_strides=(1, 1), padding=((-1, 2), (0, -2))),
    _conv("grouped", _IMAGE, f(6, 2, 3, 3, seed=1), window_strides=(1, 1), padding="SAME",
          feature_group_count=2),
    _conv("depthwise", _IMAGE, f(8, 1, 3, 3, seed=1), window_strides=(1, 1), padding="SAME",
          feature_group_count=4),
    _conv("batch groups", _IMAGE, f(6, 4, 3, 3, seed=1), window_strides=(1, 1), padding="SAME",
          batch_group_count=2),
    _conv("NHWC", f(2, 9, 8, 4), f(3, 3, 4, 6, seed=1), window_strides=(2, 1), padding="SAME",
          dimension_numbers=("NHWC", "HWIO", "NHWC")),
    _conv("1d", f(2, 4, 9), f(6, 4, 3, seed=1), window_strides=(1,), padding="SAME"),
    _conv("3d", f(1, 2, 5, 6, 4), f(3, 2, 2, 3, 2, seed=1), window_strides=(1, 2, 1),
          padding="SAME"),
    _conv("mixed axes", f(9, 2, 8, 4), f(4, 3, 6, 3, seed=1), window_strides=(1, 2),
          padding="SAME", dimension_numbers=("HNWC", "IHOW", "CWNH")),
    _lax("conv types", lambda x, w: [lax.conv_general_dilated(
        x.astype(t), w.astype(t), (1, 1), "SAME", preferred_element_type=u) for t, u in (
            (jnp.bfloat16, jnp.float32), (jnp.int8, jnp.int32), (jnp.float16, jnp.float16))],
         _IMAGE * 9, _KERNEL * 9),
    _lax("conv gradients", jax.grad(lambda x, w: lax.conv_general_dilated(
        x, w, (2, 2), "SAME", rhs_dilation=(1, 2)).sum(), (0, 1)), _IMAGE, _KERNEL),
    _lax("conv_transpose", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), f(1, 5, 6, 3),
         f(3, 3, 3, 4, seed=1)),
    *(_lax(f"reduce_window {n}", lambda x, fn=fn, i=i: lax.reduce_window(
        x, np.float32(i), fn, padding="SAME", **_WINDOW), f(2, 7, 6)) for n, fn, i in (
            ("add", lax.add, 0), ("max", lax.max, -np.inf), ("min", lax.min, np.inf),
            ("mul", lax.mul, 1))),
    _lax("reduce_window dilated", lambda x: lax.reduce_window(
        x, np.float32(0), lax.add, padding=((0, 0), (1, 2), (2, 0)), base_dilation=(1, 2, 1),
        window_dilation=(1, 1, 2), **_WINDOW), f(2, 7, 6)),
    _lax("reduce_window other", lambda x: lax.reduce_window(
        x, np.float32(0), lambda a, b: a + b + a * b, padding="VALID", **_WINDOW), unit(2, 7, 6)),
    _lax("select_and_scatter", jax.grad(lambda x: (lax.reduce_window(
        x, -np.inf, lax.max, padding="SAME", **_WINDOW) ** 2).sum()), f(2, 7, 6)),
    _lax("reduce_window gradients", jax.grad(lambda x: (lax.reduce_window(
        x, 0.0, lax.add, padding="SAME", **_WINDOW) ** 2).sum()), f(2, 7, 6)),
    _lax("reduce", lambda x: [
        lax.reduce(x, np.float32(1), lambda a, b: a * b + a + b, (0, 2)),
        *lax.reduce((x, 2 * x), (np.float32(0), np.float32(1)), lambda a, b: (
            a[0] + b[0], a[1] * b[1]), (1,))], unit(2, 3, 4)),
    _lax("reduce_xor", lambda i: lax.reduce_xor(i, (0,)), ints(99, 5, 3)),
    _lax("argmax", lambda x: [lax.argmax(x, 1, jnp.int32), lax.argmin(x, 0, jnp.int32)], f(4, 5)),
    _lax("cumulative", lambda x: [g(x, axis=1, reverse=r) for r in (False, True) for g in (
        lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)], f(3, 6)),
    _lax("associative_scan", lambda x: lax.associative_scan(lambda a, b: a * b + b, x), unit(7, 2)),
    _lax("sort", lambda x, i: [
        lax.sort(x, dimension=0), *lax.sort((i, x), num_keys=2), *lax.sort((x, i), num_keys=1)],
        f(4, 6), ints(3, 4, 6)),
    _lax("sort nan", lambda x: lax.sort(jnp.where(x > 1, jnp.nan, jnp.where(x < -1, -0.0, x))),
         f(20)),
    _lax("top_k", lambda x: lax.top_k(x, 3), f(3, 7)),
    _lax("approx_max_k", lambda x: lax.approx_max_k(x, 3), f(3, 7)),
    _lax("dynamic_slice", lambda x, i: [
        lax.dynamic_slice(x, (i[0], i[1]), (2, 3)), lax.dynamic_update_slice(
            x, 2 * x[:2, :3], (i[1], i[0])), lax.dynamic_index_in_dim(x, i[0])], f(4, 5),
         np.array([1, 9], np.int32)),
    _lax("gather", lambda x, i: [
        lax.gather(x, i, lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (2, 3)),
        lax.gather(x, i, lax.GatherDimensionNumbers((1,), (0,), (0, 1)), (1, 4)),
        lax.gather(x, i, lax.GatherDimensionNumbers((0,), (1,), (1, 0)), (3, 1), mode="fill")],
        f(5, 6), ints(6, 4, 2)),
    _lax("gather batched", jax.vmap(lambda x, i: lax.gather(
        x, i, lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3))), f(2, 5, 6), ints(5, 2, 4, 1)),
    _lax("scatter", lambda x, i, u: [g(x, i, u, lax.ScatterDimensionNumbers((1, 2), (), (0, 1)))
                                     for g in (lax.scatter_add, lax.scatter_mul, lax.scatter_min,
                                               lax.scatter_max)],
         f(5, 6), ints(6, 4, 2), f(4, 2, 3, seed=1)),
    _lax("scatter batched", jax.vmap(lambda x, i, u: lax.scatter_add(
        x, i, u, lax.ScatterDimensionNumbers((1,), (0,), (0,)))), f(2, 5, 6), ints(7, 2, 4, 1),
        f(2, 4, 3, seed=1)),
    _lax("while_loop", lambda x: lax.while_loop(
        lambda c: (c[1].sum() < 50) & (c[0] < 20), lambda c: (c[0] + 1, c[1] * 1.5 + jnp.abs(x)),
        (0, x)), f(3, 4)),
    _lax("fori_loop", lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x), f(3, 4)),
    _lax("scan", lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), x), f(5, 4)),
    _lax("scan reversed", lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), x,
                                             reverse=True), f(5, 4)),
    _lax("map", lambda x: lax.map(lambda r: jnp.sort(r)[1], x), f(5, 4)),
    _lax("cond", lambda x: lax.cond(x.sum() > 0, lambda y: y + x[0], lambda y: y * 2, x), f(3, 4)),
    _lax("switch", lambda i, x: [lax.switch(k, [lambda y: y + 1, lambda y: y * i[1], jnp.sin,
                                                lambda y: y - i[0]], x) for k in i],
         np.array([-2, 0, 1, 2, 3, 9], np.int32), f(3)),
    _lax("rng_bit_generator", lambda k: lax.rng_bit_generator(k, (5, 3), jnp.uint32),
         np.arange(4, dtype=np.uint32)),
    _lax("fft", lambda x: jnp.abs(lax.fft(x.astype(jnp.complex64), lax.FftType.FFT, (4, 8))),
         f(2, 4, 8)),
    _lax("linalg.triangular_solve", lambda a, b: [lax.linalg.triangular_solve(
        a + 3 * jnp.eye(4), b, left_side=True, lower=lo, transpose_a=t, unit_diagonal=u)
        for lo in (True, False) for t in (True, False) for u in (True, False)],
        f(4, 4), f(4, 2, seed=1), tolerance=1e-4),
    _lax("linalg.cholesky", lambda x: lax.linalg.cholesky(x @ x.T + jnp.eye(4)), f(4, 4)),
]
