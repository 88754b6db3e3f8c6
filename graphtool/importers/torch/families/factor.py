"""Cholesky, LU and QR factorisations, linear systems and determinants; spectral.py has eigenvectors
and singular values. Where torch raises for a singular matrix, the result is NaN or infinite.
"""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import Tracer, trace
from graphtool.ops.common import broadcast_shapes
from graphtool.ops.matrices import identity, triangle
from graphtool.symbolic import Dim


def _swap(c: Context, x: Tracer) -> Tracer:
    """x with its last two axes exchanged."""
    return c.transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _spread(c: Context, *xs: Tracer) -> list[Tracer]:
    """Matrices broadcast to the same leading axes."""
    lead = broadcast_shapes(*(x.shape[:-2] for x in xs))
    return [c.broadcast(x, (*lead, *x.shape[-2:])) for x in xs]


def _diagonal(c: Context, x: Tracer) -> Tracer:
    n, lead = x.ndim - 2, x.shape[:-2]
    size = min(x.shape[-2:], key=str) if x.shape[-1] == x.shape[-2] else min(
        int(d) for d in x.shape[-2:])  # type: ignore[arg-type]
    at = c.iota((size, 2), 0)
    found: Tracer = o.gather(x, at, axes=(n, n + 1))
    return c.transpose(found, [*range(1, n + 1), 0]) if lead else found


def _first(c: Context, bad: Tracer) -> Tracer:
    """i32: the first true place of the last axis, counted from 1; 0 if there is none."""
    n = bad.shape[-1]
    if 0 in bad.shape:
        return c.full(bad.shape[:-1], 0, dtypes.int32)
    none = c.number(n, dtypes.int64)
    places = o.add(c.iota((*(1,) * (bad.ndim - 1), n), bad.ndim - 1), 1)
    least = o.reduce_min(o.select(bad, places, o.add(none, 1) if isinstance(
        none, Tracer) else none + 1), axes=(bad.ndim - 1,))
    found = o.select(o.gt(least, none), 0, least)
    number: Tracer = c.cast(c.reshape(found, bad.shape[:-1]), dtypes.int32)
    return number


# ---- Cholesky ----------------------------------------------------------------------------------

def _upper(c: Context, x: Tracer, upper: bool) -> Tracer:
    return _swap(c, x) if upper else x


@aten("cholesky")
def cholesky(c: Context, self: Tracer, upper: bool = False) -> Any:
    """L with L·Lᵀ = a, [..., n, n]; with `upper` the transpose."""
    return _upper(c, o.cholesky(_upper(c, self, upper)), upper)


@aten("linalg_cholesky_ex")
def linalg_cholesky_ex(c: Context, self: Tracer, *, upper: bool = False,
                       check_errors: bool = False) -> Any:
    """(L, i32 code): 0, or the first row, from 1, whose pivot is not positive."""
    factor = cholesky(c, self, upper)
    return factor, _first(c, o.not_(o.gt(_diagonal(c, factor), 0.0))) if c.used(1) else None


@aten("cholesky_solve")
def cholesky_solve(c: Context, self: Tracer, input2: Tracer, upper: bool = False) -> Any:
    """x of L·Lᵀ·x = b: one triangular_solve with L, one with Lᵀ."""
    b, factor = _spread(c, self, _upper(c, input2, upper))
    half = o.triangular_solve(factor, b)
    return o.triangular_solve(_swap(c, factor), half, lower=False)


@aten("cholesky_inverse")
def cholesky_inverse(c: Context, self: Tracer, upper: bool = False) -> Any:
    """(L·Lᵀ)⁻¹: cholesky_solve of the identity."""
    return cholesky_solve(c, identity(self, self.shape[-1], self.shape[:-2]), self, upper)


# ---- triangular systems ------------------------------------------------------------------------

@aten("linalg_solve_triangular")
def linalg_solve_triangular(c: Context, self: Tracer, B: Tracer, *, upper: bool,
                            left: bool = True, unitriangular: bool = False) -> Any:
    """triangular_solve of a·x = b; of x·a = b by way of aᵀ·xᵀ = bᵀ."""
    a, b = _spread(c, self, B)
    if left:
        return o.triangular_solve(a, b, lower=not upper, unit=unitriangular)
    x = o.triangular_solve(_swap(c, a), _swap(c, b), lower=upper, unit=unitriangular)
    return _swap(c, x)


@aten("triangular_solve")
def triangular_solve(c: Context, self: Tracer, A: Tracer, upper: bool = True,
                     transpose: bool = False, unitriangular: bool = False) -> Any:
    """(x, a) with a·x = b, or aᵀ·x = b, by triangular_solve."""
    b, a = _spread(c, self, A)
    if transpose:
        a, upper = _swap(c, a), not upper
    x = o.triangular_solve(a, b, lower=not upper, unit=unitriangular)
    return x, _spread(c, A, self)[0] if c.used(1) else None


# ---- LU ----------------------------------------------------------------------------------------

def _lu(c: Context, a: Tracer, pivot: bool = True) -> tuple[Tracer, Tracer]:
    if not pivot:
        raise Refused("an LU factorisation without pivoting is not supported; use pivot=True")
    return o.lu(a)  # type: ignore[no-any-return]


