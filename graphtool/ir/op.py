"""An op as one record, declared once; the registry of all ops; and how a call of an op works.

The signature of `infer` is the schema: operands positional (a default of `None` makes one optional,
`*xs` takes any number), attributes keyword-only, annotated, with defaults.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, get_type_hints

import numpy as np

from graphtool.dtypes import DType, as_array, of_numpy
from graphtool.errors import InputError, InternalError, near
from graphtool.io.weights import Array, Weight
from graphtool.ir.attributes import Attr, complete
from graphtool.ir.facets import (
    BROADCAST,
    Axes,
    Indexing,
    Lowering,
    Movement,
    Precision,
    Trait,
    Weighing,
)
from graphtool.ir.plan import Form
from graphtool.ir.types import TensorType
from graphtool.symbolic import Dim
from graphtool.symbolic.spans import Span

Types = TensorType | tuple[TensorType, ...]
CATEGORIES = ("compute", "data", "shape", "control", "memory")


@dataclass(frozen=True, eq=False)
class Op:
    """All facts about one op.

    infer(*types, **attrs) → type or types. Literals and None arrive as they are.
    eval(*arrays, **attrs) → array or arrays, in numpy; the reference meaning.
    vjp(g, y, *xs, **attrs) → a gradient (or None) per operand; tuples for several outputs. Made of
    ops, so that it differentiates again; un-broadcasting is done once, in transforms/reverse.
    lower(*pulls, **attrs) → Pull or Pulls (graphtool.loops.pull); absent where a template serves.
    decompose(*xs, **attrs) → the same values from other ops.
    cost(y, *types, **attrs) → floating-point operations; unless given, those of the decomposition.
    traffic(y, *types, **attrs) → bytes read and written, if not those of operands and results.
    plans: the forms that the attribute `plan` may have.
    filled(*types, **attrs) → sizes that must be 1 or more: 0 elements have no result.
    known(dtype, *entries, **attrs) → what an elementwise op computes of sizes and conditions (see
    symbolic/conditions.py), for one element; other ops take and return whole arrays of them. None
    where the result is neither. `dtype` is that of the operands.
    span(kinds, *spans, **attrs) → the least and the most of the results' elements, from those of
    the operands (see symbolic/spans.py); `kinds` are the operands' types and literals. Ops that
    only move elements need none.
    alike: the operands of an elementwise op that have one element type; numbers may stand for all
    of these but one. None: all operands.
    scaled_by: operands which, multiplied by one positive factor for each channel, multiply the
    result by it; the first of them must be given.

    graphtool.ir.facets explains the other fields.
    """

    name: str
    infer: Callable[..., Types]
    eval: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    lower: Callable[..., Any] | None = None
    decompose: Callable[..., Any] | None = None
    traits: Trait = Trait.NONE
    category: str = "compute"  # one of CATEGORIES
    doc: str = ""
    lowering: Lowering = Lowering.NONE
    cost: Callable[..., Dim] | None = None
    traffic: Callable[..., Dim] | None = None
    movement: Movement = Movement.NONE
    precision: Precision = Precision.HIGH
    indexing: Indexing | None = None
    weighing: Weighing | None = None
    scaled_by: tuple[int, ...] = ()
    plans: tuple[Form, ...] = ()
    axes: Axes | None = None
    filled: Callable[..., Sequence[Dim]] | None = None
    known: Callable[..., Any] | None = None
    span: Callable[..., Span] | None = None
    alike: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.lower is not None and self.lowering is Lowering.NONE:
            object.__setattr__(self, "lowering", Lowering.PULL)
        if self.axes is None and Trait.ELEMENTWISE in self.traits:
            object.__setattr__(self, "axes", BROADCAST)

    @cached_property
    def schema(self) -> dict[str, Attr]:
        """The attributes by name, with their types and defaults: the keyword parameters of
        `infer`."""
        hints = get_type_hints(self.infer)
        return {p.name: Attr(p.name, hints.get(p.name, Any), p.default)
                for p in inspect.signature(self.infer).parameters.values()
                if p.kind is p.KEYWORD_ONLY}

    @cached_property
    def operands(self) -> tuple[inspect.Parameter, ...]:
        """The positional parameters of `infer`, one for each operand; `*xs` is one parameter."""
        return tuple(p for p in inspect.signature(self.infer).parameters.values()
                     if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL))

    @cached_property
    def rounds(self) -> bool:
        """Whether a float that it computes may have to be rounded to its type."""
        exact = Trait.PICKS | Trait.EXACT | Trait.LARGEST
        return self.category == "compute" and not self.movement and not self.traits & exact

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """The result of the op: a Tracer records it, a Pattern matches it, arrays evaluate it."""
        for x in operands:
            if isinstance(x, Operators):
                return x.apply(self, operands, attrs)
        return evaluate(self, operands, complete_attrs(self, attrs))

    def __repr__(self) -> str:
        return f"<op {self.name}>"


OPS: dict[str, Op] = {}


def register(op: Op) -> Op:
    """Add an op to the table; called at import only."""
    if op.name in OPS:
        raise InternalError("GT7001", f"op {op.name} is declared twice")
    OPS[op.name] = op
    return op


def named(name: str) -> Op:
    """The op called `name`. Raises InputError GT0401 if there is none."""
    if name not in OPS:
        raise InputError("GT0401", f"unknown op {name!r}",
                         hint=near(name, OPS, "`graphtool ops` lists them"))
    return OPS[name]


def complete_attrs(op: Op, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes in declared order with defaults filled in; see `attributes.complete`."""
    return complete(op.name, op.schema, attrs)


