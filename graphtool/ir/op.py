"""What an op is: one record, declared once, and the registry of all of them.

The signature of `infer` is the schema: operands positional (a default of `None` makes one
optional, `*xs` takes any number), attributes keyword-only, annotated, with defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from graphtool.errors import InputError, InternalError
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import TensorType

Types = TensorType | tuple[TensorType, ...]


@dataclass(frozen=True)
class Attr:
    """One attribute of an op as its `infer` declares it."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, eq=False)
class Op:
    """All facts about one op.

    infer(*types, **attrs) → type or types. Literals and None arrive as they are.
    eval(*arrays, **attrs) → array or arrays, in numpy; the reference meaning.
    vjp(g, y, *xs, **attrs) → a gradient (or None) per operand; tuples for several outputs.
    lower(*pulls, **attrs) → Pull or Pulls (graphtool.lower.pull); absent where a template serves.
    decompose(*xs, **attrs) → the same values from other ops.

    What the other fields say is told in graphtool.ir.facets.
    """

    name: str
    infer: Callable[..., Types]
    eval: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    lower: Callable[..., Any] | None = None
    decompose: Callable[..., Any] | None = None
    traits: Trait = Trait.NONE
    category: str = "compute"  # compute | data | shape | control | memory
    doc: str = ""
    lowering: Lowering = Lowering.NONE

    def __post_init__(self) -> None:
        if self.lower is not None and self.lowering is Lowering.NONE:
            object.__setattr__(self, "lowering", Lowering.PULL)

    @cached_property
    def schema(self) -> dict[str, Attr]:
        hints = get_type_hints(self.infer)
        return {p.name: Attr(p.name, hints.get(p.name, Any), p.default)
                for p in inspect.signature(self.infer).parameters.values()
                if p.kind is p.KEYWORD_ONLY}

    @cached_property
    def operands(self) -> tuple[inspect.Parameter, ...]:
        return tuple(p for p in inspect.signature(self.infer).parameters.values()
                     if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL))

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        from graphtool.ir.trace import call
        return call(self, operands, attrs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


OPS: dict[str, Op] = {}


class Namespace:
    """The registry by attribute: `o.matmul(…)`, and `o.and_(…)` where Python has a keyword."""

    def __getattr__(self, name: str) -> Any:
        op = OPS.get(name.removesuffix("_"))
        if op is None:
            raise AttributeError(name)
        return op


ops = Namespace()


def register(op: Op) -> Op:
    """Add an op to the table; called at import only."""
    if op.name in OPS:
        raise InternalError("GT7001", f"op {op.name} is declared twice")
    OPS[op.name] = op
    return op


def named(name: str) -> Op:
    """The op called `name`. Raises InputError GT0401 if there is none."""
    if name not in OPS:
        raise InputError("GT0401", f"unknown op {name!r}", hint="`graphtool ops` lists them")
    return OPS[name]


def complete_attrs(op: Op, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes in declared order with defaults filled in and lists made tuples."""
    schema = op.schema
    for name in attrs:
        if name not in schema:
            raise InputError("GT0402", f"{op.name} has no attribute {name!r}",
                             hint=f"it has {', '.join(schema) or 'none'}")
    out = {}
    for name, a in schema.items():
        if name in attrs:
            out[name] = _frozen(attrs[name])
        elif a.required:
            raise InputError("GT0403", f"{op.name} needs the attribute {name!r}")
        else:
            out[name] = a.default
    return out


def _frozen(x: Any) -> Any:
    return tuple(_frozen(i) for i in x) if isinstance(x, (list, tuple)) else x