def _from_one(c: Context, swaps: Tracer) -> Tracer:
    pivots: Tracer = c.cast(o.add(swaps, 1), dtypes.int32)
    return pivots


def _from_zero(c: Context, pivots: Tracer) -> Tracer:
    swaps: Tracer = o.sub(c.cast(pivots, dtypes.int64), 1)
    return swaps


@aten("linalg_lu_factor_ex")
def linalg_lu_factor_ex(c: Context, A: Tracer, *, pivot: bool = True,
                        check_errors: bool = False) -> Any:
    """(L and U in one matrix, i32 row swaps from 1, i32 code: 0 or first zero pivot)."""
    factors, swaps = _lu(c, A, pivot)
    singular = _first(c, o.eq(_diagonal(c, factors), 0.0)) if c.used(2) else None
    return factors, _from_one(c, swaps), singular


@aten("linalg_lu_solve")
def linalg_lu_solve(c: Context, LU: Tracer, pivots: Tracer, B: Tracer, *, left: bool = True,
                    adjoint: bool = False) -> Any:
    """x of a·x = b, x·a = b or the same with aᵀ, from a's LU factors and row swaps."""
    factors, b = _spread(c, LU, B if left else _swap(c, B))
    swaps = c.broadcast(_from_zero(c, pivots), (*factors.shape[:-2], pivots.shape[-1]))
    x = _transposed_solve(c, factors, swaps, b) if adjoint is left else (
        o.lu_solve(factors, swaps, b))
    return x if left else _swap(c, x)


def _transposed_solve(c: Context, factors: Tracer, swaps: Tracer, b: Tracer) -> Any:
    """Solves aᵀ·x = b: first with Uᵀ, then with Lᵀ, then the row swaps are undone."""
    transposed = _swap(c, factors)
    x = o.triangular_solve(transposed, o.triangular_solve(transposed, b), lower=False, unit=True)
    order = o.swapped(swaps, size=b.shape[-2])
    return o.scatter(x, c.reshape(order, (*order.shape, 1)), x, axes=(b.ndim - 2,),
                     batch=b.ndim - 2)


def _unpacked(c: Context, factors: Tracer, swaps: Tracer) -> tuple[Any, Any, Any]:
    """(P, L, U) as matrices: [m, m], [m, k], [k, n]."""
    m = factors.shape[-2]
    k = swaps.shape[-1]
    axis = factors.ndim - 2
    low = c.window(triangle(factors, True, -1), axis + 1, 0, k)
    diagonal = o.eq(c.iota((m, 1), 0), c.iota((1, k), 1))
    order = o.swapped(swaps, size=m)  # row i of P·(L·U) is order's inverse: P[order[i], i] = 1
    hot = o.eq(c.reshape(c.iota((m,), 0), (m, 1)), c.reshape(order, (*order.shape[:-1], 1, m)))
    return (c.cast(hot, factors.dtype), o.select(diagonal, 1.0, low),
            c.window(triangle(factors, False), axis, 0, k))


@aten("lu_unpack")
def lu_unpack(c: Context, LU_data: Tracer, LU_pivots: Tracer, unpack_data: bool = True,
              unpack_pivots: bool = True) -> Any:
    """(P, L, U) from the packed factors; refuses factors or pivots alone."""
    if not (unpack_data and unpack_pivots):
        raise Refused("lu_unpack is supported only with unpack_data and unpack_pivots both True")
    return _unpacked(c, LU_data, _from_zero(c, LU_pivots))


@aten("linalg_lu")
def linalg_lu(c: Context, A: Tracer, *, pivot: bool = True) -> Any:
    """(P, L, U) with P·L·U = a."""
    return _unpacked(c, *_lu(c, A, pivot))


def _flips(c: Context, swaps: Tracer) -> Any:
    """The sign of the permutation: −1 for each real swap of rows, multiplied."""
    moved = o.ne(swaps, c.iota((*(1,) * (swaps.ndim - 1), swaps.shape[-1]), swaps.ndim - 1))
    return o.sub(1.0, o.mul(o.mod(o.reduce_sum(c.cast(moved, dtypes.float64), axes=(
        swaps.ndim - 1,)), 2.0), 2.0))


@aten("_linalg_det")
def det(c: Context, A: Tracer) -> Any:
    """det a = ± the product of U's diagonal; the factors are not returned."""
    factors, swaps = _lu(c, A)
    size = o.reduce_prod(_diagonal(c, factors), axes=(A.ndim - 2,))
    signed = o.mul(size, c.cast(_flips(c, swaps), A.dtype))
    return c.reshape(signed, A.shape[:-2]), None, None


@aten("_linalg_slogdet")
def slogdet(c: Context, A: Tracer) -> Any:
    """(sign of det a, log |det a|) from U's diagonal and the row swaps."""
    factors, swaps = _lu(c, A)
    line, axis = _diagonal(c, factors), (A.ndim - 2,)
    sign = o.mul(o.reduce_prod(o.sign(line), axes=axis), c.cast(_flips(c, swaps), A.dtype))
    size = o.reduce_sum(o.log(o.abs(line)), axes=axis)
    return c.reshape(sign, A.shape[:-2]), c.reshape(size, A.shape[:-2]), None, None