# ---- what calling one does ---------------------------------------------------------------------

class Operators:
    """Python's operators as ops, for every class that represents a tensor (Tracer, Pattern,
    ArrayOperand)."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None  # numpy leaves `array * tracer` to us

    @abstractmethod
    def apply(self, op: Op, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """The result of a call of `op` that has this object among its operands."""

    def __add__(self, other: Any) -> Self:
        return OPS["add"](self, other)  # type: ignore[no-any-return]

    def __radd__(self, other: Any) -> Self:
        return OPS["add"](self, other)  # type: ignore[no-any-return]

    def __sub__(self, other: Any) -> Self:
        return OPS["sub"](self, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Any) -> Self:
        return OPS["sub"](other, self)  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> Self:
        return OPS["mul"](self, other)  # type: ignore[no-any-return]

    def __rmul__(self, other: Any) -> Self:
        return OPS["mul"](self, other)  # type: ignore[no-any-return]

    def __truediv__(self, other: Any) -> Self:
        return OPS["div"](self, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Any) -> Self:
        return OPS["div"](other, self)  # type: ignore[no-any-return]

    def __neg__(self) -> Self:
        return OPS["neg"](self)  # type: ignore[no-any-return]

    def __abs__(self) -> Self:
        return OPS["abs"](self)  # type: ignore[no-any-return]

    def __pow__(self, other: Any) -> Self:
        return OPS["pow"](self, other)  # type: ignore[no-any-return]

    def __lt__(self, other: Any) -> Self:
        return OPS["lt"](self, other)  # type: ignore[no-any-return]

    def __le__(self, other: Any) -> Self:
        return OPS["le"](self, other)  # type: ignore[no-any-return]

    def __gt__(self, other: Any) -> Self:
        return OPS["gt"](self, other)  # type: ignore[no-any-return]

    def __ge__(self, other: Any) -> Self:
        return OPS["ge"](self, other)  # type: ignore[no-any-return]

    def __and__(self, other: Any) -> Self:
        return OPS["and"](self, other)  # type: ignore[no-any-return]

    def __or__(self, other: Any) -> Self:
        return OPS["or"](self, other)  # type: ignore[no-any-return]

    def __xor__(self, other: Any) -> Self:
        return OPS["xor"](self, other)  # type: ignore[no-any-return]

    def __invert__(self) -> Self:
        return OPS["not"](self)  # type: ignore[no-any-return]

    def __lshift__(self, other: Any) -> Self:
        return OPS["shift_left"](self, other)  # type: ignore[no-any-return]

    def __rshift__(self, other: Any) -> Self:
        return OPS["shift_right"](self, other)  # type: ignore[no-any-return]


def evaluate(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The op's reference result on numpy arrays; composites are evaluated by decomposition."""
    with np.errstate(all="ignore"):
        return evaluate_quiet(op, operands, attrs)


def evaluate_quiet(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """`evaluate` where numpy's warnings are off already."""
    operands = [as_array(x) if isinstance(x, (np.generic, str)) else x for x in operands]
    if op.eval is not None:
        out = op.eval(*operands, **attrs)
        return tuple(map(as_array, out)) if isinstance(out, tuple) else as_array(out)
    if op.decompose is None:
        raise InternalError("GT7002", f"op {op.name} has neither eval nor decompose")
    return apply_held(lambda *xs: op.decompose(*xs, **attrs), operands)  # type: ignore[misc]


def apply_held(fn: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The arrays that `fn` computes from these: ops that it calls are evaluated at once.

    numpy's own promotion of operators (bfloat16 to float32, rank 0 to Python scalars) has no
    effect.
    """
    return _released(fn(*map(_held, operands)))


class ArrayOperand(Operators):
    """An array as an operand within a decomposition. It is its own builder."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of the array, one for each axis."""
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.array.ndim

    @property
    def dtype(self) -> DType:
        """The element type of the array."""
        return of_numpy(self.array.dtype)

    @property
    def type(self) -> TensorType:
        """The tensor type of the array."""
        return TensorType(self.dtype, self.array.shape)

    @property
    def builder(self) -> ArrayOperand:
        """The array itself: an op on it runs at once."""
        return self

    def constant(self, array: Array | Weight) -> ArrayOperand:
        """An array or a weight as an operand."""
        return ArrayOperand(array.source if isinstance(array, Weight) else np.asarray(array))

    def emit(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The results as operands; defaults complete `attrs`."""
        return _held(evaluate(op, _released(tuple(operands)), complete_attrs(op, attrs)))

    apply = emit


def _held(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_held, x))
    return ArrayOperand(x) if isinstance(x, np.ndarray) else x


def _released(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_released, x))
    if isinstance(x, np.generic) and x.dtype.kind in "fiub":
        return x.item()  # a literal, as in a Builder
    return x.array if isinstance(x, ArrayOperand) else x
