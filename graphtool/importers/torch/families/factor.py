"""Cholesky, LU and QR factorisations, linear systems and determinants; spectral.py has eigenvectors
and singular values. Where torch raises for a singular matrix, the result is NaN or infinite.
"""

from __future__ import annotations

from typing import Any

from graphtool.importers.torch.kit import Array, Context, Dim, Refused, TensorType, aten, dtypes, o
from graphtool.ir.trace import trace
from graphtool.ops.common import broadcast_shapes
from graphtool.ops.matrices import identity, swap_last_axes, triangle


def _spread(*xs: Array) -> list[Array]:
    """Matrices broadcast to the same leading axes."""
    lead = broadcast_shapes(*(x.shape[:-2] for x in xs))
    return [x.broadcast((*lead, *x.shape[-2:])) for x in xs]


def _diagonal(c: Context, x: Array) -> Array:
    n = x.ndim - 2
    size = min(x.shape[-2:], key=str) if x.shape[-1] == x.shape[-2] else min(
        int(d) for d in x.shape[-2:])  # type: ignore[arg-type]
    diagonal: Array = o.gather(x, c.iota((size, 2), 0), axes=(n, n + 1))
    return diagonal.moveaxis(0, -1)


def _first(c: Context, bad: Array) -> Array:
    """i32: the first true place of the last axis, counted from 1; 0 if there is none."""
    n = bad.shape[-1]
    if 0 in bad.shape:
        return c.full(bad.shape[:-1], 0, dtypes.int32)
    none = c.number(n, dtypes.int64)
    places = c.iota((*(1,) * (bad.ndim - 1), n), bad.ndim - 1) + 1
    least = o.select(bad, places, none + 1).reduce("min", (bad.ndim - 1,))
    first: Array = o.select(least > none, 0, least)
    return first.cast(dtypes.int32)


# ---- Cholesky ----------------------------------------------------------------------------------

def _upper(x: Array, upper: bool) -> Array:
    return swap_last_axes(x) if upper else x


@aten("cholesky")
def cholesky(c: Context, self: Array, upper: bool = False) -> Any:
    """L with L·Lᵀ = a, [..., n, n]; with `upper` the transpose."""
    return _upper(o.cholesky(_upper(self, upper)), upper)


@aten("linalg_cholesky_ex")
def linalg_cholesky_ex(c: Context, self: Array, *, upper: bool = False,
                       check_errors: bool = False) -> Any:
    """(L, i32 code): 0, or the first row, from 1, whose pivot is not positive."""
    factor = cholesky(c, self, upper)
    return factor, _first(c, ~(_diagonal(c, factor) > 0.0))


@aten("cholesky_solve")
def cholesky_solve(c: Context, self: Array, input2: Array, upper: bool = False) -> Any:
    """x of L·Lᵀ·x = b: one triangular_solve with L, one with Lᵀ."""
    b, factor = _spread(self, _upper(input2, upper))
    half = o.triangular_solve(factor, b)
    return o.triangular_solve(swap_last_axes(factor), half, lower=False)


@aten("cholesky_inverse")
def cholesky_inverse(c: Context, self: Array, upper: bool = False) -> Any:
    """(L·Lᵀ)⁻¹: cholesky_solve of the identity."""
    return cholesky_solve(c, identity(self, self.shape[-1], self.shape[:-2]), self, upper)


# ---- triangular systems ------------------------------------------------------------------------

@aten("linalg_solve_triangular")
def linalg_solve_triangular(c: Context, self: Array, B: Array, *, upper: bool,
                            left: bool = True, unitriangular: bool = False) -> Any:
    """triangular_solve of a·x = b; of x·a = b by way of aᵀ·xᵀ = bᵀ."""
    a, b = _spread(self, B)
    if left:
        return o.triangular_solve(a, b, lower=not upper, unit=unitriangular)
    x = o.triangular_solve(swap_last_axes(a), swap_last_axes(b), lower=upper, unit=unitriangular)
    return swap_last_axes(x)


@aten("triangular_solve")
def triangular_solve(c: Context, self: Array, A: Array, upper: bool = True,
                     transpose: bool = False, unitriangular: bool = False) -> Any:
    """(x, a) with a·x = b, or aᵀ·x = b, by triangular_solve."""
    b, a = _spread(self, A)
    if transpose:
        a, upper = swap_last_axes(a), not upper
    x = o.triangular_solve(a, b, lower=not upper, unit=unitriangular)
    return x, _spread(A, self)[0]


