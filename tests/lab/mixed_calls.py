"""Calls of torch's operators of two operands, over all pairs of element types.

An operand is a tensor, a tensor of rank 0 (an input, or a constant of the model) or a Python
number. They hold the numbers at the edges of their types. Calls that torch does not define, or that
end its process, are left out (docs/numerics.md).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import torch

from graphtool.dtypes import BY_NAME, DType
from tests import edges

Array = np.ndarray[Any, Any]
Operand: TypeAlias = torch.Tensor | int | float

EXACT = edges.functions("""x + y; x - y; x * y; x == y; x != y; x < y; x <= y; x > y; x >= y
torch.maximum(x, y); torch.minimum(x, y); torch.fmax(x, y); torch.fmin(x, y); x & y; x | y; x ^ y
x << y; x >> y; torch.bitwise_left_shift(x, y); torch.bitwise_right_shift(x, y); x / y
torch.where(x > y, x, y); torch.copysign(x, y); torch.nextafter(x, y); torch.heaviside(x, y)
torch.logical_and(x, y); torch.logical_xor(x, y); torch.clamp(x, y, y); torch.clamp(x, min=y)
torch.where(x > 0, y, x); torch.rsub(x, y); x.clone().add_(y); x.clone().mul_(y)
x.clone().sub_(y); x.clone().eq_(y); torch.where(x > 0, x, y)
x.masked_fill(x > 0, y)""")
DIVIDING = edges.functions("""x // y; x % y; torch.div(x, y, rounding_mode="floor")
torch.div(x, y, rounding_mode="trunc"); torch.fmod(x, y); torch.remainder(x, y)
x.clone().floor_divide_(y); x.clone().remainder_(y)""")
WITHOUT_LEAST = edges.functions("torch.gcd(x, y); torch.lcm(x, y)")
ROUNDED = edges.functions("""x ** y; torch.pow(x, y); torch.float_power(x, y); torch.atan2(x, y)
torch.hypot(x, y); torch.logaddexp(x, y); torch.logaddexp2(x, y); torch.xlogy(x, y)
torch.special.xlog1py(x, y); torch.ldexp(x, y)""")
TEXTS = [*EXACT, *DIVIDING, *WITHOUT_LEAST, *ROUNDED]
TYPES = ("bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
NUMBERS: dict[str, tuple[int | float, ...]] = {
    "bool": (True, False),
    "int": (-1, 0, 2, 7, -128, 255, 256, -32769, 70000, 2**31, 2**53 + 1, -2**63, 2**63 - 1),
    "float": (0.0, -0.0, 0.5, -1.5, 300.7, 1e-45, 65519.0, 1e39, math.inf, -math.inf, math.nan)}
KINDS = ("tensor", "input", "constant", "number")  # input and constant have rank 0


@dataclass(frozen=True)
class Call:
    """A function of x and y; `name` has their kinds and types."""

    name: str
    text: str
    x: Operand
    y: Operand

    def run(self, x: Operand, y: Operand) -> torch.Tensor:
        """The result for operands in place of its own."""
        result = eval(self.text, {"torch": torch}, {"x": x, "y": y})
        if not isinstance(result, torch.Tensor):
            raise TypeError("not a tensor")
        return result

    def tensors(self) -> list[torch.Tensor]:
        """The operands that are inputs."""
        kinds = self.name.split()[::2]
        return [v for v, kind in zip((self.x, self.y), kinds, strict=True)
                if isinstance(v, torch.Tensor) and kind != "constant"]

    def __str__(self) -> str:
        shown = [str(v if not isinstance(v, torch.Tensor) or v.ndim else v.item())
                 for v in (self.x, self.y) if not isinstance(v, torch.Tensor) or not v.ndim]
        return f"{self.text} of {self.name} {' '.join(shown)}".strip()


# ---- operands ----------------------------------------------------------------------------------

def numbers(row: DType) -> Array:
    """The numbers at the edges of a type."""
    if row.short == "bool":
        return np.array([False, True])
    if row.is_float:
        return edges.floats(row)
    return np.array(edges.integers(row), row.numpy)


def of_rank_0(row: DType) -> Array:
    """Some of them."""
    known = numbers(row)
    return known if len(known) < 3 else known[
        [0, 1, 2, 9, 12, 18, 21, 23, 24] if row.is_float else
        sorted({0, int(np.searchsorted(known, 0)), int(np.searchsorted(known, 2)),
                max(0, int(np.searchsorted(known, 0)) - 1), len(known) - 1})]


def operands(kind: str, name: str) -> list[Operand]:
    """The operands of a kind and type: for a tensor, one of rank 1."""
    if kind == "number":
        return list(NUMBERS[name])
    row = BY_NAME[name]
    if kind == "tensor":
        return [_tensor(numbers(row))]
    return [_tensor(v.reshape(())) for v in of_rank_0(row)]


def _tensor(x: Array) -> torch.Tensor:
    if x.dtype == ml_dtypes.bfloat16:
        return torch.tensor(np.where(x != x, np.nan, x.astype(np.float64))).to(torch.bfloat16)
    return torch.from_numpy(np.array(x))


def calls(text: str, kinds: tuple[str, str], types: tuple[str, str],
          seed: int = 0) -> Iterator[Call]:
    """A few calls of a function with operands of these kinds and types, drawn by the seed."""
    name = f"{kinds[0]} {types[0]} {kinds[1]} {types[1]}"
    every = [(x, y) for x in operands(kinds[0], types[0]) for y in operands(kinds[1], types[1])]
    rng = random.Random(f"{seed} {text} {name}")
    for x, y in rng.sample(every, min(len(every), 2 if "number" in kinds else 1)):
        if _beyond(x, y) or _stated(text, x, y):
            continue
        if (call := _defined(Call(name, text, *_paired(x, y)))) is not None:
            yield call


def _beyond(x: Operand, y: Operand) -> bool:
    """Whether a number is one that a 16-bit float has as a subnormal one, 0 or ∞; docs/numerics.md
    says what becomes of it, and tests/test_edges.py tries it."""
    narrow = [v.dtype for v in (x, y) if isinstance(v, torch.Tensor) and v.dtype in (
        torch.float16, torch.bfloat16)]
    given = [abs(float(v)) for v in (x, y) if not isinstance(v, torch.Tensor) or not v.ndim]
    return any(v and math.isfinite(v) and not (
        torch.finfo(d).tiny <= v <= torch.finfo(d).max) for d in narrow for v in given)


def _stated(text: str, x: Operand, y: Operand) -> bool:
    """Whether torch contradicts itself, and docs/numerics.md says what we give: exponents of 16
    bits in `ldexp`, roots of float16, powers of bools and numbers."""
    if "ldexp" in text:
        return isinstance(y, torch.Tensor) and y.dtype in (torch.float16, torch.bfloat16)
    if text not in ("x ** y", "torch.pow(x, y)") or not isinstance(x, torch.Tensor):
        return False
    return (x.dtype is torch.bool and isinstance(y, bool)) or (
        x.dtype is torch.float16 and isinstance(y, float) and abs(y) == 0.5)


def _paired(x: Operand, y: Operand) -> tuple[Operand, Operand]:
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.ndim and y.ndim:
        return x.repeat_interleave(len(y)), y.repeat(len(x))
    return x, y


def _defined(call: Call) -> Call | None:
    """The call without the pairs that torch does not define; None if nothing is left."""
    x, y = call.x, call.y
    kept: torch.Tensor | None = None
    if call.text in DIVIDING:
        kept = _divisible(x, y)
    elif call.text in WITHOUT_LEAST:
        kept = _without_least(x) & _without_least(y)
    if kept is None or bool(kept.all()):
        return call
    if not bool(kept.any()) or not kept.ndim:
        return None
    return Call(call.name, call.text, *(v[kept] if isinstance(v, torch.Tensor) and v.ndim else v
                                        for v in (x, y)))


def _divisible(x: Operand, y: Operand) -> torch.Tensor:
    """Where x is divided by y: not integers by 0 or the least by −1, and no remainder of a float
    that is a million times the divisor."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        a, b = (torch.as_tensor(v).to(dtype) for v in (x, y))
        if dtype is torch.bool:
            return b | torch.zeros_like(a)
        least = torch.iinfo(dtype).min
        return (b != 0) & ((a != least) | (b != -1) if least else a >= 0)
    a, b = (torch.as_tensor(v).to(dtype).double() for v in (x, y))
    return ~(b.abs() < a.abs() * 1e-6) | ~a.isfinite()


def _without_least(x: Operand) -> torch.Tensor:
    t = torch.as_tensor(x)
    if t.dtype.is_floating_point or t.dtype in (torch.bool, torch.uint8):
        return torch.ones_like(t, dtype=torch.bool)
    return t != torch.iinfo(t.dtype).min


def pairs(types: Sequence[str] = TYPES) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """All pairs of kinds with their types; one of a pair is a tensor."""
    for a in KINDS:
        for b in KINDS:
            if {a, b} <= {"number", "constant"}:
                continue
            for t in NUMBERS if a == "number" else types:
                for u in NUMBERS if b == "number" else types:
                    yield (a, b), (t, u)


def drawn(seed: int, count: int) -> Iterator[Call]:
    """Calls of functions and pairs drawn by a seed, one of each."""
    rng = random.Random(seed)
    every = list(pairs())
    for _ in range(count):
        yield from calls(rng.choice(TEXTS), *rng.choice(every), seed)
