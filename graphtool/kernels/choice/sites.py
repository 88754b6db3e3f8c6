"""What kernels are chosen for: contractions, attention, recurrences and pools as sites, with sizes
and whatever else costs depend on. The plans of a site, and what they
cost, stand with the kernels that serve it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from graphtool.errors import InputError
from graphtool.plan import call

ONE_TILE = 4  # rows of a recurrence's batch that are multiplied in one tile
BLOCK = 7  # pixels of a row that are pooled together, or filtered a channel each
BFLOAT16 = 1  # as a site says it


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

    @property
    def depthwise(self) -> bool:
        """Whether each channel has one filter of its own."""
        return self.groups == self.o == self.c

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
    """So many steps in so many directions: each multiplies a state of `batch` rows, depth k, with
    recurrent weights of n columns; `parts` times so many, where each part begins a panel.
    """

    steps: int
    batch: int
    n: int
    k: int
    directions: int = 1
    parts: int = 1
    fixed: bool = True  # the batch is no open dim; where it is, the size is its bound

    @property
    def tile_rows(self) -> int:
        """Rows of a batch that one tile takes at any width; 0 where the batch is larger, or open.
        """
        return self.batch if self.fixed and self.batch <= ONE_TILE else 0

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


@dataclass(frozen=True, slots=True)
class OwnSite:
    """The base of the sites of plug-ins: dataclasses of ints and bools, in the table `SITES`."""

    def __str__(self) -> str:
        return _record(next(kind for kind, own in SITES.items() if own is type(self)), self)


Contraction = Conv | Product
Measurable = Contraction | Attention  # as fast alone as in a model: tune measures these
Site = Measurable | Recurrence | Pool | OwnSite


SITES: dict[str, type[Site]] = {  # by the word that their text begins with; plug-ins add theirs
    "conv": Conv, "product": Product, "attention": Attention, "recurrence": Recurrence,
    "pool": Pool}


def _record(kind: str, site: Site) -> str:
    """The fields that differ from their defaults."""
    given = ((f.name, getattr(site, f.name), f.default) for f in fields(site))
    return f"{kind}{{{','.join(f'{k}={int(v)}' for k, v, usual in given if v != usual)}}}"


def is_site(text: str) -> bool:
    """Whether the text is that of a site, and not of a plug-in that is not loaded."""
    return call(text)[0] in SITES


def site(text: str) -> Site:
    """What `str` of a site wrote. Raises InputError GT0631 for anything else."""
    kind, given = call(text)
    kinds = {f.name: bool if isinstance(f.default, bool) else int
             for f in (fields(SITES[kind]) if kind in SITES else ())}
    try:
        known: dict[str, Any] = {k: kinds[k](v) for k, v in given}
        return SITES[kind](**known)
    except (KeyError, TypeError) as error:
        raise InputError("GT0631", f"{text!r} names no site",
                         hint="as in product{batch=1,m=8,n=64,k=64}") from error
