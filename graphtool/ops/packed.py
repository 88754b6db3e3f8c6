"""Products with packed weights of few bits, and activations that are rounded to 8 bits for them."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ir.plan import Plan
from graphtool.ops.common import composite, need
from graphtool.ops.costs import NBITS
from graphtool.symbolic import ceildiv, known

STEPS = 127.0  # of the greatest magnitude of a block
LEAST = 1e-30  # smaller magnitudes are divided by this
_WIDE = (dtypes.float32, dtypes.float64)


def _rounded_types(x: TensorType, *, block: int) -> TensorType:
    need(x.rank == 2 and x.dtype in _WIDE and block > 0,
         f"x must be a matrix of float32 or float64 and a block have columns, got {x}, {block}")
    return x


@composite(types=_rounded_types, vjp=lambda g, _y, _x, *, block: (g,))
def round_blocks(x: Any, *, block: int) -> Any:
    """Rows rounded to 8 bits: each `block` adjacent columns to multiples of a 127th of
    their greatest magnitude, ties to even.

    A NaN or an infinity makes its whole block NaN. The gradient is that of x itself.
    """
    m, k = x.shape
    parts = ceildiv(k, block)
    wide = x if known(parts * block, "==", k) is True else o.pad(
        x, lo=(0, 0), hi=(0, parts * block - k))
    split = o.reshape(wide, shape=(m, parts, block))
    top = o.max(o.reduce_max(o.abs(split), axes=(2,)), LEAST)
    q = o.round(split * (STEPS / top)) * (top / STEPS)
    whole = o.reshape(q, shape=(m, parts * block))
    return o.slice(whole, start=(0, 0), limit=(m, k), strides=(1, 1))


def _nbits_types(x: TensorType, packed: TensorType, scales: TensorType,
                 zeros: TensorType | None = None, *, bits: int, block: int,
                 activations: str = "exact", plan: Plan | None = None) -> TensorType:
    need(bits in (2, 4, 8) and block * bits % 8 == 0,
         f"bits must be 2, 4 or 8 and a block must fill whole bytes, got {bits} bits in blocks of "
         f"{block}")
    need(x.rank == 2 and x.dtype.is_float, f"x must be a matrix of floats, got {x}")
    need(activations == "exact" or (activations == "q8" and x.dtype in _WIDE),
         f"activations are exact, or q8 of float32 or float64; got {activations!r} of {x}")
    rows = TensorType(dtypes.uint8, (*packed.shape[:2], block * bits // 8))
    need(packed == rows, f"the weights are {packed}, expected {rows}")
    want = TensorType(x.dtype, packed.shape[:2])
    need(scales == want and zeros in (None, want),
         f"the scales {scales} or zeros {zeros} have another shape or type")
    need(known(x.shape[1], "<=", packed.shape[1] * block) is True,
         f"{packed.shape[1]} blocks of {block} are fewer than the columns of {x}")
    return TensorType(x.dtype, (x.shape[0], packed.shape[0]))


@composite(types=_nbits_types, lowering=Lowering.STATEMENTS, plans=(NBITS,))
def linear_nbits(x: Any, packed: Any, scales: Any, zeros: Any = None, *, bits: int,
                 block: int, activations: str = "exact", plan: Plan | None = None) -> Any:
    """x·wᵀ with w[n, k] = (q − zero)·scale; each q has `bits` bits.

    A byte holds the lowest bits first. Each block of `block` elements along k has one scale and one
    zero; the zero is 2^(bits − 1) unless given. The last block may be longer than what is left of
    w. With `activations` q8, x is rounded as by `round_blocks`, in the blocks of w.
    """
    n, blocks = packed.shape[:2]
    parts = [o.and_(o.shift_right(packed, s), 2**bits - 1) if s else (
        packed if bits == 8 else o.and_(packed, 2**bits - 1)) for s in range(0, 8, bits)]
    q = o.reshape(o.stack(*parts, axis=3), shape=(n, blocks, block))
    x = o.round_blocks(x, block=block) if activations == "q8" else x
    return by_weights(x, real(q, scales, zeros, bits))


def real(q: Any, scales: Any, zeros: Any, bits: int) -> Any:
    """(q − zero)·scale for q [n, blocks, block]; scales and zeros [n, blocks]; as a matrix."""
    n, blocks, block = q.shape
    centre = float(2 ** (bits - 1)) if zeros is None else o.reshape(zeros, shape=(n, blocks, 1))
    wide = o.cast(q, dtype=scales.dtype) - centre
    return o.reshape(wide * o.reshape(scales, shape=(n, blocks, 1)), shape=(n, blocks * block))


def by_weights(x: Any, w: Any) -> Any:
    """x·wᵀ with the first columns of w, as many as x has."""
    return o.linear(x, o.slice(w, start=(0, 0), limit=(w.shape[0], x.shape[1]), strides=(1, 1)))
