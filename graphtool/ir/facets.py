"""The kinds of facts that an op's record states besides its functions. They hold data only."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


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
    JOINS = enum.auto()     # the elements of several operands
    ONCE = KEEPS | PERMUTES | REVERSES | TAKES  # each element once at most, and no new ones


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
        """Whether the attributes are among those of which this speaks."""
        return all(attrs[name] == value for name, value in self.only.items())
