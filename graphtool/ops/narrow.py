"""Products with weights of 2, 4 or 8 bits, kept whole for a kernel that reads them as packed."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, need
from graphtool.symbolic import known


def _types(x: TensorType, packed: TensorType, scales: TensorType, zeros: TensorType | None = None,
           *, bits: int, block: int) -> TensorType:
    need(bits in (2, 4, 8) and block * bits % 8 == 0, f"{bits} bits in blocks of {block}")
    need(x.rank == 2 and x.dtype.is_float, f"x {x} is a matrix of floats")
    rows = TensorType(dtypes.uint8, (*packed.shape[:2], block * bits // 8))
    need(packed == rows, f"the weights are {packed}, {rows} expected")
    want = TensorType(x.dtype, packed.shape[:2])
    need(scales == want and zeros in (None, want), f"scales {scales}, zeros {zeros}")
    need(known(x.shape[1], "<=", packed.shape[1] * block) is True,
         f"{packed.shape[1]} blocks of {block} are fewer than the columns of {x}")
    return TensorType(x.dtype, (x.shape[0], packed.shape[0]))


@composite(types=_types, lowering=Lowering.STATEMENTS)
def linear_nbits(x: Any, packed: Any, scales: Any, zeros: Any = None, *, bits: int,
                 block: int) -> Any:
    """x·wᵀ with w[n, k] = (q − zero)·scale: q of `bits` bits, the lowest of a byte first, a scale
    and a zero (2^(bits − 1) unless given) a block of `block` along k; the last may stick out."""
    n, blocks = packed.shape[:2]
    parts = [o.and_(o.shift_right(packed, s), 2**bits - 1) if s else (
        packed if bits == 8 else o.and_(packed, 2**bits - 1)) for s in range(0, 8, bits)]
    q = o.cast(o.reshape(o.stack(*parts, axis=3), shape=(n, blocks, block)), dtype=x.dtype)
    centre = float(2 ** (bits - 1)) if zeros is None else o.reshape(zeros, shape=(n, blocks, 1))
    w = o.reshape((q - centre) * o.reshape(scales, shape=(n, blocks, 1)),
                  shape=(n, blocks * block))
    k = x.shape[1]
    return o.linear(x, o.slice(w, start=(0, 0), limit=(n, k), strides=(1, 1)))
