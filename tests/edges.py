"""Numbers at the edges of their types, and tables of what is tried on them.

Every integer type at its least and greatest numbers and around 0; floats at both zeros, among
subnormal numbers, at the largest, infinity and NaN. Each with each, where there are two operands.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from graphtool.dtypes import BY_NAME, DType
from graphtool.ir.op import OPS
from graphtool.scalars.table import FLOAT, TABLE
from tests.cases import INTEGERS, Case

Array = np.ndarray[Any, Any]


def integers(dtype: DType) -> list[int]:
    """The numbers of an integer type, in order."""
    low, high = dtype.low, dtype.high
    return sorted({low, low + 1, low // 2, max(low, -7), max(low, -1), 0, 1, 2, 7, high // 2,
                   high - 1, high})


def floats(dtype: DType) -> Array:
    """The numbers of a float type."""
    f = ml_dtypes.finfo(dtype.numpy)
    tiny, top = float(f.smallest_normal), float(f.max)
    return np.array([0.0, -0.0, tiny / 32, -tiny / 32, tiny, -tiny, float(f.eps), 1, -1, 0.5, -0.5,
                     1.5, -2.5, 3, -5, 7, 88, -104, 300, -750, top / 2, top, -top, math.inf,
                     -math.inf, math.nan]).astype(dtype.numpy)


def pairs(values: Array) -> tuple[Array, Array]:
    """Each number beside each."""
    n = len(values)
    return np.repeat(values, n), np.tile(values, n)


# ---- our ops on integers, beside Python's --------------------------------------------------------

def _quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _power(a: int, b: int) -> int:
    return pow(a, b, 1 << 64) if b >= 0 else {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _quotient,
    "rem": lambda a, b: a - b * _quotient(a, b) if b else 0, "mod": lambda a, b: a % b if b else 0,
    "pow": _power, "max": max, "min": min, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge}
UNARY: dict[str, Callable[[int], int]] = {
    "neg": operator.neg, "abs": abs, "sign": lambda a: (a > 0) - (a < 0), "not": operator.invert}
REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "reduce_sum": sum, "reduce_prod": math.prod, "reduce_max": max, "reduce_min": min}


def of_integers() -> Iterator[tuple[Case, Any]]:
    """A case of every op and type, and its results as numbers of any size; `held` wraps them."""
    for name in INTEGERS:
        dtype = BY_NAME[name]
        v = integers(dtype)
        x = np.array(v, dtype.numpy)
        a, b = pairs(x)
        for op, f in BINARY.items():
            yield Case(f"{op} {name}", OPS[op], (a, b), {}), [f(i, j) for i in v for j in v]
        for op, up in (("shift_left", True), ("shift_right", False)):
            yield Case(f"{op} {name}", OPS[op], (a, b), {}), [
                _shifted(i, j, dtype.bits, up) for i in v for j in v]
        for op, g in UNARY.items():
            yield Case(f"{op} {name}", OPS[op], (x,), {}), [g(i) for i in v]
        for op, h in REDUCTIONS.items():
            yield Case(f"{op} {name}", OPS[op], (x,), {"axes": (0,)}), [h(v)]
        for to in INTEGERS:
            yield Case(f"cast {name} {to}", OPS["cast"], (x,), {"dtype": BY_NAME[to]}), v
        low, high = dtype.low + 1, dtype.high - 1
        yield Case(f"clamp {name}", OPS["clamp"], (x, low, high), {}), [
            min(max(i, low), high) for i in v]


def _shifted(a: int, count: int, bits: int, up: bool) -> int:
    if not 0 <= count < bits:
        return -1 if a < 0 and not up else 0
    return a << count if up else a >> count


def held(numbers: list[int], dtype: np.dtype[Any]) -> Array:
    """The numbers in the type, wrapped around."""
    if dtype == np.bool_:
        return np.array(numbers, dtype)
    row = DTYPES[dtype]
    return np.array([(n - row.low) % (1 << row.bits) + row.low for n in numbers], dtype)


DTYPES = {BY_NAME[name].numpy: BY_NAME[name] for name in INTEGERS}

# ---- our ops on floats ---------------------------------------------------------------------------

FLOATS = ("f64", "f32", "f16", "bf16")


def of_floats(name: str) -> Iterator[Case]:
    """A case of every elementwise op of floats in one type; casts to every other."""
    dtype = BY_NAME[name]
    x = floats(dtype)
    tame = x[~(np.abs(x.astype(np.float64)) > 1e6)]  # as docs/numerics says of these
    for row in (r for r in TABLE if FLOAT in r.kinds and not (r.bits and dtype.is_narrow)):
        one = tame if row.name in ("sin", "cos", "tan") else x
        yield Case(f"{row.name} {name}", OPS[row.name], (one,) if row.arity == 1 else pairs(x), {})
    for to in (*INTEGERS, "bool", *FLOATS):
        yield Case(f"cast {name} {to}", OPS["cast"], (x,), {"dtype": BY_NAME[to]})
    rows = np.stack([np.roll(x, -i)[:3] for i in range(len(x))])
    for op in REDUCTIONS:
        yield Case(f"{op} {name}", OPS[op], (rows,), {"axes": (1,)})


# ---- functions of torch, as text -----------------------------------------------------------------

# a and b are operands, d divisors, s counts of bits, n a number; low is the least number but one

OF_TORCH = """a / b; a // d; a % d; torch.fmod(a, d); torch.maximum(a, b); torch.fmin(a, b); a == b
a - b; a * b; a + b; a < b; a >= b; torch.clamp(a, b, b); torch.where(a > b, a, b); torch.rsub(a, b)
torch.div(a, d, rounding_mode="floor"); torch.div(a, d, rounding_mode="trunc"); a.relu(); a.square()
torch.logical_xor(a, b); torch.isclose(a, b); torch.atan2(a, b); torch.xlogy(a, b); a.sign(); -a
a.abs(); a.clamp(min=0); a.amax(); a.argmin(); a.float(); a.double(); a.bool(); a.sort().values
a.diff(); a.argsort(stable=True); a.median(); torch.trunc(a); a.sqrt(); a.exp(); torch.sigmoid(a)
a.signbit(); a.reciprocal(); a.rsqrt(); a**2; a**3; a**0; torch.deg2rad(a)
F.pad(a, (1, 1), value=1); torch.isin(a, a[::3]); a.masked_fill(a > 0, 1); F.threshold(a, 1, 0)"""
OF_INTEGERS = """a & b; a | b; a ^ b; ~a; torch.gcd(a.clamp(low), b.clamp(low)); a << s; a >> s
2**s; torch.lcm(a.clamp(low), b.clamp(low)); torch.pow(a, s); a.cummax(0).values; (-2)**s; a.sum()
a.prod(); a.sum(dtype=a.dtype); a.prod(dtype=a.dtype); a.cumsum(0, dtype=a.dtype)
a.cumprod(0, dtype=a.dtype); a.to(torch.uint8); a.to(torch.int8); a.to(torch.int16)
a.to(torch.int32); a.to(torch.int64); torch.add(a, b, alpha=3); torch.addcmul(a, a, b, value=3)
torch.outer(a[:9], b[:9]); a.topk(3).values; torch.heaviside(a, b); a.count_nonzero()
(a.reshape(-1, 1) * b[:9]).sum(1); a.kthvalue(3).values; a.aminmax().max; a.reshape(1, -1) @ b"""
OF_FLOATING = """torch.copysign(a, b); torch.hypot(a, b); torch.logaddexp(a, b); a.lerp(b, 0.3)
torch.pow(a, b); a.float_power(2); a**0.5; a**-0.5; 2**a; 0**a; (-1)**a; a.logsumexp(0); a.acosh()
a.acos(); a.asinh(); a.atan(); a.atanh(); a.tanh(); a.erf(); a.erfc(); a.expm1(); a.log(); a.log1p()
a.log2(); a.frac(); a.floor(); a.round(); a.isinf(); a.isnan(); a.lgamma(); a.digamma(); a.sinh()
torch.nan_to_num(a); torch.sgn(a); torch.logit(a); torch.special.entr(a); torch.special.i0e(a)
torch.special.log1p(a); F.silu(a); F.softplus(a); F.elu(a); F.celu(a); F.leaky_relu(a); F.mish(a)
F.hardsigmoid(a); F.logsigmoid(a); F.softsign(a); F.hardshrink(a); F.softshrink(a); a.nansum()
a.nanmedian(); a[:20].kthvalue(3).values; a[::27].cummin(0)[0]; a.softmax(0)
torch.bucketize(a, a[::99].sort().values)"""
WITH_A_NUMBER = """a + n; a - n; n - a; a * n; a // n; a < n; a >= n; a == n; a != n; a / n
torch.rsub(a, n); torch.clamp(a, n, n); torch.clamp(a, min=n); torch.where(a > 0, a, n)
a.masked_fill(a > 0, n); torch.full_like(a, n); torch.maximum(a, torch.tensor(n))
F.pad(a, (1, 1), value=n)"""
OF_NARROW = """a * n; n * a; a / n; a // n; a < n; a <= n; a > n; a >= n; a == n; a != n; n < a
torch.clamp(a, n, n); torch.clamp(a, min=n); torch.clamp(a, max=n); torch.where(a > 0, a, n)
a.masked_fill(a > 0, n); torch.full_like(a, n); a.new_full((2,), n); F.pad(a, (1, 1), value=n)
F.threshold(a, n, 1.0); F.threshold(a, 1.0, n); F.hardtanh(a, -abs(n), abs(n)); F.leaky_relu(a, n)
F.hardshrink(a, abs(n)); torch.div(a, n, rounding_mode="trunc"); a.clone().mul_(n)
torch.addcmul(a, a, a, value=n); torch.lerp(a, a + 1, n); torch.nan_to_num(a, n, n, n)
torch.isclose(a, a + 1, atol=abs(n)); torch.isclose(a, a + 1, rtol=abs(n)); torch.copysign(a, n)
torch.maximum(a, torch.tensor(n)); torch.mul(a, torch.tensor(n)); a < torch.tensor(n)
torch.where(a > 0, a, torch.tensor(n)); a / torch.tensor(n); torch.float_power(a, n)
torch.div(a, n, rounding_mode="floor"); a.clone().fill_(n); a.index_fill(0, torch.tensor([1]), n)
F.layer_norm(a[1:4], (3,), eps=abs(n)); F.huber_loss(a[:9], a[:9] + 1, delta=abs(n) + 1)"""
# functions with numbers, shapes and mixed types of which each was wrong once
CORNERS = """F.elu(f, inf); F.celu(f, inf); F.elu(h, -inf); F.celu(h, nan); torch.logit(f, 0.7)
torch.logit(f, 1.0); torch.logit(f, nan); torch.logit(h, 0.5); F.softshrink(h, 0.5)
F.softshrink(f, 0.3); torch.isin(300, u); torch.isin(600, u, invert=True); torch.isin(0.5, f)
torch.isin(44, u); torch.ldexp(f, i); torch.ldexp(h, i); torch.ldexp(f.double(), i)
torch.ldexp(f.double(), f); torch.ldexp(u, f); torch.nextafter(h, h.flip(0)); torch.nextafter(h, h)
torch.nextafter(h, -h); torch.nextafter(h.half(), h.half().roll(1)); torch.nextafter(f, f.flip(0))
torch.logical_and(u, torch.tensor(256)); torch.logical_xor(f, torch.tensor(1e-300).double())
torch.logical_or(u, torch.tensor(0.3)); torch.logical_xor(u, i > 0); u.clone().copy_(300)
i // h.half(); f.clone().copy_(True)"""
INTEGER_NUMBERS = (-1, 200, 256, 300, -129, 40000, -70000, 2**31, -2**40, 0.5, -1.5, 300.7)
FLOAT_NUMBERS = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 1e30, 2, -3, 0.1)


def functions(table: str) -> list[str]:
    """The functions of a table."""
    return [f.strip() for line in table.splitlines() for f in line.split("; ")]
