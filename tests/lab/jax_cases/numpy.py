"""jax.numpy: one case a function."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.lab.jax_cases import Case, f, ints, unit, words

_UNARY = words("""
    abs sin cos tan sinh cosh tanh arcsinh arctan exp exp2 expm1 cbrt floor ceil rint trunc
    round sign negative square reciprocal isnan isinf isfinite signbit deg2rad rad2deg
    logical_not fabs positive sinc nan_to_num spacing
""")
_ON_UNIT = words("""
    arcsin arccos arctanh log log2 log10 log1p sqrt i0
""")
_BINARY = words("""
    add subtract multiply divide floor_divide mod fmod remainder maximum minimum fmax fmin
    arctan2 hypot copysign logaddexp logaddexp2 nextafter heaviside equal not_equal less
    less_equal greater greater_equal logical_and logical_or logical_xor float_power isclose
    divmod
""")
_WHOLE = words("""
    bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide mod power
""")
_REDUCE = words("""
    sum prod max min mean var std any all argmax argmin median ptp nansum nanmean nanmax
    nanargmax count_nonzero cumsum cumprod nancumsum sort argsort average
""")


def _named(name: str) -> Any:
    return getattr(jnp, name)


def _axes(name: str) -> Any:
    return lambda x: [_named(name)(x, axis=a) for a in range(x.ndim)]


def _other(name: str, fn: Any, *args: Any, tolerance: float = 2e-5) -> Case:
    return Case(f"numpy.{name}", fn, args, tolerance)


_SIGNED = ints(20, 3, 4, low=-20)
CASES: list[Case] = [
    *(Case(f"numpy.{n}", _named(n), (f(3, 5),)) for n in _UNARY),
    *(Case(f"numpy.{n}", _named(n), (unit(3, 5),)) for n in _ON_UNIT),
    Case("numpy.arccosh", jnp.arccosh, (unit(3, 5) + 1,)),
    *(Case(f"numpy.{n}", _named(n), (f(3, 5), f(5, seed=1))) for n in _BINARY
      if n not in ("float_power",)),
    Case("numpy.float_power", jnp.float_power, (unit(3, 5), f(5, seed=1))),
    *(Case(f"numpy.{n} int", _named(n), (ints(9, 3, 4, low=-9), ints(5, 3, 4, low=1)))
      for n in _WHOLE),
    *(Case(f"numpy.{n}", _axes(n), (f(3, 5),)) for n in _REDUCE),
    _other("invert", jnp.invert, _SIGNED),
    _other("bitwise_count", jnp.bitwise_count, _SIGNED),
    _other("matmul", jnp.matmul, f(2, 3, 4), f(4, 5, seed=1)),
    _other("dot", jnp.dot, f(3, 4), f(2, 4, 5, seed=1)),
    _other("vdot", jnp.vdot, f(3, 4), f(3, 4, seed=1)),
    _other("inner", jnp.inner, f(3, 4), f(2, 4, seed=1)),
    _other("outer", jnp.outer, f(3), f(4, seed=1)),
    _other("tensordot", lambda a, b: jnp.tensordot(a, b, ([0, 2], [2, 0])), f(3, 4, 5),
           f(5, 2, 3, seed=1)),
    _other("einsum", lambda a, b: [jnp.einsum(s, a, b) for s in (
        "abcd,aecf->acf", "abcd,adcf->abf", "abcd,adef->bcaef", "abcd,adcf->cbaf")],
        f(2, 3, 4, 5), f(2, 5, 4, 6, seed=1)),
    _other("kron", jnp.kron, f(2, 3), f(3, 2, seed=1)),
    _other("cross", jnp.cross, f(4, 3), f(4, 3, seed=1)),
    _other("trace", jnp.trace, f(4, 5)),
    _other("diag", lambda x: [jnp.diag(x), jnp.diag(x[0], 1), jnp.diagonal(x, 1)], f(4, 5)),
    _other("tri", lambda x: [jnp.tril(x), jnp.triu(x, 1), jnp.tri(3, 4)], f(4, 5)),
    _other("reshape", lambda x: [x.reshape(2, -1), jnp.ravel(x), x.T, jnp.swapaxes(x, 0, 1)],
           f(4, 5)),
    _other("moveaxis", lambda x: jnp.moveaxis(x, 0, 2), f(2, 3, 4)),
    _other("concatenate", lambda x: [jnp.concatenate([x, x], 1), jnp.stack([x, x], 1),
                                     jnp.vstack([x, x]), jnp.hstack([x, x])], f(2, 3)),
    _other("split", lambda x: [*jnp.split(x, 3, 1), *jnp.array_split(x, 2, 1)], f(2, 6)),
    _other("tile", lambda x: jnp.tile(x, (2, 3)), f(2, 3)),
    _other("repeat", lambda x: [jnp.repeat(x, 3, 1), jnp.repeat(
        x, np.array([1, 2]), 0, total_repeat_length=3)], f(2, 3)),
    _other("roll", lambda x: [jnp.roll(x, 2, 1), jnp.roll(x, -1)], f(3, 4)),
    _other("flip", lambda x: [jnp.flip(x), jnp.fliplr(x), jnp.rot90(x)], f(3, 4)),
    _other("pad", lambda x: [jnp.pad(x, 2, mode=m) for m in (
        "constant", "edge", "reflect", "symmetric", "wrap")], f(4, 5)),
    _other("where", lambda x: jnp.where(x > 0, x, -1.0), f(3, 4)),
    _other("select", lambda x: jnp.select([x > 1, x > 0], [x, 2 * x], 5.0), f(3, 4)),
    _other("clip", lambda x: jnp.clip(x, -0.5, 0.5), f(3, 4)),
    _other("linspace", lambda x: [jnp.linspace(0.0, x[0], 7), jnp.arange(5) + x[1]], f(2)),
    _other("meshgrid", jnp.meshgrid, f(3), f(4)),
    _other("eye", lambda x: jnp.eye(4) @ x, f(4, 2)),
    _other("take", lambda x, i: jnp.take(x, i, axis=1), f(3, 5), ints(5, 2, 2)),
    _other("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), f(3, 5), ints(5, 3, 2)),
    _other("put_along_axis", lambda x, i: jnp.put_along_axis(x, i, 9.0, 1, inplace=False), f(3, 5),
           ints(5, 3, 1)),
    _other("choose", lambda i, x: jnp.choose(i, [x, 2 * x, 3 * x], mode="clip"), ints(3, 4), f(4)),
    _other("searchsorted", lambda x, y: jnp.searchsorted(jnp.sort(x), y), f(9), f(4, seed=1)),
    _other("digitize", lambda x: jnp.digitize(x, np.array([-1.0, 0.0, 1.0])), f(9)),
    _other("interp", lambda x, y: jnp.interp(x, jnp.arange(5.0), y), unit(7) * 5, f(5)),
    _other("histogram", lambda x: jnp.histogram(x, 4, (-2, 2))[0], f(30)),
    _other("bincount", lambda i: jnp.bincount(i, length=6), ints(6, 20)),
    _other("unique", lambda i: jnp.unique(i, size=5, fill_value=-1), ints(5, 12)),
    _other("nonzero", lambda x: jnp.nonzero(x > 0, size=6, fill_value=0), f(3, 4)),
    _other("lexsort", lambda a, b: jnp.lexsort((a, b)), f(8), ints(3, 8)),
    _other("partition", lambda x: [jnp.partition(x, 3), jnp.argpartition(x, 3)[:4].sum()], f(9)),
    _other("percentile", lambda x: [jnp.percentile(x, 30.0), jnp.quantile(x, 0.7, axis=0)],
           f(5, 4)),
    _other("diff", lambda x: [jnp.diff(x), jnp.ediff1d(x), jnp.gradient(x[0])], f(3, 6)),
    _other("convolve", lambda x, y: [jnp.convolve(x, y), jnp.correlate(x, y, "same")], f(9),
           f(3, seed=1)),
    _other("polyval", lambda x, y: [jnp.polyval(x, y), jnp.polymul(x, y)], f(4), f(3, seed=1)),
    _other("vander", lambda x: jnp.vander(x, 4), f(3)),
    _other("trapezoid", jnp.trapezoid, f(3, 6)),
    _other("cov", lambda x: [jnp.cov(x), jnp.corrcoef(x)], f(3, 8)),
    _other("apply_along_axis", lambda x: jnp.apply_along_axis(jnp.sort, 0, x), f(4, 3)),
    _other("index", lambda x, i: [
        x[i], x[:, i], x[i, i], x[1:, ::2], x[..., -1], x[i[:, None], i], x[None, 2], x[::-1, 1],
        x[-1, i], x[np.array([True, False, True, True])]], f(4, 5), ints(4, 3, low=-4)),
    _other("at.set", lambda x, i: [
        x.at[i].set(1.0), x.at[:, i].set(2.0), x.at[i, i].set(3.0), x.at[1:3, ::2].set(4.0),
        x.at[-1].set(5.0), x.at[i + 9].set(6.0)], f(4, 5), np.array([2, 0, -1], np.int32)),
    _other("at.add", lambda x, i: [
        x.at[i].add(1.0), x.at[:, i].add(x[:, :3]), x.at[i, i].subtract(3.0), x.at[i + 2].add(6.0)],
        f(4, 5), np.array([2, 0, 2], np.int32)),
    _other("at.mul", lambda x, i: [
        x.at[i].multiply(2.0), x.at[i].min(0.1), x.at[i, 1].max(0.2), x.at[i].divide(2.0),
        x.at[i].power(2.0), x.at[i].apply(jnp.sin), x.at[i].get(mode="fill", fill_value=7.0)],
        f(4, 5), np.array([2, 0, 5], np.int32)),
    _other("fft", lambda x: [jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(jnp.fft.rfft(x))], f(3, 8)),
    _other("fftn", lambda x: jnp.real(jnp.fft.ifftn(jnp.fft.fftn(x))), f(4, 6)),
    _other("fftfreq", lambda x: jnp.fft.fftshift(x) + jnp.fft.fftfreq(8), f(8)),
    _other("complex", lambda x, y: [jnp.abs(x + 1j * y), jnp.angle(x + 1j * y),
                                    jnp.real((x + 1j * y) * (y - 1j * x)),
                                    jnp.imag(jnp.exp(x + 1j * y) / (x - 1j * y))], f(5),
           f(5, seed=1)),
    _other("linalg.norm", lambda x: [jnp.linalg.norm(x), jnp.linalg.norm(x, 1, axis=0)], f(3, 4)),
    _other("linalg.det", lambda x: [jnp.linalg.det(x), jnp.linalg.slogdet(x)[1]], f(4, 4)),
    _other("linalg.inv", jnp.linalg.inv, f(4, 4), tolerance=1e-3),
    _other("linalg.solve", jnp.linalg.solve, f(4, 4), f(4, 2, seed=1), tolerance=1e-3),
    _other("linalg.cholesky", lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), f(4, 4)),
    _other("linalg.qr", lambda x: [jnp.abs(v) for v in jnp.linalg.qr(x)], f(5, 3), tolerance=1e-4),
    _other("linalg.eigh", lambda x: jnp.linalg.eigh(x + x.T)[0], f(4, 4), tolerance=1e-4),
    _other("linalg.svd", lambda x: jnp.linalg.svd(x, compute_uv=False), f(5, 3), tolerance=1e-4),
    _other("linalg.pinv", jnp.linalg.pinv, f(5, 3), tolerance=1e-3),
    _other("linalg.matrix_power", lambda x: jnp.linalg.matrix_power(x, 3), f(3, 3)),
    _other("linalg.lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], f(6, 3), f(6, 2, seed=1),
           tolerance=1e-3),
]
