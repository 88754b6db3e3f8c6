"""Graphs of the left side of a rule: its pattern over operands of all element types and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType, bool_, float32, int32
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.trace import trace
from graphtool.rewrite.engine import Rule
from graphtool.rewrite.patterns import Applied, Var
from graphtool.symbolic import Dim, symbol

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
WORDS = tuple(dtypes.dtype(n) for n in ("int8", "uint8", "int16", "uint16", "int32", "uint32",
                                        "int64", "uint64"))
EVERY = (*FLOATS, *WORDS, bool_)
N, M, K, P, K1 = (symbol(s, 0) for s in ("n", "m", "k", "p", "k1"))
SHAPES: tuple[tuple[Dim, ...], ...] = ((N, M), (1, M), (N, 1), (M,), ())
RANKS = range(5)


def graph(fn: Callable[..., Any], *types: tuple[DType, tuple[Dim, ...]]) -> Graph:
    """The graph of a function of tensors with these types and shapes."""
    return trace(fn, [TensorType(d, s) for d, s in types])


def sizes(rank: int, stem: str = "n") -> tuple[Dim, ...]:
    """Open sizes, which may be 0."""
    return tuple(symbol(f"{stem}{i}", 0) for i in range(rank))


def floats(fn: Callable[..., Any], *shapes: tuple[Dim, ...]) -> Graph:
    """The graph of a function of tensors in float32 with these shapes."""
    return graph(fn, *((float32, s) for s in shapes))


def of_pattern(rule: Rule, **attrs: Iterable[Any]) -> Iterator[Graph]:
    """The left side of a rule over operands of all types and shapes, and attributes from lists."""
    p = rule.pattern
    assert p is not None
    names = list(dict.fromkeys(_operands(p)))
    for values in product(*attrs.values()):
        given = dict(zip(attrs, values, strict=True))
        for types in _typings(len(names), SHAPES if not attrs else SHAPES[:1]):
            try:
                yield graph(lambda *xs, given=given: made(
                    p, dict(zip(names, xs, strict=True)) | given), *types)
            except InputError:
                continue  # no op of the rule takes these types


def _typings(count: int, shapes_: Sequence[tuple[Dim, ...]],
             ) -> Iterator[list[tuple[DType, tuple[Dim, ...]]]]:
    for dtype in EVERY:
        for kinds in product(*[(dtype, bool_) if dtype is not bool_ else (bool_,)] * count):
            yield [(d, (N, M)) for d in kinds]
    for dtype in (float32, int32):
        for kinds in product(*[(dtype, bool_)] * count):
            for shapes in product(*[shapes_] * min(count, 2), *[shapes_[:1]] * max(count - 2, 0)):
                yield list(zip(kinds, shapes, strict=True))


def _operands(p: Any) -> Iterator[str]:
    match p:
        case Var(name):
            yield name
        case Applied():
            for x in p.operands:
                yield from _operands(x)


def _attributes(p: Any, inside: bool = False) -> Iterator[str]:
    match p:
        case Applied():
            for x in p.operands:
                yield from _attributes(x)
            for v in p.attrs.values():
                yield from _attributes(v, True)
        case tuple():
            for v in p:
                yield from _attributes(v, inside)
        case Var(name) if inside:
            yield name


def made(p: Any, env: dict[str, Any]) -> Any:
    """A pattern as nodes, with tensors and attributes for its variables."""
    match p:
        case Var(name):
            return env[name]
        case Applied():
            return p.op(*(made(x, env) for x in p.operands),
                        **{k: made(v, env) for k, v in p.attrs.items()})
        case tuple() | list():
            return tuple(made(x, env) for x in p)
        case _:
            return p


def has_only(p: Any, attributes: Iterable[str]) -> bool:
    """Whether these are the attributes among the variables of a pattern."""
    operands = {*_operands(p)}
    return {*_attributes(p)} - operands == {*attributes} - operands
