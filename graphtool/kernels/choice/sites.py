"""The sites for which kernels are chosen: contractions, attention, recurrences, pools and products
with packed weights.

A site holds the sizes and all other facts on which costs depend. Its plans and their costs are in
the modules of the kernels that compute it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import BY_NAME, DType
from graphtool.errors import InputError
from graphtool.ir.plan import call

ONE_TILE = 4  # up to this number of rows, the batch of a recurrence is one tile
BLOCK = 7  # pixels of a row that are pooled, or filtered depthwise, together


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution, channels last, with h × w outputs; the input includes its padding."""

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
    # of the operands: a float; or for sums of int32, uint8 (by int8) or int16
    dtype: DType = dtypes.float32
    # filters hold zeros for channels or pixels that an output does not see, or taps that read only
    # padding are not among the products that may be infinite
    zeros: bool = False
    large: bool = False  # constant weights have numbers without a sum of bfloat16 parts
    # the fewest outputs of a run, n·h·w, if sizes are open and n, h and w are their upper bounds;
    # 0: all runs have these sizes
    least: int = 0
    # padding of zeros that a kernel can leave out, where windows mostly see padding
    above: int = 0
    below: int = 0
    left: int = 0
    right: int = 0

    @property
    def hidden(self) -> bool:
        """Whether there is padding to leave out."""
        return any((self.above, self.below, self.left, self.right))

    @property
    def rows_read(self) -> int:
        """Rows of the input that windows reach, padding included."""
        return (self.h - 1) * self.sh + (self.kh - 1) * self.dh + 1

    @property
    def columns_read(self) -> int:
        """Columns of the input that windows reach, padding included."""
        return (self.w - 1) * self.sw + (self.kw - 1) * self.dw + 1

    @property
    def rows_seen(self) -> int:
        """Pairs of an output row and a row of the window that meet more than padding."""
        return sum(self.above <= i * self.sh + r * self.dh < self.rows_read - self.below
                   for i in range(self.h) for r in range(self.kh))

    def columns_seen(self, column: int) -> tuple[int, ...]:
        """The columns of the window that meet more than padding at an output column."""
        last = self.columns_read - self.right
        return tuple(s for s in range(self.kw)
                     if self.left <= column * self.sw + s * self.dw < last)

    @property
    def upright(self) -> bool:
        """Whether groups of three taps along columns are fewer than along rows; `winograd_line`
        then works along columns."""
        return self.kw * -(-self.kh // 3) < self.kh * -(-self.kw // 3)

    @property
    def depthwise(self) -> bool:
        """Whether each channel has its own filter."""
        return self.groups == self.o == self.c

    def __str__(self) -> str:
        return _record("conv", self)


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` products of m rows, n columns and depth k. `across`: A is transposed in memory."""

    batch: int
    m: int
    n: int
    k: int
    constant: bool = True  # B is known at build time
    across: bool = False
    fixed: bool = True  # no dimension is symbolic; if one is, its upper bound is used as its size
    # of the operands: a float; or for sums of int32, uint8 (by int8) or int16
    dtype: DType = dtypes.float32
    zeros: bool = False  # B holds rows of zeros, for columns of A that are no part of the product
    dropped: bool = False  # taps that read only padding are left out of weights that may be ∞
    large: bool = False  # B is constant, and has numbers without a sum of bfloat16 parts

    def __str__(self) -> str:
        return _record("product", self)


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of so many heads of s queries and t keys of length d, with values of length v.

    `shared` adjacent heads read the same keys and values.
    """

    heads: int
    s: int
    t: int
    d: int
    v: int
    shared: int = 1
    causal: bool = False
    masked: bool = False  # a mask is added to the scores
    hidden: bool = False  # the mask is of bool: −∞ is added to the scores of hidden keys
    # neither s nor t is symbolic; if one is, its upper bound is used as its size
    fixed: bool = True
    keys: DType = dtypes.float32  # the type of keys and values; int8: each row has a factor

    def __str__(self) -> str:
        return _record("attention", self)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """So many steps in so many directions.

    Each multiplies a state of `batch` rows and depth k by recurrent weights of n columns, `parts`
    times; each part begins with its own panel.
    """

    steps: int
    batch: int
    n: int
    k: int
    directions: int = 1
    parts: int = 1
    fixed: bool = True  # the batch is not symbolic; if it is, its upper bound is used as its size

    @property
    def tile_rows(self) -> int:
        """Rows of the batch if one tile takes them all at any width; 0 if the batch is larger,
        or symbolic."""
        return self.batch if self.fixed and self.batch <= ONE_TILE else 0

    def __str__(self) -> str:
        return _record("recurrence", self)


@dataclass(frozen=True, slots=True)
class Pool:
    """The extremes or sums of windows, channels last, with h × w outputs; the input includes its
    padding."""

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
        """Input columns that a block of pixels reads."""
        return (BLOCK - 1) * self.sw + (self.kw - 1) * self.dw + 1

    def __str__(self) -> str:
        return _record("pool", self)


@dataclass(frozen=True, slots=True)
class Packed:
    """A product of m rows with n rows of packed weights, of depth k: `bits` a weight, and a scale
    for each `block` of them."""

    m: int
    n: int
    k: int
    bits: int = 4
    block: int = 32
    zeros: bool = False  # each block has a zero point of its own
    constant: bool = True  # the weights are known at build time
    q8: bool = False  # the model asks for activations that are rounded to 8 bits
    fixed: bool = True  # m is not symbolic; if it is, its upper bound is used as its size

    def __str__(self) -> str:
        return _record("packed", self)


@dataclass(frozen=True, slots=True)
class OwnSite:
    """The base class of the sites of plug-ins: dataclasses of ints, bools and DTypes, in the table
    `SITES`."""

    def __str__(self) -> str:
        return _record(next(kind for kind, cls in SITES.items() if cls is type(self)), self)


Contraction = Conv | Product
Site = Contraction | Attention | Recurrence | Pool | Packed | OwnSite


SITES: dict[str, type[Site]] = {  # by the first word of their text; plug-ins add their own
    "conv": Conv, "product": Product, "attention": Attention, "recurrence": Recurrence,
    "pool": Pool, "packed": Packed}


def _record(kind: str, site: Site) -> str:
    """The text of a site: its kind, and the fields that differ from their defaults."""
    given = ((f.name, getattr(site, f.name), f.default) for f in fields(site))
    texts = (f"{k}={v.short if isinstance(v, DType) else int(v)}"
             for k, v, usual in given if v != usual)
    return f"{kind}{{{','.join(texts)}}}"


def is_site(text: str) -> bool:
    """Whether the text is that of a site, and not of one whose plug-in is not loaded."""
    return call(text)[0] in SITES


def site(text: str) -> Site:
    """The site that `str` wrote as this text. Raises InputError GT0631 for any other text."""
    kind, given = call(text)
    try:
        usual = {f.name: f.default for f in fields(SITES[kind])}
        return SITES[kind](**{k: _value(v, usual[k]) for k, v in given})
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("GT0631", f"{text!r} is not the text of a site",
                         hint="a site looks like product{batch=1,m=8,n=64,k=64}") from error


def _value(text: str, usual: Any) -> Any:
    """The value of a field with this default."""
    if isinstance(usual, DType):
        return BY_NAME[text]
    return bool(int(text)) if isinstance(usual, bool) else int(text)
