"""What a capture hands over: calls of ATen ops by name, with types and places. Knows no torch.

A live `torch.export` program and a `.pt2` archive both come down to one `CapturedProgram`. Its
outputs are named after the structure that the model returns, and values are compared with torch's
record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from graphtool.io.weights import Weight
from graphtool.ir.graph import TensorType
from graphtool.symbolic import Dim, Equation, Symbol, known

STOPPED = "stopped"  # of a call: no gradient flows through it
DECOMPOSED = "ATEN"  # torch's word for a program that run_decompositions has gone over
ALIAS = ("torch writes detach() as aten.alias when it decomposes a program, so this may be one: "
         "export it again and leave run_decompositions out")


@dataclass(frozen=True, slots=True)
class NamedValue:
    """The tensor or symbolic number that another record calls `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call was made: the module's path, the innermost class that is not torch's, and the
    stack, outermost frame first. `classes` has (path, class) of the modules around it."""

    module: str = ""
    owner: str = ""
    stack: str = ""
    classes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OpCall:
    """One node: `target` such as `aten.add.Tensor`; `outputs` names each result in order.

    `checkpoint` numbers the region of torch.utils.checkpoint that the call is in, from 1 on.
    `gradient` is empty, STOPPED where none flows through the call, or why it is unknown.
    """

    target: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: tuple[str, ...]
    place: CallPlace = CallPlace()
    checkpoint: int = 0
    gradient: str = ""


@dataclass(frozen=True, slots=True)
class GraphInput:
    """A graph input. `key` is torch's own name; `data` is absent for what the user passes, and
    has the parts of complex numbers as its last axis. A parameter is `trained` unless its author
    said `requires_grad=False`. `state` is its name in torch's state_dict, "" for what is not in
    it: a plain constant, a buffer with `persistent=False`."""

    name: str
    kind: Literal["user", "parameter", "buffer", "constant"]
    key: str
    data: Weight | None = None
    trained: bool = True
    state: str = ""


@dataclass(frozen=True, slots=True)
class GraphOutput:
    """A graph output: what the user gets as `key`, or the new state of the input `key`."""

    value: NamedValue | int | float | bool
    kind: Literal["user", "state"]
    key: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that cannot be imported: a complex tensor, a graph as an argument."""

    reason: str


@dataclass(frozen=True, slots=True)
class ComplexType:
    """The type of a complex tensor: `TensorType` of its real and of its imaginary part."""

    parts: TensorType


# the type of a tensor, the value of a symbolic size; None for a symbolic bool or float
Type = TensorType | ComplexType | Dim | Opaque | None


class Same(NamedTuple):
    """An axis of an input: its own symbol, and the size that it must be equal to."""

    input: str
    axis: int
    symbol: Symbol
    other: Dim


@dataclass(frozen=True, slots=True)
class CapturedProgram:
    """A captured function. `types` gives the type of each tensor and the value of each SymInt."""

    sources: tuple[GraphInput, ...]
    calls: tuple[OpCall, ...]
    sinks: tuple[GraphOutput, ...]
    types: Mapping[str, Type]
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[Same, ...] = ()
    conditions: tuple[Equation, ...] = ()  # what torch recorded of the sizes of the inputs


def least(name: str, lower: int | None) -> int | None:
    """The least value of a symbol: 0 or more for a size; a data-dependent one (`u0`) may be
    negative unless torch gives a lower bound."""
    return lower if name.startswith("u") else max(lower or 0, 0)


def names_in(*args: Any) -> set[str]:
    """The names of the values in arguments, also in nested tuples."""
    names: set[str] = set()
    for x in args:
        match x:
            case NamedValue(name):
                names.add(name)
            case tuple():
                names |= names_in(*x)
    return names


def read_by(program: CapturedProgram) -> set[str]:
    """The values that something in the program reads, or that come out of it."""
    return names_in(*(s.value for s in program.sinks), *(
        x for call in program.calls for x in (call.args, *call.kwargs.values())))


# ---- names of outputs ---------------------------------------------------------------------------

def output_name(path: tuple[str | int, ...]) -> str:
    """`output`, `output_0`, a dict's key or a field's name; deeper ones are joined by dots."""
    if not path:
        return "output"
    first, *rest = path
    head = f"output_{first}" if isinstance(first, int) else first
    return ".".join([head, *map(str, rest)])


# ---- agreement with torch's record --------------------------------------------------------------

def parts_of(kind: Any) -> TensorType | None:
    """The type of a tensor, or of the parts of a complex one."""
    kind = kind.parts if isinstance(kind, ComplexType) else kind
    return kind if isinstance(kind, TensorType) else None


def fits(kind: TensorType, wanted: TensorType) -> bool:
    """Whether the type of a result agrees with the type that torch declares; symbolic sizes may be
    equal."""
    return kind == wanted or (kind.dtype is wanted.dtype and kind.rank == wanted.rank and all(
        known(a, "==", b) is not False for a, b in zip(kind.shape, wanted.shape, strict=True)))


def identity(w: Weight) -> Any:
    """A key of a tensor's memory, equal for tied parameters."""
    return w.source.ctypes.data, w.dtype.name, w.shape, w.digest