# ---- LU ----------------------------------------------------------------------------------------

def _lu(a: Array, pivot: bool = True) -> tuple[Array, Array]:
    if not pivot:
        raise Refused("an LU factorisation without pivoting is not supported; use pivot=True")
    return o.lu(a)  # type: ignore[no-any-return]


def _from_zero(pivots: Array) -> Array:
    return pivots.cast(dtypes.int64) - 1


@aten("linalg_lu_factor_ex")
def linalg_lu_factor_ex(c: Context, A: Array, *, pivot: bool = True,
                        check_errors: bool = False) -> Any:
    """(L and U in one matrix, i32 row swaps from 1, i32 code: 0 or first zero pivot)."""
    factors, swaps = _lu(A, pivot)
    return factors, (swaps + 1).cast(dtypes.int32), _singular(c, factors)


def _singular(c: Context, factors: Array) -> Array:
    return _first(c, o.eq(_diagonal(c, factors), 0.0))


@aten("linalg_lu_solve")
def linalg_lu_solve(c: Context, LU: Array, pivots: Array, B: Array, *, left: bool = True,
                    adjoint: bool = False) -> Any:
    """x of a·x = b, x·a = b or the same with aᵀ, from a's LU factors and row swaps."""
    factors, b = _spread(LU, B if left else swap_last_axes(B))
    swaps = _from_zero(pivots).broadcast((*factors.shape[:-2], pivots.shape[-1]))
    x = _transposed_solve(factors, swaps, b) if adjoint is left else (
        o.lu_solve(factors, swaps, b))
    return x if left else swap_last_axes(x)


def _transposed_solve(factors: Array, swaps: Array, b: Array) -> Any:
    """Solves aᵀ·x = b: first with Uᵀ, then with Lᵀ, then the row swaps are undone."""
    transposed = swap_last_axes(factors)
    x = o.triangular_solve(transposed, o.triangular_solve(transposed, b), lower=False, unit=True)
    order = o.swapped(swaps, size=b.shape[-2])
    return o.scatter(x, order.unsqueeze(), x, axes=(b.ndim - 2,), batch=b.ndim - 2)


def _unpacked(c: Context, factors: Array, swaps: Array) -> tuple[Any, Any, Any]:
    """(P, L, U) as matrices: [m, m], [m, k], [k, n]."""
    m, k, axis = factors.shape[-2], swaps.shape[-1], factors.ndim - 2
    low = triangle(factors, True, -1).take(axis + 1, 0, k)
    diagonal = o.eq(c.iota((m, 1), 0), c.iota((1, k), 1))
    order = o.swapped(swaps, size=m)  # row i of P·(L·U) is order's inverse: P[order[i], i] = 1
    hot = o.eq(c.iota((m, 1), 0), order.unsqueeze(-2))
    return (hot.cast(factors.dtype), o.select(diagonal, 1.0, low),
            triangle(factors, False).take(axis, 0, k))


@aten("lu_unpack")
def lu_unpack(c: Context, LU_data: Array, LU_pivots: Array, unpack_data: bool = True,
              unpack_pivots: bool = True) -> Any:
    """(P, L, U) from the packed factors; refuses factors or pivots alone."""
    if not (unpack_data and unpack_pivots):
        raise Refused("lu_unpack is supported only with unpack_data and unpack_pivots both True")
    return _unpacked(c, LU_data, _from_zero(LU_pivots))


@aten("linalg_lu")
def linalg_lu(c: Context, A: Array, *, pivot: bool = True) -> Any:
    """(P, L, U) with P·L·U = a."""
    return _unpacked(c, *_lu(A, pivot))


def _flips(c: Context, swaps: Array) -> Any:
    """The sign of the permutation: −1 for each real swap of rows, multiplied."""
    moved = o.ne(swaps, c.iota((*(1,) * (swaps.ndim - 1), swaps.shape[-1]), swaps.ndim - 1))
    return 1.0 - o.mod(moved.cast(dtypes.float64).reduce("sum", (swaps.ndim - 1,)), 2.0) * 2.0


@aten("_linalg_det")
def det(c: Context, A: Array) -> Any:
    """det a = ± the product of U's diagonal; the factors are not returned."""
    factors, swaps = _lu(A)
    size = _diagonal(c, factors).reduce("prod", (A.ndim - 2,))
    return size * _flips(c, swaps).cast(A.dtype), None, None


