"""The calls of LAPACK that JAX makes on CPUs, for real and for complex matrices.

Where LAPACK reports a failure by a number, ours is 0: the result is NaN or infinite instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphtool.front.complex import Complex, tensors
from graphtool.importers.stablehlo.families import complex as complex_
from graphtool.importers.stablehlo.families import hermitian, product, reflections
from graphtool.importers.stablehlo.families.composite import REASONS, TARGETS
from graphtool.importers.stablehlo.families.reflections import known_sizes
from graphtool.importers.stablehlo.kit import Array, Context, Dim, Refused, dtypes, o
from graphtool.ops.matrices import identity, swap_last_axes
from graphtool.symbolic import product as total


def _option(ctx: Context, name: str) -> Any:
    config = ctx.op.attrs.get("mhlo.backend_config") or ctx.op.attrs.get("backend_config")
    return config.get(name) if isinstance(config, Mapping) else None


def _letter(ctx: Context, name: str) -> str:
    """An option of LAPACK, which JAX writes as the number of its letter."""
    code = _option(ctx, name)
    return chr(code) if isinstance(code, int) else ""


def _is(ctx: Context, name: str, letter: str) -> bool:
    return _letter(ctx, name) == letter


def _fine(x: Array, lead: tuple[Dim, ...]) -> Array:
    """The code of success for each matrix of a batch, which is x or made of it."""
    return x.builder.number(0, dtypes.int32).broadcast(lead)  # type: ignore[no-any-return]


def _counted(places: Any) -> Any:
    """Numbers of rows or columns as LAPACK writes them, from 1."""
    return places.cast(dtypes.int32) + 1


# ---- real matrices ------------------------------------------------------------------------------

def _potrf(ctx: Context, a: Array) -> list[Array]:
    return [product.cholesky(ctx, a, lower=_is(ctx, "uplo", "L")), _fine(a, a.shape[:-2])]


def _trsm(ctx: Context, a: Array, b: Array) -> list[Array]:
    return [product.solved(a, b, _is(ctx, "side", "L"), _is(ctx, "uplo", "L"),
                           _is(ctx, "diag", "U"), not _is(ctx, "trans_x", "N"))]


def _getrf(ctx: Context, a: Array) -> list[Array]:
    factors, swaps = o.lu(a)
    return [factors, _counted(swaps), _fine(a, a.shape[:-2])]


def _geqrf(ctx: Context, a: Array) -> list[Array]:
    return list(o.householder(a))


def _orgqr(ctx: Context, a: Array, tau: Array) -> list[Array]:
    return [o.reflect(a, tau, _columns(a))]


def _ormqr(ctx: Context, a: Array, tau: Array, c: Array) -> list[Array]:
    """op(Q)·c, or c·op(Q) = (op(Q)ᵀ·cᵀ)ᵀ."""
    left, turned = bool(_option(ctx, "left")), bool(_option(ctx, "transpose"))
    if left:
        return [o.reflect(a, tau, c, transpose=turned)]
    return [swap_last_axes(o.reflect(a, tau, swap_last_axes(c), transpose=not turned))]


def _syevd(ctx: Context, a: Array) -> list[Array]:
    known_sizes(a)
    values, vectors = o.eigh(a if _is(ctx, "uplo", "L") else swap_last_axes(a))
    return [vectors, values, _fine(a, a.shape[:-2])]


def _gesdd(ctx: Context, a: Array) -> list[Array]:
    """a (which LAPACK overwrites), s, U, Vᵀ; U and V are square in mode A."""
    known_sizes(a)
    left, s, right = o.svd(a, full=_is(ctx, "mode", "A"))
    if _is(ctx, "mode", "N"):
        left, right = (_nothing(ctx, a, i) for i in (2, 3))
    return [a, s, left, right, _fine(a, a.shape[:-2])]


def _nothing(ctx: Context, x: Array, i: int) -> Array:
    """Zeros for result i, which LAPACK does not compute."""
    shape = [d for d in (ctx.op.signature.results[i].shape or ())[-2:] if d is not None]
    return x.number(0).broadcast((*x.shape[:-2], *shape))


def _columns(x: Any) -> Any:
    """The first columns of the identity, as many as x has."""
    m, n = x.shape[-2:]
    return identity(x, m, x.shape[:-2]).take(x.ndim - 1, 0, n)


# ---- complex matrices ---------------------------------------------------------------------------

def _complex_potrf(ctx: Context, a: Array, b: Array) -> list[Array]:
    factor = complex_.cholesky(ctx, Complex(a, b), lower=_is(ctx, "uplo", "L"))
    return [*factor.parts, _fine(a, a.shape[:-2])]


def _complex_trsm(ctx: Context, a: Array, b: Array, c: Array, d: Array) -> list[Array]:
    return [*complex_.solved(Complex(a, b), Complex(c, d), _is(ctx, "side", "L"),
                             _is(ctx, "uplo", "L"), _is(ctx, "diag", "U"),
                             _letter(ctx, "trans_x")).parts]


Algorithm = Callable[..., tuple[Complex, ...]]


def _batched(rank: int, paired: bool, algorithm: Algorithm) -> Callable[..., list[Any]]:
    """A handler that gives the algorithm its operands with one batch axis; floats are `paired` if
    they are parts of complex numbers. The first operand has this rank without its batch axes."""
    def handler(ctx: Context, *xs: Any) -> list[Any]:
        given, rest = [], iter(xs)
        for x in rest:
            given.append(Complex(x, next(rest) if paired and x.dtype.is_float else None))
        lead = given[0].shape[:len(given[0].shape) - rank]
        outputs = algorithm(ctx, *(_flat(x, len(lead)) for x in given))
        whole = tensors(x.each(lambda p: p.reshape((*lead, *p.shape[1:]))) for x in outputs)
        coded = len(ctx.op.signature.results) > len(whole)
        return [*whole, _fine(whole[0], lead)] if coded else whole
    return handler


def _flat(x: Complex, lead: int) -> Complex:
    return x.each(lambda p: p.reshape((total(p.shape[:lead]), *p.shape[lead:])))


def _complex_getrf(ctx: Context, a: Complex) -> tuple[Complex, ...]:
    packed, swaps = reflections.lu(a)
    return packed, swaps.each(_counted)


def _complex_geqrf(ctx: Context, a: Complex) -> tuple[Complex, ...]:
    return reflections.qr(a)


def _pivoted(ctx: Context, a: Complex, _: Complex) -> tuple[Complex, ...]:
    packed, order, tau = reflections.qr(a, pivoting=True)
    return packed, order.each(_counted), tau


def _geqp3(paired: bool) -> Callable[..., list[Any]]:
    pivoted = _batched(2, paired, _pivoted)

    def handler(ctx: Context, *xs: Any) -> list[Any]:
        if xs[-1].numbers is None or xs[-1].numbers.any():
            raise Refused("columns that the program moves to the front before the factorisation "
                          "are not supported; jpvt must be zeros")
        return pivoted(ctx, *xs)
    return handler


def _ungqr(ctx: Context, a: Complex, tau: Complex) -> tuple[Complex, ...]:
    eye = _columns(a.real)
    return (reflections.reflected(a, tau, Complex(eye, eye * 0.0)),)


def _unmqr(ctx: Context, a: Complex, tau: Complex, c: Complex) -> tuple[Complex, ...]:
    left, turned = bool(_option(ctx, "left")), bool(_option(ctx, "transpose"))
    if left:
        return (reflections.reflected(a, tau, c, turned),)
    return (reflections.reflected(a, tau, c.adjoint(), not turned).adjoint(),)


def _heevd(ctx: Context, a: Complex) -> tuple[Complex, ...]:
    values, vectors = hermitian.eigh(a, _is(ctx, "uplo", "L"))
    return vectors, Complex(values)


def _complex_gesdd(ctx: Context, a: Complex) -> tuple[Complex, ...]:
    if not _is(ctx, "mode", "N"):
        left, s, right = hermitian.svd(a, _is(ctx, "mode", "A"))
        return a, Complex(s), left, right
    _, s, _ = hermitian.svd(a, False)
    return a, Complex(s), *(Complex(*(_nothing(ctx, a.real, i),) * 2) for i in (3, 5))


def _gehrd(ctx: Context, a: Complex) -> tuple[Complex, ...]:
    n = a.shape[-1]
    if (_option(ctx, "low"), _option(ctx, "high")) != (1, n):
        raise Refused("only a reduction of all rows is supported: low = 1, high = n")
    return reflections.hessenberg(a)


def _hetrd(ctx: Context, a: Complex) -> tuple[Complex, ...]:
    packed, d, e, tau = reflections.tridiagonal(a, _is(ctx, "uplo", "L"))
    return packed, Complex(d), Complex(e), tau


def _gtsv(ctx: Context, *xs: Complex) -> tuple[Complex, ...]:
    return reflections.tridiagonal_solved(*xs)


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
