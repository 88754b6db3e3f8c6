"""The alternatives that a contraction, attention, a recurrence or a pool has, and the one that was
chosen, as data.

A site says what is to be computed, a candidate by which kernel and how; costs stand in cost.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from graphtool.errors import InputError

FEW = 4  # rows of a recurrence's batch that are multiplied in one tile
BLOCK = 7  # pixels of a row that are pooled together
SHOWN = 5  # alternatives that a recorded choice names, the chosen one first


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution, channels last: h × w outputs, its padding already in the input."""

    n: int
    h: int
    w: int
    c: int
    o: int
    kh: int
    kw: int
    sh: int = 1
    sw: int = 1
    dh: int = 1
    dw: int = 1
    groups: int = 1
    constant: bool = True  # the weights are known at build time
    half: int = 0  # operands of 16 bits: 1 bfloat16, 2 float16
    integer: int = 0  # sums of int32: 1 of u8 by s8, 2 of s16 by s16

    @property
    def upright(self) -> bool:
        """Whether threes of taps along columns are fewer than along rows: what `line` goes by."""
        return self.kw * -(-self.kh // 3) < self.kh * -(-self.kw // 3)

    def __str__(self) -> str:
        return _record("conv", self)


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` products of m rows, n columns, depth k. `across`: A lies transposed."""

    batch: int
    m: int
    n: int
    k: int
    constant: bool = True  # B is known at build time
    across: bool = False
    fixed: bool = True  # no dim is open; where one is, the sizes are its bounds
    half: int = 0  # operands of 16 bits: 1 bfloat16, 2 float16
    integer: int = 0  # sums of int32: 1 of u8 by s8, 2 of s16 by s16

    def __str__(self) -> str:
        return _record("product", self)


@dataclass(frozen=True, slots=True)
class Attention:
    """So many heads of s queries and t keys of length d, with values of length v; `shared` heads
    that follow each other read the same keys and values.
    """

    heads: int
    s: int
    t: int
    d: int
    v: int
    shared: int = 1
    causal: bool = False
    masked: bool = False  # a mask is added to the scores
    fixed: bool = True  # neither s nor t is an open dim; where one is, the sizes are its bounds

    def __str__(self) -> str:
        return _record("attention", self)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """`turns` steps in so many directions: each multiplies a state of `batch` rows, depth k, with
    recurrent weights of n columns; `parts` times so many, where each part begins a panel.
    """

    turns: int
    batch: int
    n: int
    k: int
    directions: int = 1
    parts: int = 1
    fixed: bool = True  # the batch is no open dim; where it is, the size is its bound

    @property
    def few(self) -> int:
        """Rows that one tile takes at any width; 0 where there are more."""
        return self.batch if self.fixed and self.batch <= FEW else 0

    def __str__(self) -> str:
        return _record("recurrence", self)


@dataclass(frozen=True, slots=True)
class Pool:
    """The extremes or sums of windows, channels last: h × w outputs, padding already in the input.
    """

    n: int
    h: int
    w: int
    c: int
    kh: int
    kw: int
    sh: int = 1
    sw: int = 1
    dh: int = 1
    dw: int = 1

    @property
    def columns(self) -> int:
        """Input columns that a block of pixels takes."""
        return (BLOCK - 1) * self.sw + (self.kw - 1) * self.dw + 1

    def __str__(self) -> str:
        return _record("pool", self)


Contraction = Conv | Product
Alone = Contraction | Attention  # what tune measures: alone they are as they are in a model
Site = Alone | Recurrence | Pool


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute a site: a kernel and its parameters, in the order they are written."""

    kind: str  # direct | winograd | line | depthwise | gemm | bf16 | blas | panels | columns …
    parameters: tuple[tuple[str, int], ...] = ()

    def get(self, name: str, default: int) -> int:
        return dict(self.parameters).get(name, default)

    def __str__(self) -> str:
        inner = ",".join(f"{k}={v}" for k, v in self.parameters)
        return f"{self.kind}{{{inner}}}" if inner else self.kind


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen candidate first, then its rivals; microseconds each, expected or measured."""

    site: Site
    by: str  # cost | tuned
    ranking: tuple[tuple[Candidate, float], ...]

    @property
    def candidate(self) -> Candidate:
        return self.ranking[0][0]

    def __str__(self) -> str:
        """`product{m=8,n=64,k=64} cost: gemm{nv=2} 1.2, gemm{nv=1} 1.9`, as nodes record it."""
        return f"{self.site} {self.by}: " + ", ".join(
            f"{c} {us:.3g}" for c, us in self.ranking[:SHOWN])


_SITES: dict[str, type[Site]] = {"conv": Conv, "product": Product,
                                "attention": Attention, "recurrence": Recurrence, "pool": Pool}
_CALL = re.compile(r"(\w+)(?:\{([^{}]*)\})?")
_RECORD = re.compile(r"(\w+\{[^{}]*\}) (\w+): (.+)")
_RANKED = re.compile(r"(\w+(?:\{[^{}]*\})?) ([0-9.e+-]+)(?:, |$)")


def _record(kind: str, site: Site) -> str:
    """The fields that differ from their defaults."""
    given = ((f.name, getattr(site, f.name), f.default) for f in fields(site))
    return f"{kind}{{{','.join(f'{k}={int(v)}' for k, v, usual in given if v != usual)}}}"


def _call(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    match = _CALL.fullmatch(text)
    pairs = [p.partition("=") for p in match[2].split(",")] if match and match[2] else []
    if match is None or not all(k.isidentifier() and v.isdigit() for k, _, v in pairs):
        raise InputError("GT0631", f"{text!r} names no kernel or site",
                         hint="as in winograd{tile=4,group=28}")
    return match[1], tuple((k, int(v)) for k, _, v in pairs)


def candidate(text: str) -> Candidate:
    """What `str` of a candidate wrote. Raises InputError GT0631 for anything else."""
    return Candidate(*_call(text))


def site(text: str) -> Site:
    """What `str` of a site wrote. Raises InputError GT0631 for anything else."""
    kind, given = _call(text)
    kinds = {f.name: bool if isinstance(f.default, bool) else int
             for f in (fields(_SITES[kind]) if kind in _SITES else ())}
    try:
        known: dict[str, Any] = {k: kinds[k](v) for k, v in given}
        return _SITES[kind](**known)
    except (KeyError, TypeError) as error:
        raise InputError("GT0631", f"{text!r} names no site",
                         hint="as in product{batch=1,m=8,n=64,k=64}") from error


def choice(text: str) -> Choice:
    """What `str` of a choice wrote. Raises InputError GT0631 for anything else."""
    match = _RECORD.fullmatch(text)
    ranked = _RANKED.findall(match[3]) if match else []
    if match is None or not ranked or ", ".join(" ".join(r) for r in ranked) != match[3]:
        raise InputError("GT0631", f"{text!r} records no choice of a kernel")
    return Choice(site(match[1]), match[2], tuple((candidate(c), float(us)) for c, us in ranked))