@aten("_linalg_solve_ex")
def solve(c: Context, A: Tracer, B: Tracer, *, left: bool = True,
          check_errors: bool = False) -> Any:
    """x of a·x = b or x·a = b by lu and lu_solve; b may be a vector."""
    shape = c.out.shape
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    b = c.reshape(B, (*B.shape, 1)) if vector else B
    a, b = _spread(c, A, b) if left or vector else _spread(c, _swap(c, A), _swap(c, b))
    x = o.lu_solve(*_lu(c, a), b)
    x = x if left or vector else _swap(c, x)
    return c.reshape(x, shape), None, None, _sound(c, 3)


@aten("linalg_inv_ex")
def inverse(c: Context, A: Tracer, *, check_errors: bool = False) -> Any:
    """(a⁻¹ by lu_solve of the identity, i32 code: 0 or the first zero pivot, from 1)."""
    factors, swaps = _lu(c, A)
    return o.lu_solve(factors, swaps, identity(A, A.shape[-1], A.shape[:-2])), (
        _first(c, o.eq(_diagonal(c, factors), 0.0)) if c.used(1) else None)


def _sound(c: Context, i: int) -> Any:
    """torch's error code, always 0 here: a singular matrix gives NaN or infinity instead."""
    kind = c.outs[i] if c.used(i) else None
    return None if kind is None else c.full(kind.shape, 0, kind.dtype)


# ---- QR ----------------------------------------------------------------------------------------

@aten("geqrf")
def geqrf(c: Context, self: Tracer) -> Any:
    """householder(a): (R above the reflection vectors, their factors tau)."""
    return o.householder(self)


def _eye(c: Context, like: Tracer, rows: Dim, columns: Dim) -> Tracer:
    one = o.eq(c.iota((rows, 1), 0), c.iota((1, columns), 1))
    return c.broadcast(c.cast(one, like.dtype), (*like.shape[:-2], rows, columns))


@aten("linalg_householder_product", "orgqr")
def householder_product(c: Context, input: Tracer, tau: Tracer) -> Any:
    """Q, [..., m, n]: the reflections applied to the identity."""
    return o.reflect(input, tau, _eye(c, input, *input.shape[-2:]))


@aten("ormqr")
def ormqr(c: Context, self: Tracer, input2: Tracer, input3: Tracer, left: bool = True,
          transpose: bool = False) -> Any:
    """reflect: Q·x or x·Q, with Q or its transpose; Q stands as Householder vectors."""
    if left:
        return o.reflect(self, input2, input3, transpose=transpose)
    return _swap(c, o.reflect(self, input2, _swap(c, input3), transpose=not transpose))


@aten("linalg_qr")
def qr(c: Context, A: Tracer, mode: str = "reduced") -> Any:
    """(Q, R): "reduced" Q is [m, k], "complete" [m, m]; mode "r" gives R alone."""
    m = A.shape[-2]
    packed, tau = o.householder(A)
    rows = m if mode == "complete" else tau.shape[-1]
    r = c.window(triangle(packed, False), A.ndim - 2, 0, rows)
    return o.reflect(packed, tau, _eye(c, A, m, rows)) if c.used(0) and mode != "r" else (
        c.full((0,), 0, A.dtype)), r


# ---- the exponential of a matrix ---------------------------------------------------------------

_TERMS = 18  # for a norm of at most 1 the next term is below the precision of float64


@aten("linalg_matrix_exp", "matrix_exp")
def matrix_exp(c: Context, self: Tracer) -> Any:
    """exp(a): the Taylor series of a·2⁻ˢ, whose norm is at most 1, squared s times in a loop."""
    axes = (self.ndim - 2, self.ndim - 1)
    norm = o.reduce_max(o.reduce_sum(o.abs(self), axes=axes[1:]), axes=axes[:1])
    halvings = o.max(o.ceil(o.div(o.log(o.max(norm, 1.0)), 0.6931471805599453)), 0.0)
    scaled = o.mul(self, o.pow(2.0, o.neg(halvings)))
    one = identity(self, self.shape[-1])
    y = one
    for k in range(_TERMS, 0, -1):
        y = o.add(one, o.div(o.matmul(scaled, c.broadcast(y, self.shape)), float(k)))
    most = c.reshape(o.reduce_max(halvings, axes=tuple(range(self.ndim))), ())

    def goes_on(i: Tracer, x: Tracer, each: Tracer, last: Tracer) -> Any:
        return o.lt(i, last)

    def square(i: Tracer, x: Tracer, each: Tracer, last: Tracer) -> Any:
        return o.add(i, 1.0), o.select(o.lt(i, each), o.matmul(x, x), x)
    start = c.full((), 0.0, self.dtype)
    types = [TensorType(t.dtype, t.shape) for t in (start, y, halvings, most)]
    return o.while_(start, y, halvings, most, cond=trace(goes_on, types),
                    body=trace(square, types), carries=2)[1]
