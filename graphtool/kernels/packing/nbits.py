"""Weights of 2, 4 or 8 bits in panels of rows: a word of a row is beside those of its neighbours.

A word has four bytes. Field f of the bytes of word w holds the columns (w·8/bits + f)·4 to + 4 of a
block, so that a shift and a mask give four adjacent columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ops.common import Array, need
from graphtool.ops.packed import real
from graphtool.rewrite.engine import array_of
from graphtool.symbolic import Dim, ceildiv


def fits(bits: int, block: int) -> bool:
    """Whether a block fills whole words."""
    return block * bits % 32 == 0


def _infer(packed: TensorType, *, lanes: int, bits: int) -> TensorType:
    need(packed.rank == 3 and packed.dtype is dtypes.uint8 and bits in (2, 4, 8),
         f"{packed} are not weights of {bits} bits in blocks")
    n, parts, nbytes = packed.shape
    need(isinstance(nbytes, int) and nbytes % 4 == 0, f"blocks of {nbytes} bytes are no words")
    return TensorType(dtypes.uint8, (ceildiv(n, lanes), parts, nbytes * lanes))


def _eval(packed: Array, *, lanes: int, bits: int) -> Array:
    n, parts, nbytes = packed.shape
    per, words, panels = 8 // bits, nbytes // 4, -(-n // lanes)
    out = np.zeros((panels * lanes, parts, words, 4), np.uint8)
    # byte i of a block holds the columns i·per to + per
    q = np.stack([packed >> np.uint8(f * bits) & np.uint8(2**bits - 1) for f in range(per)], 3)
    fields = q.reshape(n, parts, words, per, 4)
    for f in range(per):
        out[:n] |= fields[:, :, :, f] << np.uint8(f * bits)
    moved = out.reshape(panels, lanes, parts, words, 4).transpose(0, 2, 3, 1, 4)
    return np.ascontiguousarray(moved).reshape(panels, parts, nbytes * lanes)


register(Op("pack_nbits", _infer, _eval, category="memory",
            doc="weights of few bits, [N, blocks, bytes], in panels of `lanes` rows: four bytes of "
                "a row are beside those of the next row"))


def panels(w: Any, scales: Any, zeros: Any, lanes: int, bits: int) -> list[Any]:
    """Weights, scales and zeros, if there are any, in panels; the tables are float16 if that
    holds all their numbers exactly."""
    tables = [v for v in (scales, zeros) if v is not None]
    half = all(_is_half(array_of(v)) for v in tables)
    packed = [o.pack(v, nr=lanes, transpose=True) for v in tables]
    return [o.pack_nbits(w, lanes=lanes, bits=bits),
            *(o.cast(v, dtype=dtypes.float16) if half else v for v in packed)]


def _is_half(x: Array | None) -> bool:
    if x is None:
        return False
    with np.errstate(over="ignore"):
        return bool(np.array_equal(x.astype(np.float16).astype(np.float32), x))


def product(x: TensorType, q: TensorType, scales: TensorType, zeros: TensorType | None, n: int,
            bits: int, block: int) -> TensorType:
    """The type of x·wᵀ with w in panels. Raises TypeMismatch for operands that do not fit."""
    need(x.rank == 2 and x.dtype is dtypes.float32, f"x must be a matrix of float32, got {x}")
    need(bits in (2, 4, 8) and fits(bits, block) and q.rank == 3 and q.dtype is dtypes.uint8,
         f"{q} are not panels of {bits} bits in blocks of {block}")
    lanes = q.shape[2] // (block * bits // 8)
    need(scales.shape == (*q.shape[:2], lanes) and zeros in (None, scales)
         and scales.dtype in (dtypes.float32, dtypes.float16),
         f"the scales {scales} or zeros {zeros} do not fit {q}")
    need(ceildiv(n, lanes) == q.shape[0] and ceildiv(x.shape[1], block) <= q.shape[1],
         f"{q} does not have the panels for {n} rows, or not the blocks for {x}")
    return TensorType(x.dtype, (x.shape[0], n))


def flops(y: TensorType, x: TensorType, *_: Any, **__: Any) -> Dim:
    """The operations of such a product."""
    return 2 * y.shape[0] * y.shape[1] * x.shape[1]


def weights(q: Any, scales: Any, zeros: Any, n: int, bits: int, block: int) -> Any:
    """The weights in panels as float32 [n, blocks·block]."""
    whole = _integers(q, n, bits, block)
    return real(whole, _table(scales, n), None if zeros is None else _table(zeros, n), bits)


def _integers(panels: Any, n: int, bits: int, block: int) -> Any:
    """What `pack_nbits` packed: uint8 [n, blocks, block]."""
    count, parts, wide = panels.shape
    words = block * bits // 32
    split = o.reshape(panels, shape=(count, parts, words, wide // words // 4, 4))
    fields = [o.and_(o.shift_right(split, s), 2**bits - 1) if s else (
        split if bits == 8 else o.and_(split, 2**bits - 1)) for s in range(0, 8, bits)]
    rows = o.transpose(o.stack(*fields, axis=3), perm=(0, 4, 1, 2, 3, 5))
    return _first(o.reshape(rows, shape=(count * (wide // words // 4), parts, block)), n)


def _table(panels: Any, n: int) -> Any:
    """Scales or zeros in panels, [panels, blocks, lanes], as float32 [n, blocks]."""
    count, parts, lanes = panels.shape
    rows = o.transpose(o.cast(panels, dtype=dtypes.float32), perm=(0, 2, 1))
    return _first(o.reshape(rows, shape=(count * lanes, parts)), n)


def _first(x: Any, n: int) -> Any:
    return o.slice(x, start=(0,) * x.ndim, limit=(n, *x.shape[1:]), strides=(1,) * x.ndim)
