"""What StableHLO's operations do with complex numbers: part by part, by arithmetic, by functions of
complex numbers; products, factors and Fourier transforms.

A graph has no complex type: inputs, outputs and carried values are two tensors each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from graphtool.front import complex_functions as functions
from graphtool.front.complex import Complex, combined, times
from graphtool.front.names import read
from graphtool.importers.stablehlo.driver.parts import PAIRED, is_complex, real_kind
from graphtool.importers.stablehlo.driver.registry import HANDLERS
from graphtool.importers.stablehlo.driver.values import array_of, element_type
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.importers.stablehlo.families.reduce import simple_body
from graphtool.importers.stablehlo.families.reflections import known_sizes
from graphtool.importers.stablehlo.kit import Array, Context, Dense, Refused, dtypes, o
from graphtool.importers.stablehlo.text.tree import Signature
from graphtool.ir.trace import trace
from graphtool.ops.matrices import swap_last_axes

Fn = TypeVar("Fn", bound=Callable[..., Any])


def paired(*names: str) -> Callable[[Fn], Fn]:
    """A decorator that registers what these operations do with complex numbers. A name without
    a dialect is one of StableHLO."""
    def declare(fn: Fn) -> Fn:
        PAIRED.update({n if "." in n else f"stablehlo.{n}": fn for n in names})
        return fn
    return declare


def real_context(ctx: Context) -> Context:
    """The context of the operation on one part: its complex results are real."""
    kinds = tuple(map(real_kind, ctx.op.signature.results))
    return replace(ctx, op=replace(ctx.op, signature=Signature(ctx.op.signature.operands, kinds)))


def part(x: Any, i: int) -> Any:
    """The real (0) or the imaginary (1) part; of a real value the value itself."""
    return (x.real, x.imag)[i] if isinstance(x, Complex) else x


def whole(x: Any) -> Complex:
    """A value as complex numbers; a real one has an imaginary part of 0."""
    return x if isinstance(x, Complex) else Complex(x, x.number(0).broadcast(x.shape))


# ---- part by part ------------------------------------------------------------------------------

def _parts(ctx: Context, *xs: Any, **attrs: Any) -> Any:
    """The same operation on both parts."""
    handler, inner = HANDLERS[ctx.op.name], real_context(ctx)
    pairs = [handler.fn(inner, *(part(x, i) for x in xs), **attrs) for i in (0, 1)]
    if isinstance(pairs[0], list):
        return [Complex(a, b) for a, b in zip(*pairs, strict=True)]
    return Complex(*pairs)


for _name in ("add", "subtract", "negate", "broadcast",
              "broadcast_in_dim", "dynamic_broadcast_in_dim",
              "reshape", "dynamic_reshape", "transpose", "slice", "real_dynamic_slice", "reverse",
              "pad", "dynamic_pad", "concatenate", "gather", "dynamic_gather", "dynamic_slice",
              "dynamic_update_slice", "optimization_barrier", "select", "torch_index_select",
              "all_gather", "all_to_all", "collective_broadcast", "collective_permute"):
    PAIRED[f"stablehlo.{_name}"] = _parts


@paired("get_dimension_size")
def _size(ctx: Context, x: Complex, **attrs: Any) -> Any:
    return HANDLERS[ctx.op.name].fn(ctx, x.real, **attrs)


@paired("reduce", "reduce_window", "scatter")
def _summed(ctx: Context, *xs: Any, **attrs: Any) -> Any:
    """Sums of parts; the body of a scatter may also replace. Other bodies run on the parts."""
    body = ctx.op.regions[0]
    replaces = ctx.op.name == "stablehlo.scatter" and body.operations[0].name == "return"
    if (simple_body(body) != "add" and not replaces) or attrs.get("dimensions") == []:
        return NotImplemented
    kinds = {a.name: real_kind(a.kind) for a in body.arguments}
    real = replace(body, arguments=tuple(replace(a, kind=kinds[a.name]) for a in body.arguments))
    return _parts(replace(ctx, op=replace(ctx.op, regions=(real,))), *xs, **attrs)


@paired("constant")
def _constant(ctx: Context, *, value: Any) -> Complex:
    kind = ctx.op.signature.results[0]
    row, shape = element_type(real_kind(kind)), tuple(d or 0 for d in kind.shape or ())
    if isinstance(value.elements, bytes):
        both = array_of(value, row, (*shape, 2))
        return Complex(*(ctx.builder.constant(both[..., i]) for i in (0, 1)))
    return Complex(*(ctx.builder.constant(array_of(Dense(_each(value.elements, i)), row, shape))
                     for i in (0, 1)))


def _each(x: Any, i: int) -> Any:
    return [_each(v, i) for v in x] if isinstance(x, list) else x[i]


@paired("iota", "dynamic_iota")
def _iota(ctx: Context, *xs: Any, **attrs: Any) -> Complex:
    """0, 1, 2, … with an imaginary part of 0."""
    return whole(HANDLERS[ctx.op.name].fn(real_context(ctx), *xs, **attrs))


@paired("convert")
def _convert(ctx: Context, x: Any) -> Any:
    if not is_complex(ctx.op.signature.results[0]):
        if ctx.dtype is not dtypes.bool_:
            return cast(x.real, ctx.dtype)
        return cast(x.real, dtypes.bool_) | cast(x.imag, dtypes.bool_)
    to = element_type(real_kind(ctx.op.signature.results[0]))
    return whole(x).each(lambda p: cast(p, to))


@paired("complex")
def _complex(ctx: Context, a: Any, b: Any) -> Complex:
    return Complex(a, b)


@paired("real")
def _real_part(ctx: Context, x: Any) -> Any:
    return part(x, 0)


@paired("imag")
def _imaginary_part(ctx: Context, x: Any) -> Any:
    return whole(x).imag


# ---- arithmetic and functions ------------------------------------------------------------------

def _pure(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ctx, *xs: fn(*xs)


for _name, (_word, *_) in read("hlo").items():
    if _word.op in functions.FUNCTIONS:
        paired(_name)(_pure(functions.FUNCTIONS[_word.op]))
paired("cbrt")(_pure(functions.cbrt))


@paired("compare")
def _compare(ctx: Context, x: Complex, y: Complex, *, comparison_direction: str) -> Any:
    if comparison_direction == "EQ":
        return o.eq(x.real, y.real) & o.eq(x.imag, y.imag)
    if comparison_direction == "NE":
        return o.ne(x.real, y.real) | o.ne(x.imag, y.imag)
    raise Refused("complex numbers have no order; only EQ and NE are supported")


@paired("dot_general", "dot", "convolution", "dynamic_conv", "einsum")
def _product(ctx: Context, x: Any, y: Any, *rest: Any, **attrs: Any) -> Complex:
    """(a + bi)(c + di), with four real products."""
    fn, inner = HANDLERS[ctx.op.name].fn, real_context(ctx)
    return combined(lambda a, b: fn(inner, a, b, *rest, **attrs), whole(x), whole(y))


# ---- factors -----------------------------------------------------------------------------------

@paired("cholesky")
def cholesky(ctx: Context, x: Complex, *, lower: Any = False) -> Complex:
    """L with L·L̄ᵀ = x, or its conjugate transpose; column after column."""
    full = x if lower else x.each(swap_last_axes).conj()
    (n, _), rank = known_sizes(full), full.ndim
    rows = np.arange(n).reshape(n, 1)

    def at(v: Any, axis: int, index: Any) -> Any:
        starts: list[Any] = [0] * rank
        starts[axis] = index
        sizes = tuple(1 if i == axis else d for i, d in enumerate(v.shape))
        return o.dynamic_slice(v, *starts, sizes=sizes)

    def step(index: Any, *parts: Any) -> Any:
        """Column j: what the columns before it leave of that of x, divided by a root."""
        done, given = Complex(*parts[:2]), Complex(*parts[2:])
        row = done.each(lambda v: swap_last_axes(at(v, rank - 2, index)))
        left = given.each(lambda v: at(v, rank - 1, index)) - times(done, row.conj())
        root = o.sqrt(at(left.real, rank - 2, index))
        place = index.builder.constant(rows)
        column = (o.select(place >= index, left.real / root, 0.0),
                  o.select(place > index, left.imag / root, 0.0))
        ends = [*[0] * (rank - 1), index]
        return (index + 1, *(o.dynamic_update_slice(v, c, *ends)
                             for v, c in zip(done.parts, column, strict=True)))
    blank = full.real.number(0).broadcast(full.shape)
    operands = [ctx.builder.number(0, dtypes.int64), blank, blank, *full.parts]
    body = trace(step, [v.type for v in operands])
    _, *parts = o.scan(*operands, body=body, carries=3, xs=0, length=n)
    factor = Complex(*parts)
    return factor if lower else factor.each(swap_last_axes).conj()


@paired("triangular_solve")
def triangular_solve(ctx: Context, a: Complex, b: Complex, *, left_side: Any, lower: Any,
                     unit_diagonal: Any, transpose_a: str) -> Complex:
    """x with op(a)·x = b, or x·op(a) = b."""
    return solved(a, b, bool(left_side), bool(lower), bool(unit_diagonal),
                  {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}.get(
                      str(transpose_a).split()[-1], "N"))


def solved(a: Complex, b: Complex, left: bool, low: bool, unit: bool, turn: str) -> Complex:
    """The solution by real numbers: each row is divided by its diagonal element; then an element
    p + qi becomes the block [p −q; q p], and blocks of the diagonal are 1."""
    a = a.conj() if turn == "C" else a
    if (turn != "N") == left:
        a, low = a.each(swap_last_axes), not low
    b = b if left else b.each(swap_last_axes)
    eye = np.eye(known_sizes(a)[0], dtype=a.dtype.numpy)
    if not unit:
        diagonal = a.each(lambda v: o.reduce_sum(v * eye, axes=(v.ndim - 1,)))
        a, b = a / diagonal, b / diagonal
    p, q = a.real * (1 - eye) + eye, a.imag * (1 - eye)
    x = o.triangular_solve(_woven([[p, -q], [q, p]]), _woven([[b.real], [b.imag]]), lower=low,
                           unit=True)
    solution = Complex(*(x.take(x.ndim - 2, i, x.shape[-2], 2) for i in (0, 1)))
    return solution if left else solution.each(swap_last_axes)


def _woven(blocks: list[list[Array]]) -> Any:
    """A matrix whose 2×k blocks have the elements of these matrices."""
    first = blocks[0][0]
    *lead, m, n = first.shape
    rows = [o.concat(*(x.reshape((*lead, m, 1, n, 1)) for x in row), axis=first.ndim + 1)
            for row in blocks]
    return o.concat(*rows, axis=first.ndim - 1).reshape((*lead, 2 * m, n * len(blocks[0])))


# ---- Fourier transforms ------------------------------------------------------------------------

@paired("fft")
def _fft(ctx: Context, x: Any, *, fft_type: str, fft_length: Any) -> Any:
    """A transform over the last axes: complex, or from and to real numbers along the last one."""
    lengths, rank = ints(fft_length), x.ndim
    axes = list(range(rank - len(lengths), rank))
    total = float(np.prod(lengths))
    if fft_type == "RFFT":
        return _along(Complex(*o.fourier(x, half=True)), axes[:-1], False)
    if fft_type == "IRFFT":
        transformed = _along(whole(x), axes[:-1], True)
        return o.fourier_real(transformed.real, transformed.imag, size=lengths[-1]) / total
    inverse = fft_type == "IFFT"
    transformed = _along(whole(x), axes, inverse)
    return transformed / total if inverse else transformed


def _along(x: Complex, axes: list[int], inverse: bool) -> Complex:
    """The transform along each of the axes, not divided by their lengths."""
    for axis in axes:
        order = [*(i for i in range(x.ndim) if i != axis), axis]
        back = [order.index(i) for i in range(x.ndim)]
        transformed = Complex(*o.fourier(*(v.transpose(order) for v in x.parts), inverse=inverse))
        x = transformed.each(lambda v, back=back: v.transpose(back))
    return x
