"""Patterns: the left sides of rules, written in the op language, and their matching on a graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import InternalError
from graphtool.io.weights import Weight
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Node, Operand, Value, is_constant
from graphtool.ir.op import Op, Operators

MATCHED = ""  # the key under which a match keeps the values between its leaves


class Pattern(Operators):
    """A tensor on the left side of a rule; an op called on it returns an `Applied`."""

    __slots__ = ()

    def apply(self, op: Op, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Applied:
        """The pattern of `op` on these operands; a required attribute left out is an error."""
        for name, a in op.schema.items():
            if a.required and name not in attrs:
                raise InternalError("GT7601", f"a pattern of {op.name} leaves out {name!r}")
        return Applied(op, operands, attrs)


@dataclass(frozen=True, eq=False)
class Var(Pattern):
    """A parameter of the left side: any operand, or any attribute."""

    name: str


@dataclass(frozen=True, eq=False)
class Applied(Pattern):
    """An op on patterns."""

    op: Op
    operands: tuple[Any, ...]
    attrs: Mapping[str, Any]


Env = dict[str, Any]
Look = Callable[[Value], Node | None]


def unrounded(look: Look) -> Look:
    """`look`, but a 16-bit product or quotient with a number, computed in float32 and rounded, is
    one node: mul(x, 0.1) in place of cast(mul(cast(x), 0.1)). For rules whose right side rounds at
    other places anyway."""
    def narrow(x: Operand, dtype: DType) -> Operand | None:
        node = look(x) if isinstance(x, Value) else None
        widened = node.inputs[0] if node is not None and Trait.CONVERTS in node.op.traits else None
        return widened if isinstance(widened, Value) and widened.type.dtype is dtype else None

    def at(v: Value) -> Node | None:
        node, dtype = look(v), v.type.dtype
        if node is None or Trait.CONVERTS not in node.op.traits or not dtype.is_narrow:
            return node
        wide = look(node.inputs[0]) if isinstance(node.inputs[0], Value) else None
        if wide is None or wide.op not in (o.mul, o.div) or (
                wide.outputs[0].type.dtype is not dtype.computes):
            return node
        inputs = tuple(x if isinstance(x, (int, float)) else narrow(x, dtype) for x in wide.inputs)
        known = None not in inputs and any(isinstance(x, (int, float)) for x in inputs)
        return replace(wide, inputs=inputs, outputs=node.outputs) if known else node
    return at


def pattern(equation: Callable[..., Any]) -> Applied:
    """What a function of the op language matches; its parameters are the variables."""
    p = equation(*map(Var, inspect.signature(equation).parameters))
    if not isinstance(p, Applied):
        raise InternalError("GT7602", "the left side of a rule must be an op")
    return p


def bindings(p: Applied, x: Any, look: Look) -> Iterator[Env]:
    """The bindings of each way in which the operand x matches p."""
    yield from matches(p, x, {}, look)


def matches(p: Any, x: Any, env: Env, look: Look) -> Iterator[Env]:
    """The bindings of each way in which the operand x matches p."""
    match p:
        case Var():
            if x is not None:
                yield from _bind(p.name, x, env)
        case Applied():
            node = look(x) if isinstance(x, Value) else None
            if node is not None and node.op is p.op and len(node.outputs) == 1:
                inner = env | {MATCHED: (*env.get(MATCHED, ()), x)}
                yield from match_node(p, node.op, node.inputs, node.attrs, inner, look)
        case None:
            if x is None:
                yield env
        case _:
            if _same_literal(p, x, look):
                yield env


def match_node(p: Applied, op: Op, inputs: Sequence[Operand], attrs: Mapping[str, Any], env: Env,
               look: Look) -> Iterator[Env]:
    """The bindings of each way in which one application of an op matches p."""
    for name, a in op.schema.items():
        bound = _match_attr(p.attrs.get(name, a.default), attrs[name], env)
        if bound is None:
            return
        env = bound
    orders = [tuple(inputs)]
    if Trait.COMMUTATIVE in op.traits and len(inputs) == 2:
        orders.append((inputs[1], inputs[0]))
    variadic = any(q.kind is q.VAR_POSITIONAL for q in op.operands)
    for order in orders:
        if len(order) == len(p.operands) or not variadic:
            yield from _match_all(tuple(zip_longest(p.operands, order)), op, env, look)


def _match_all(pairs: tuple[tuple[Any, Any], ...], op: Op, env: Env, look: Look) -> Iterator[Env]:
    if not pairs:
        yield env
        return
    (p, x), rest = pairs[0], pairs[1:]
    optional = isinstance(p, Var) and x is None
    for bound in _bind(p.name, None, env) if optional else matches(p, x, env, look):
        yield from _match_all(rest, op, bound, look)


def _bind(name: str, x: Any, env: Env) -> Iterator[Env]:
    if name not in env:
        yield env | {name: x}
    elif env[name] is x or (not isinstance(x, Value) and type(env[name]) is type(x)
                            and env[name] == x):
        yield env


def _match_attr(p: Any, x: Any, env: Env) -> Env | None:
    match p:
        case Var():
            return next(_bind(p.name, x, env), None)
        case tuple() | list() if isinstance(x, tuple) and len(x) == len(p):
            for q, y in zip(p, x, strict=True):
                bound = _match_attr(q, y, env)
                if bound is None:
                    return None
                env = bound
            return env
        case _:
            return env if type(p) is type(x) and p == x else None


def _same_literal(p: Any, x: Any, look: Look) -> bool:
    """Whether p and x are equal in the operand's type; a one-element constant is a literal."""
    if isinstance(x, Value):
        node = look(x)
        if not is_constant(node) or node.attrs["param"]:
            return False
        data: Weight = node.attrs["data"]
        return data.size == 1 and data.dtype.kind != "bool" and bool(
            data.source.reshape(-1)[0] == np.asarray(p).astype(data.dtype.numpy))
    if x is None or isinstance(p, bool) is not isinstance(x, bool):
        return False
    return bool(p == x) or (isinstance(p, float) and bool(np.float32(p) == x))
