"""Random bits with a state: XLA's Philox, the same bits as on a CPU.

jax.random needs nothing of this: JAX writes its own generator as plain operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.families.movement import reshaped, sliced
from graphtool.symbolic import product

# Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011), section 4.3
_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


@stablehlo("rng_bit_generator")
def rng_bit_generator(ctx: Context, state: Any, *, rng_algorithm: str) -> list[Any]:
    """The state after, and uniform bits: blocks of four words from a counter of 128 bits, whose
    upper half is the key where the state is (key, counter)."""
    words = ctx.result(1)
    if "THREE_FRY" in str(rng_algorithm):
        raise Refused("of the generators only PHILOX and DEFAULT are supported")
    if words.dtype not in (dtypes.uint32, dtypes.int32) or ctx.typed(state).shape not in (
            (2,), (3,)) or ctx.typed(state).dtype is not dtypes.uint64:
        raise Refused("only words of 32 bits from a state of two or three of 64 are supported")
    x = ctx.tensor(state)
    parts = [o.reshape(sliced(ctx, x, [i], [i + 1], [1]), shape=()) for i in range(x.shape[0])]
    key, low, high = parts if len(parts) == 3 else (parts[0], parts[1], parts[0])
    count = product(words.shape)
    assert isinstance(count, int)
    blocks = -(-count // 4)
    line = x.builder.constant(np.arange(blocks, dtype=np.uint64))
    counter = o.add(line, low)
    carry = o.cast(o.lt(counter, line), dtype=dtypes.uint64)
    made = _philox([*_halves(counter), *_halves(o.add(o.broadcast(high, shape=(blocks,)), carry))],
                   _halves(key))
    columns = [o.reshape(w, shape=(blocks, 1)) for w in made]
    bits = o.reshape(o.concat(*columns, axis=1), shape=(4 * blocks,))
    out = o.cast(sliced(ctx, bits, [0], [count], [1]), dtype=dtypes.uint32)
    out = out if words.dtype is dtypes.uint32 else o.bitcast(out, dtype=words.dtype)
    after = o.add(low, blocks)
    beyond = o.add(high, o.cast(o.lt(after, low), dtype=dtypes.uint64))
    rows = [key, after, beyond][:len(parts)]
    return [o.concat(*(o.reshape(r, shape=(1,)) for r in rows), axis=0),
            reshaped(ctx, out, words.shape)]


def _halves(x: Any) -> list[Any]:
    """The lower and the upper 32 bits, each in a word of 64."""
    return [o.and_(x, 0xFFFFFFFF), o.shift_right(x, 32)]


def _philox(counter: list[Any], key: list[Any]) -> list[Any]:
    """Ten rounds on words of 32 bits, held in 64 so that a product has all of its bits."""
    a, b, c, d = counter
    for _ in range(_ROUNDS):
        (low0, high0), (low1, high1) = (_halves(o.mul(x, f))
                                        for x, f in zip((a, c), _FACTORS, strict=True))
        a, b, c, d = (o.xor(o.xor(high1, b), key[0]), low1, o.xor(o.xor(high0, d), key[1]), low0)
        key = [o.and_(o.add(k, s), 0xFFFFFFFF) for k, s in zip(key, _STEPS, strict=True)]
    return [a, b, c, d]
