"""Random bits with a state: XLA's Philox and Threefry, the same bits as on a CPU.

jax.random needs nothing of this: JAX writes its own generator as plain operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.stablehlo.kit import Array, Context, Refused, dtypes, o, product, stablehlo

# Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011), sections 4.2 and 4.3
_FACTORS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_TURNS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF


@stablehlo("rng_bit_generator")
def rng_bit_generator(ctx: Context, state: Array, *, rng_algorithm: str) -> list[Any]:
    """The state after, and uniform bits of the result's type."""
    words = ctx.result(1)
    if state.dtype is not dtypes.uint64 or state.shape not in ((2,), (3,)) or words.dtype.bits < 8:
        raise Refused("only a state of two or three words of 64 bits is supported")
    shape = tuple(int(d) for d in words.shape if isinstance(d, int))
    fry = "THREE_FRY" in str(rng_algorithm)
    after, bits = (_from_threefry if fry else _from_philox)(state, shape, words.dtype.bits)
    unsigned = dtypes.BY_NAME[f"uint{words.dtype.bits}"]
    out = (bits & ((1 << unsigned.bits) - 1)).cast(unsigned) if unsigned.bits < 64 else bits
    return [after, out.bits_as(words.dtype).reshape(words.shape)]


def _parts(state: Array) -> list[Array]:
    (count,) = state.shape
    assert isinstance(count, int)
    return [state.take(0, i, i + 1).reshape(()) for i in range(count)]


def _joined(parts: list[Any]) -> Any:
    return o.concat(*(p.reshape((1,)) for p in parts), axis=0)


def _halves(x: Any) -> list[Any]:
    """The lower and the upper 32 bits, each in a word of 64."""
    return [x & _WORD, x >> 32]


def _whole(low: Any, high: Any) -> Any:
    return low | (high << 32)


# ---- Philox ------------------------------------------------------------------------------------

def _from_philox(state: Array, shape: tuple[int, ...], bits: int) -> tuple[Any, Any]:
    """Blocks of four words of 32 bits, or two of 64, from a counter of 128 bits, whose upper half
    is the key where the state is (key, counter)."""
    parts = _parts(state)
    key, low, high = parts if len(parts) == 3 else (parts[0], parts[1], parts[0])
    count, each = int(np.prod(shape, dtype=np.int64)), 2 if bits == 64 else 4
    blocks = -(-count // each)
    line = key.builder.constant(np.arange(blocks, dtype=np.uint64))
    counter = line + low
    carry = (counter < line).cast(dtypes.uint64)
    words = _philox([*_halves(counter), *_halves(high.broadcast((blocks,)) + carry)],
                    _halves(key))
    if each == 2:
        words = [_whole(words[0], words[1]), _whole(words[2], words[3])]
    columns = [w.reshape((blocks, 1)) for w in words]
    out = o.concat(*columns, axis=1).reshape((each * blocks,))
    after = low + blocks
    beyond = high + (after < low).cast(dtypes.uint64)
    return _joined([key, after, beyond][:len(parts)]), out.slice([0], [count])


def _philox(counter: list[Any], key: list[Any]) -> list[Any]:
    """Ten rounds on words of 32 bits, held in 64 so that a product has all of its bits."""
    a, b, c, d = counter
    for _ in range(_ROUNDS):
        (low0, high0), (low1, high1) = (_halves(x * f)
                                        for x, f in zip((a, c), _FACTORS, strict=True))
        a, b, c, d = (high1 ^ b ^ key[0], low1, high0 ^ d ^ key[1], low0)
        key = [(k + s) & _WORD for k, s in zip(key, _STEPS, strict=True)]
    return [a, b, c, d]


# ---- Threefry ----------------------------------------------------------------------------------

def _from_threefry(state: Array, shape: tuple[int, ...], bits: int) -> tuple[Any, Any]:
    """Two words of 32 bits from each number of the counter: one of 64 bits, or two elements beside
    each other along the first axis of an even size, else along the longest one."""
    if len(_parts(state)) != 2:
        raise Refused("the state of THREE_FRY must be two words of 64 bits")
    key, low = _parts(state)
    sizes = shape or (1,)
    axis = next((i for i, d in enumerate(sizes) if d % 2 == 0), sizes.index(max(sizes)))
    half = sizes if bits == 64 else tuple(-(-d // 2) if i == axis else d
                                          for i, d in enumerate(sizes))
    count = int(product(half))  # type: ignore[arg-type]
    line = key.builder.constant(np.arange(count, dtype=np.uint64).reshape(half))
    a, b = _threefry(_halves(line + low), _halves(key))
    after = _joined([key, low + count])
    if bits == 64:
        return after, _whole(a, b)
    wide = (*half[:axis + 1], 1, *half[axis + 1:])
    both = o.concat(a.reshape(wide), b.reshape(wide), axis=axis + 1)
    doubled = (*half[:axis], 2 * half[axis], *half[axis + 1:])
    return after, both.reshape(doubled).slice([0] * len(sizes), sizes)


def _threefry(counter: list[Any], key: list[Any]) -> list[Any]:
    """Twenty rounds on words of 32 bits, held in 64; the key is added after every four."""
    keys = [*key, key[0] ^ key[1] ^ _PARITY]
    a, b = ((x + k) & _WORD for x, k in zip(counter, keys, strict=False))
    for i in range(5):
        for turn in _TURNS[i % 2]:
            a = (a + b) & _WORD
            b = (((b << turn) & _WORD) | (b >> (32 - turn))) ^ a
        a = (a + keys[(i + 1) % 3]) & _WORD
        b = (b + keys[(i + 2) % 3] + (i + 1)) & _WORD
    return [a, b]
