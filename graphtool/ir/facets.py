"""The kinds of facts that an op's record states besides its functions, and what axes mean to it.

`Axes` lists the attributes that depend on axes. From this one declaration beside the op, `vmap`
puts an axis in front, `layout` moves axes, and `chunk` sees whether the op treats the entries of
the first axis separately.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from graphtool.symbolic import Dim


class Trait(enum.Flag):
    """Properties that hold for every call of an op, so that a pass need not know its name."""

    NONE = 0
    ELEMENTWISE = enum.auto()  # one result; y[i] depends on the operands' elements at i alone
    COMMUTATIVE = enum.auto()  # two operands; their order does not change the result
    LIGHT = enum.auto()        # elementwise, and computing it twice costs less than storing it
    EXACT = enum.auto()        # its result is a value of the operands' type: nothing is rounded
    ADDS = enum.auto()         # a sum of the operands, or their difference
    BITS = enum.auto()         # depends on the bits of its operands, not on their values alone
    CONVERTS = enum.auto()     # the same numbers in another element type, rounded to it
    PICKS = enum.auto()        # each element of the result is the element at i of one operand
    REDUCTION = enum.auto()    # combines what lies along `axes` or `axis`, which stays with size 1
    CONTRACTION = enum.auto()  # sums products of two operands: its time is arithmetic, not memory
    WINDOWED = enum.auto()     # combines what lies in the `window` around each place
    COMPOSITE = enum.auto()    # means what its decomposition computes
    KERNEL = enum.auto()       # a composite that `decompose` leaves whole, for `select` to place
    LAYOUT = enum.auto()       # a composite decomposed after `layout`, on which its parts depend
    LARGEST = enum.auto()      # each element of the result is the largest of some of the operand's
    NEST = enum.auto()         # a loop nest that may compute its operands in place
    RANDOM = enum.auto()       # its last operand is the generator's state, its last result the next
    WORLD = enum.auto()        # depends on other processes: never folded, nor computed twice
    DENSE = enum.auto()        # reads and writes buffers without gaps only
    SIZE = enum.auto()         # defines the symbol that its attribute `size` names


class Lowering(enum.Enum):
    """How an op becomes loops. An op with a `lower` function is PULL unless it says otherwise."""

    NONE = "none"              # not at all: a pass replaces it before
    EVALUATED = "evaluated"    # not at all: only the evaluator runs it
    PULL = "pull"              # by `lower`: indices of the result → a scalar expression
    STATEMENTS = "statements"  # a kernel of its own, written as loop statements
    TEMPLATE = "template"      # a kernel of its own: a C header and its macros
    VIEW = "view"              # a view of its operand's buffer; needs no kernel
    WINDOW = "window"          # its operands are written into parts of its buffer
    CONTROL = "control"        # branches and loops around the kernels of its regions
    DATA = "data"              # an array in the file of weights


class Movement(enum.Flag):
    """How an op moves elements according to its attributes, without computing any."""

    NONE = 0
    KEEPS = enum.auto()     # the same elements in the same order, under another shape
    PERMUTES = enum.auto()  # the axes in another order
    REVERSES = enum.auto()  # axes back to front
    TAKES = enum.auto()     # some of the elements
    REPEATS = enum.auto()   # elements several times
    FILLS = enum.auto()     # a number around the elements
    JOINS = enum.auto()     # the operands one after the other, along an axis that they have
    STACKS = enum.auto()    # the operands side by side, along a new axis
    ONCE = KEEPS | PERMUTES | REVERSES | TAKES  # each element once at most, and no new ones
    SEVERAL = JOINS | STACKS  # the elements of several operands


class Precision(enum.Enum):
    """The float type in which an op computes in mixed precision."""

    LOW = "low"        # in 16 bits: it takes most of the time, and sums in float32
    FOLLOW = "follow"  # in its operands' type: the result is as exact as the operands
    HIGH = "high"      # in float32: it loses digits, or leaves the range of float16


@dataclass(frozen=True)
class Indexing:
    """One operand holds indices along axes of another.

    `axes` are numbers, or the name of the attribute that has them; `draws` means that the result
    consists of the elements found there.
    """

    axes: tuple[int, ...] | str
    indices: int = 1
    into: int = 0
    draws: bool = False


@dataclass(frozen=True)
class Weighing:
    """Which operand is the data and which can be a weight, by which the data are multiplied.

    `kind`: a weight of a convolution, [outputs, inputs, window…]; of a product, a matrix; or a
    table, from which rows are drawn. `outputs` is the axis of the weight with an index for each
    output channel, or row of a table; if the attribute `turned` is true, it is the other axis of
    the matrix. If the attribute `across` is true, the last two axes of the data are exchanged. All
    this holds for calls with the attributes `only`.
    """

    kind: Literal["conv", "product", "table"]
    data: int = 0
    weight: int = 1
    outputs: int = 0
    turned: str = ""
    across: str = ""
    only: Mapping[str, Any] = field(default_factory=dict)

    def axis(self, attrs: Mapping[str, Any]) -> int:
        """The axis of the weight with an index for each output channel, for these attributes."""
        return 1 - self.outputs if self.turned and attrs[self.turned] else self.outputs

    def holds(self, attrs: Mapping[str, Any]) -> bool:
        """Whether the facet holds for these attributes."""
        return all(attrs[name] == value for name, value in self.only.items())


Attrs = Mapping[str, Any]


class Align(enum.Enum):
    """How the axes of operands and result correspond."""

    SAME = "same"          # operands and result have the same axes, though not of the same sizes
    TRAILING = "trailing"  # they broadcast as in NumPy: the last axes correspond
    MATRICES = "matrices"  # all but the last two broadcast so; these are rows and columns
    NONE = "none"          # in a way that only the op defines


@dataclass(frozen=True, eq=False)
class Axes:
    """What the attributes of an op mean for axes, by their names.

    `names`: one or several axes of the first operand. `each`: an entry for each axis; the value
    given here leaves an axis as it is. `spans`: a start for each axis, then an end; 0 and 1 are the
    whole. `sizes`: the size of each axis. `order`: all axes; the result has those of the operand in
    this order. `batch` counts the leading axes that the operands share.
    """

    align: Align = Align.SAME
    names: tuple[str, ...] = ()
    each: Mapping[str, Any] = field(default_factory=dict)
    spans: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    order: str = ""
    batch: str = ""


ALONG = Axes(names=("axis",))
OVER = Axes(names=("axes",))
BROADCAST = Axes(Align.TRAILING)


def with_leading(axes: Axes, attrs: Attrs, rank: int, size: Dim) -> dict[str, Any]:
    """The attributes for operands with one more axis of `size` in front; the first operand had
    `rank` axes."""
    out = dict(attrs)
    for name in axes.names:
        out[name] = _named(attrs[name], lambda a: a % rank + 1)
    for name, alone in axes.each.items():
        out[name] = None if attrs[name] is None else (alone, *attrs[name])
    for name in axes.spans:
        starts, ends = _span(attrs[name])
        out[name] = starts and (0.0, *starts, 1.0, *ends)
    for name in axes.sizes:
        out[name] = (size, *attrs[name])
    if axes.order:
        out[axes.order] = (0, *(a + 1 for a in attrs[axes.order]))
    if axes.batch:
        out[axes.batch] = attrs[axes.batch] + 1
    return out


def permuted(axes: Axes, attrs: Attrs, order: Sequence[int]) -> dict[str, Any]:
    """The attributes for operands whose axis i was axis `order[i]` before."""
    out = dict(attrs)
    for name in axes.names:
        moved = _named(attrs[name], lambda a: order.index(a % len(order)))
        out[name] = tuple(sorted(moved)) if isinstance(moved, tuple) else moved
    for name in (*axes.each, *axes.sizes):
        out[name] = attrs[name] and tuple(attrs[name][p] for p in order)
    for name in axes.spans:
        starts, ends = _span(attrs[name])
        out[name] = starts and (*(starts[p] for p in order), *(ends[p] for p in order))
    return out


def leaves_first(axes: Axes, attrs: Attrs, rank: int, size: Dim) -> bool:
    """Whether the op treats each index along axis 0, of `size`, separately."""
    named = [a for n in axes.names for a in (
        attrs[n] if isinstance(attrs[n], tuple) else (attrs[n],))]
    return (all(a % rank for a in named)
            and all(not attrs[n] or attrs[n][0] == alone for n, alone in axes.each.items())
            and all(len(attrs[n]) == rank and attrs[n][0] == size for n in axes.sizes)
            and all((s[:1], e[:1]) in (((), ()), ((0,), (1,)))
                    for s, e in (_span(attrs[n] or ()) for n in axes.spans))
            and not (axes.order and attrs[axes.order][0]))


def _span(value: tuple[float, ...] | None) -> tuple[Any, Any]:
    """The starts and the ends; None for each if there are none."""
    if value is None:
        return None, None
    rank = len(value) // 2
    return value[:rank], value[rank:]


def _named(value: Any, f: Callable[[int], int]) -> Any:
    return tuple(map(f, value)) if isinstance(value, tuple) else f(value)