@aten("_linalg_slogdet")
def slogdet(c: Context, A: Array) -> Any:
    """(sign of det a, log |det a|) from U's diagonal and the row swaps."""
    factors, swaps = _lu(A)
    line, axis = _diagonal(c, factors), (A.ndim - 2,)
    sign = o.sign(line).reduce("prod", axis) * _flips(c, swaps).cast(A.dtype)
    return sign, o.log(abs(line)).reduce("sum", axis), None, None


@aten("_linalg_solve_ex")
def solve(c: Context, A: Array, B: Array, *, left: bool = True,
          check_errors: bool = False) -> Any:
    """x of a·x = b or x·a = b by lu and lu_solve; b may be a vector."""
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    b = B.unsqueeze() if vector else B
    a, b = _spread(A, b) if left or vector else _spread(swap_last_axes(A), swap_last_axes(b))
    x = o.lu_solve(*_lu(a), b)
    x = x if left or vector else swap_last_axes(x)
    return x.reshape(c.out.shape), None, None, c.zeros(3)  # singular: NaN or infinity, no code


@aten("linalg_inv_ex")
def inverse(c: Context, A: Array, *, check_errors: bool = False) -> Any:
    """(a⁻¹ by lu_solve of the identity, i32 code: 0 or the first zero pivot, from 1)."""
    factors, swaps = _lu(A)
    return o.lu_solve(factors, swaps, identity(A, A.shape[-1], A.shape[:-2])), (
        _singular(c, factors))


# ---- QR ----------------------------------------------------------------------------------------

def _eye(c: Context, like: Array, rows: Dim, columns: Dim) -> Array:
    one: Array = o.eq(c.iota((rows, 1), 0), c.iota((1, columns), 1))
    return one.cast(like.dtype).broadcast((*like.shape[:-2], rows, columns))


@aten("linalg_householder_product", "orgqr")
def householder_product(c: Context, input: Array, tau: Array) -> Any:
    """Q, [..., m, n]: the reflections applied to the identity."""
    return o.reflect(input, tau, _eye(c, input, *input.shape[-2:]))


@aten("ormqr")
def ormqr(c: Context, self: Array, input2: Array, input3: Array, left: bool = True,
          transpose: bool = False) -> Any:
    """reflect: Q·x or x·Q, with Q or its transpose; Q stands as Householder vectors."""
    if left:
        return o.reflect(self, input2, input3, transpose=transpose)
    return swap_last_axes(o.reflect(self, input2, swap_last_axes(input3), transpose=not transpose))


@aten("linalg_qr")
def qr(c: Context, A: Array, mode: str = "reduced") -> Any:
    """(Q, R): "reduced" Q is [m, k], "complete" [m, m]; mode "r" gives R alone."""
    m = A.shape[-2]
    packed, tau = o.householder(A)
    rows = m if mode == "complete" else tau.shape[-1]
    r = triangle(packed, False).take(A.ndim - 2, 0, rows)
    return c.zeros(0) if mode == "r" else o.reflect(packed, tau, _eye(c, A, m, rows)), r


# ---- the exponential of a matrix ---------------------------------------------------------------

_TERMS = 18  # for a norm of at most 1 the next term is below the precision of float64


@aten("linalg_matrix_exp", "matrix_exp")
def matrix_exp(c: Context, self: Array) -> Any:
    """exp(a): the Taylor series of a·2⁻ˢ, whose norm is at most 1, squared s times in a loop."""
    axes = (self.ndim - 2, self.ndim - 1)
    norm = o.reduce_max(o.reduce_sum(abs(self), axes=axes[1:]), axes=axes[:1])
    halvings = o.max(o.ceil(o.log(o.max(norm, 1.0)) / 0.6931471805599453), 0.0)
    scaled = self * o.pow(2.0, -halvings)
    one = identity(self, self.shape[-1])
    y = one
    for k in range(_TERMS, 0, -1):
        y = one + o.matmul(scaled, y.broadcast(self.shape)) / float(k)
    most = o.reduce_max(halvings, axes=tuple(range(self.ndim))).reshape(())

    def goes_on(i: Any, x: Any, each: Any, last: Any) -> Any:
        return i < last

    def square(i: Any, x: Any, each: Any, last: Any) -> Any:
        return i + 1.0, o.select(i < each, o.matmul(x, x), x)
    start = c.full((), 0.0, self.dtype)
    types = [TensorType(t.dtype, t.shape) for t in (start, y, halvings, most)]
    return o.while_(start, y, halvings, most, cond=trace(goes_on, types),
                    body=trace(square, types), carries=2)[1]
