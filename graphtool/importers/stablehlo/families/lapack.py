"""The calls of LAPACK that JAX makes on CPUs, for real and for complex matrices.

Where LAPACK reports a failure by a number, ours is 0: the result is NaN or infinite instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import Pair
from graphtool.importers.stablehlo.driver.registry import Refused
from graphtool.importers.stablehlo.driver.values import shape_of, spread
from graphtool.importers.stablehlo.families import (
    complex_matrices,
    hermitian,
    linalg,
    reflections,
    tridiagonal,
)
from graphtool.importers.stablehlo.families.composite import REASONS, TARGETS
from graphtool.importers.stablehlo.families.numbers import Numbers, known_sizes, tensors
from graphtool.ops.matrices import identity, swap_last_axes
from graphtool.symbolic import Dim, product


def _option(ctx: Context, name: str) -> Any:
    config = ctx.op.attrs.get("mhlo.backend_config") or ctx.op.attrs.get("backend_config")
    return config.get(name) if isinstance(config, Mapping) else None


def _letter(ctx: Context, name: str) -> str:
    """An option of LAPACK, which JAX writes as the number of its letter."""
    code = _option(ctx, name)
    return chr(code) if isinstance(code, int) else ""


def _is(ctx: Context, name: str, letter: str) -> bool:
    return _letter(ctx, name) == letter


def _fine(lead: tuple[Dim, ...]) -> Any:
    """The code of success for each matrix of a batch."""
    return spread(np.zeros((), np.int32), lead)


def _counted(places: Any) -> Any:
    """Numbers of rows or columns as LAPACK writes them, from 1."""
    return o.add(o.cast(places, dtype=dtypes.int32), 1)


# ---- real matrices ------------------------------------------------------------------------------

def _potrf(ctx: Context, a: Any) -> list[Any]:
    return [linalg.cholesky(ctx, a, lower=_is(ctx, "uplo", "L")), _fine(shape_of(a)[:-2])]


def _trsm(ctx: Context, a: Any, b: Any) -> list[Any]:
    return [linalg.solved(ctx.tensor(a), ctx.tensor(b), _is(ctx, "side", "L"),
                          _is(ctx, "uplo", "L"), _is(ctx, "diag", "U"),
                          not _is(ctx, "trans_x", "N"))]


def _getrf(ctx: Context, a: Any) -> list[Any]:
    factors, swaps = o.lu(ctx.tensor(a))
    return [factors, _counted(swaps), _fine(factors.shape[:-2])]


def _geqrf(ctx: Context, a: Any) -> list[Any]:
    return list(o.householder(ctx.tensor(a)))


def _orgqr(ctx: Context, a: Any, tau: Any) -> list[Any]:
    x = ctx.tensor(a)
    return [o.reflect(x, ctx.tensor(tau), _columns(x))]


def _ormqr(ctx: Context, a: Any, tau: Any, c: Any) -> list[Any]:
    """op(Q)·c, or c·op(Q) = (op(Q)ᵀ·cᵀ)ᵀ."""
    left, turned = bool(_option(ctx, "left")), bool(_option(ctx, "transpose"))
    x, t, side = (ctx.tensor(v) for v in (a, tau, c))
    if left:
        return [o.reflect(x, t, side, transpose=turned)]
    return [swap_last_axes(o.reflect(x, t, swap_last_axes(side), transpose=not turned))]


def _syevd(ctx: Context, a: Any) -> list[Any]:
    x = ctx.tensor(a)
    known_sizes(Numbers(x))
    values, vectors = o.eigh(x if _is(ctx, "uplo", "L") else swap_last_axes(x))
    return [vectors, values, _fine(x.shape[:-2])]


def _gesdd(ctx: Context, a: Any) -> list[Any]:
    """a (which LAPACK overwrites), s, U, Vᵀ; U and V are square in mode A."""
    x = ctx.tensor(a)
    known_sizes(Numbers(x))
    left, s, right = o.svd(x, full=_is(ctx, "mode", "A"))
    if _is(ctx, "mode", "N"):
        left, right = (_nothing(ctx, x, i) for i in (2, 3))
    return [x, s, left, right, _fine(x.shape[:-2])]


def _nothing(ctx: Context, x: Any, i: int) -> Any:
    """Zeros for result i, which LAPACK does not compute."""
    own = [d for d in (ctx.op.signature.results[i].shape or ())[-2:] if d is not None]
    shape = (*x.shape[:-2], *own)
    zero = x.builder.constant(np.zeros((1,) * len(shape), x.dtype.numpy))
    return o.broadcast(zero, shape=shape)


def _columns(x: Any) -> Any:
    """The first columns of the identity, as many as x has."""
    m, n = x.shape[-2:]
    lead = x.shape[:-2]
    eye = identity(x, m, lead)
    return o.slice(eye, start=(0,) * eye.ndim, limit=(*lead, m, n), strides=(1,) * eye.ndim)


# ---- complex matrices ---------------------------------------------------------------------------

def _complex_potrf(ctx: Context, a: Any, b: Any) -> list[Any]:
    made = complex_matrices.cholesky(ctx, Pair(a, b), lower=_is(ctx, "uplo", "L"))
    return [made.real, made.imag, _fine(shape_of(a)[:-2])]


def _complex_trsm(ctx: Context, a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    made = complex_matrices.solved(
        ctx, Pair(a, b), Pair(c, d), _is(ctx, "side", "L"), _is(ctx, "uplo", "L"),
        _is(ctx, "diag", "U"), _letter(ctx, "trans_x"))
    return [made.real, made.imag]


Algorithm = Callable[..., tuple[Numbers, ...]]


def _batched(rank: int, paired: bool, algorithm: Algorithm) -> Callable[..., list[Any]]:
    """A handler that gives the algorithm its operands with one batch axis; floats are `paired` if
    they are parts of complex numbers. The first operand has this rank without its batch axes."""
    def handler(ctx: Context, *xs: Any) -> list[Any]:
        given, rest = [], iter([ctx.tensor(x) for x in xs])
        for x in rest:
            given.append(Numbers(x, next(rest) if paired and x.dtype.is_float else None))
        lead = given[0].shape[:len(given[0].shape) - rank]
        made = algorithm(ctx, *(_flat(x, len(lead)) for x in given))
        whole = tensors(x.each(lambda p: o.reshape(p, shape=(*lead, *p.shape[1:]))) for x in made)
        return [*whole, _fine(lead)] if len(ctx.op.signature.results) > len(whole) else whole
    return handler


def _flat(x: Numbers, lead: int) -> Numbers:
    return x.each(lambda p: o.reshape(p, shape=(product(p.shape[:lead]), *p.shape[lead:])))


def _complex_getrf(ctx: Context, a: Numbers) -> tuple[Numbers, ...]:
    packed, swaps = reflections.lu(a)
    return packed, swaps.each(_counted)


def _complex_geqrf(ctx: Context, a: Numbers) -> tuple[Numbers, ...]:
    return reflections.qr(a)


def _pivoted(ctx: Context, a: Numbers, _: Numbers) -> tuple[Numbers, ...]:
    packed, order, tau = reflections.qr(a, pivoting=True)
    return packed, order.each(_counted), tau


def _geqp3(paired: bool) -> Callable[..., list[Any]]:
    pivoted = _batched(2, paired, _pivoted)

    def handler(ctx: Context, *xs: Any) -> list[Any]:
        if not isinstance(xs[-1], np.ndarray) or xs[-1].any():
            raise Refused("columns that the program moves to the front before the factorisation "
                          "are not supported; jpvt must be zeros")
        return pivoted(ctx, *xs)
    return handler


def _ungqr(ctx: Context, a: Numbers, tau: Numbers) -> tuple[Numbers, ...]:
    eye = _columns(a.real)
    return (reflections.reflected(a, tau, Numbers(eye, o.mul(eye, 0.0))),)


def _unmqr(ctx: Context, a: Numbers, tau: Numbers, c: Numbers) -> tuple[Numbers, ...]:
    left, turned = bool(_option(ctx, "left")), bool(_option(ctx, "transpose"))
    if left:
        return (reflections.reflected(a, tau, c, turned),)
    return (reflections.reflected(a, tau, c.adjoint(), not turned).adjoint(),)


def _heevd(ctx: Context, a: Numbers) -> tuple[Numbers, ...]:
    values, vectors = hermitian.eigh(a, _is(ctx, "uplo", "L"))
    return vectors, Numbers(values)


def _complex_gesdd(ctx: Context, a: Numbers) -> tuple[Numbers, ...]:
    if not _is(ctx, "mode", "N"):
        left, s, right = hermitian.svd(a, _is(ctx, "mode", "A"))
        return a, Numbers(s), left, right
    _, s, _ = hermitian.svd(a, False)
    return a, Numbers(s), *(Numbers(*(_nothing(ctx, a.real, i),) * 2) for i in (3, 5))


def _gehrd(ctx: Context, a: Numbers) -> tuple[Numbers, ...]:
    n = a.shape[-1]
    if (_option(ctx, "low"), _option(ctx, "high")) != (1, n):
        raise Refused("only a reduction of all rows is supported: low = 1, high = n")
    return reflections.hessenberg(a)


def _hetrd(ctx: Context, a: Numbers) -> tuple[Numbers, ...]:
    packed, d, e, tau = reflections.tridiagonal(a, _is(ctx, "uplo", "L"))
    return packed, Numbers(d), Numbers(e), tau


def _gtsv(ctx: Context, *xs: Numbers) -> tuple[Numbers, ...]:
    return tridiagonal.solved(*xs)


def _register(letters: str, **handlers: Callable[..., list[Any]]) -> None:
    TARGETS.update({f"lapack_{t}{name}_ffi": fn for t in letters for name, fn in handlers.items()})


_register("sd", potrf=_potrf, trsm=_trsm, getrf=_getrf, geqrf=_geqrf, orgqr=_orgqr, ormqr=_ormqr,
          syevd=_syevd, gesdd=_gesdd, gesvd=_gesdd, sytrd=_batched(2, False, _hetrd))
_register("cz", potrf=_complex_potrf, trsm=_complex_trsm, hetrd=_batched(2, True, _hetrd),
          **{name: _batched(2, True, fn) for name, fn in (
              ("getrf", _complex_getrf), ("geqrf", _complex_geqrf), ("ungqr", _ungqr),
              ("unmqr", _unmqr), ("heevd", _heevd), ("gesdd", _complex_gesdd),
              ("gesvd", _complex_gesdd))})
for _letters, _paired in (("sd", False), ("cz", True)):
    _register(_letters, gehrd=_batched(2, _paired, _gehrd), gtsv=_batched(1, _paired, _gtsv),
              geqp3=_geqp3(_paired))


# ---- what is refused ----------------------------------------------------------------------------

_GENERAL = ("eigenvalues of general matrices are not supported: LAPACK gives them in the order in "
            "which its iteration finds them; those of symmetric and Hermitian matrices (eigh) are "
            "supported")
REASONS.update({f"lapack_{t}{name}_ffi": _GENERAL for t in "sdcz" for name in ("geev", "gees")})
REASONS["tridiagonal_solve_perturbed_ffi"] = (
    "singular pivots of a tridiagonal system cannot be perturbed; without perturb_singular the "
    "system is supported")
