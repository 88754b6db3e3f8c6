"""Expressions of pulls as data: walking them, counting uses, cost, substitution of iterators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphtool.loops.ir import Apply, Index, Load
from graphtool.loops.pull import Names, PExpr, Reduce
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, bounds, coefficient, product, substitute, symbols


def cost(e: PExpr, memo: dict[int, int] | None = None) -> int:
    """Nominal flops of one evaluation, reductions multiplied out (unbounded extents count 64)."""
    memo = {} if memo is None else memo
    if id(e) not in memo:
        match e:
            case Apply(fn, args):
                row = BY_NAME.get(fn)
                memo[id(e)] = (row.flops if row else 1) + sum(cost(a, memo) for a in args)
            case Reduce():
                size = bounds(product(d for _, d in e.iters))[1] or 64
                memo[id(e)] = size * (1 + cost(e.body, memo))
            case Load():
                memo[id(e)] = 1
            case _:
                memo[id(e)] = 0
    return memo[id(e)]


def children(e: PExpr, names: Names) -> list[PExpr]:
    match e:
        case Apply():
            return list(e.args)
        case Reduce():
            return [e.body, *index_values([d for _, d in e.iters], names)]
        case Load():
            return index_values([e.index], names)
        case Index():
            return index_values([e.value], names)
        case _:
            return []


def index_values(dims: list[Dim], names: Names) -> list[PExpr]:
    return [names.indices[s.name] for d in dims for s in symbols(d) if s.name in names.indices]


def walk(roots: list[PExpr], names: Names) -> list[PExpr]:
    """Every expression once."""
    seen: dict[int, PExpr] = {}
    stack = list(roots)
    while stack:
        e = stack.pop()
        if id(e) not in seen:
            seen[id(e)] = e
            stack += children(e, names)
    return list(seen.values())


def use_counts(roots: list[PExpr], names: Names) -> dict[int, int]:
    counts: dict[int, int] = {}
    read = [c for e in walk(roots, names) for c in children(e, names)]
    for x in (*roots, *read):
        counts[id(x)] = counts.get(id(x), 0) + 1
    return counts


def reduces_in(roots: list[PExpr], names: Names) -> list[Reduce]:
    return [e for e in walk(roots, names) if isinstance(e, Reduce)]


def loads_in(e: PExpr, names: Names) -> list[Load]:
    return [x for x in walk([e], names) if isinstance(x, Load)]


def index_of(e: PExpr) -> Dim:
    match e:
        case Load():
            return e.index
        case Index():
            return e.value
        case _:
            return 0


def substituted(e: PExpr, env: Mapping[str, Dim], memo: dict[int, PExpr]) -> PExpr:
    """The expression with iterators replaced; what does not depend on them stays itself."""
    found = memo.get(id(e))
    if found is not None:
        return found
    out: PExpr = e
    match e:
        case Load():
            at = substitute(e.index, env)
            out = e if at == e.index else replace(e, index=at)
        case Index():
            at = substitute(e.value, env)
            out = e if at == e.value else replace(e, value=at)
        case Apply():
            args = tuple(substituted(a, env, memo) for a in e.args)
            same = all(a is b for a, b in zip(args, e.args, strict=True))
            out = e if same else replace(e, args=args)  # type: ignore[arg-type]
        case Reduce():
            body = substituted(e.body, env, memo)
            out = e if body is e.body else replace(e, body=body)
    memo[id(e)] = out
    return out


def walk_as_one(e: PExpr, outer: str, inner: str, extent: Dim, names: Names) -> bool:
    """Whether every read steps over a whole inner loop with each outer step."""
    for x in walk([e], names):
        if isinstance(x, Index) and {outer, inner} & {s.name for s in symbols(x.value)}:
            return False
        if isinstance(x, Load):
            far, near = coefficient(x.index, outer), coefficient(x.index, inner)
            if far is None or near is None or far != near * extent:
                return False
        if isinstance(x, Reduce):
            return False
    return True


def whole(d: Dim) -> int:
    assert isinstance(d, int)
    return d
