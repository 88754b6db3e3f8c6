"""Sorts: by keys that the comparator names where it does, else by the rank of each element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.importers.stablehlo.driver.parts import flat, joined
from graphtool.importers.stablehlo.families.elementwise import total_order
from graphtool.importers.stablehlo.kit import Array, Context, Refused, dtypes, o, stablehlo
from graphtool.importers.stablehlo.text.tree import Operation, Region

_RANKED = 2048  # elements along the axis, if the comparator has to compare all pairs


@stablehlo("sort")
def sort(ctx: Context, *xs: Array, dimension: int = -1) -> list[Array]:
    """The operands in the order of the comparator, which is stable."""
    rank = xs[0].ndim
    axis = dimension % rank if rank else 0
    if not rank:
        return list(xs)
    front = [*(i for i in range(rank) if i != axis), axis]
    back = [front.index(i) for i in range(rank)]
    parts = [x.transpose(front) for x in xs]
    rows = joined([a.kind for a in ctx.op.regions[0].arguments[::2]], parts)
    keys = _Comparator(ctx.op.regions[0]).keys()
    if keys is None:
        order = _ranked(ctx, parts)
    else:
        values, order = _by_keys(ctx, rows, keys)
        if values is not None and len(xs) == 1:
            return [values.transpose(back)]
    return [taken_along(x, order).transpose(back) for x in parts]


def taken_along(x: Array, order: Array) -> Any:
    """The elements of the last axis in this order."""
    places = order.unsqueeze()
    return o.gather(x, places, axes=(x.ndim - 1,), batch=x.ndim - 1)


# ---- keys --------------------------------------------------------------------------------------

# the value in the comparator that is compared, whether descending, whether in the total order
Key = tuple[str, bool, bool]


class _Comparator:
    """A comparator as the keys that it compares: a < b, or the first keys equal and then less."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.operation_of = {r: op for op in region.operations for r in op.results}
        self.sides = {a.name: divmod(i, 2) for i, a in enumerate(region.arguments)}

    def keys(self) -> list[Key] | None:
        """The keys, the first one that counts most; None if the comparator has another form."""
        last = self.region.operations[-1]
        return self._less(last.operands[0]) if len(last.operands) == 1 else None

    def _less(self, name: str) -> list[Key] | None:
        op = self.operation_of.get(name)
        if op is None:
            return None
        if op.name == "stablehlo.compare":
            return self._compared(op)
        if op.name == "stablehlo.or":
            for first, rest in (op.operands, op.operands[::-1]):
                tail = self.operation_of.get(rest)
                head = self._less(first)
                if head is None or tail is None or tail.name != "stablehlo.and":
                    continue
                for same, then in (tail.operands, tail.operands[::-1]):
                    more = self._less(then)
                    if more is not None and self._equal(same, head[0][0]):
                        return [*head, *more]
        return None

    def _compared(self, op: Operation) -> list[Key] | None:
        direction = op.attrs.get("comparison_direction")
        a, b = op.operands
        if direction not in ("LT", "GT") or not self._twins(a, b):
            return None
        side = self._side(a)
        if side is None:
            return None
        descending = (direction == "GT") != (side == 1)
        return [(a if side == 0 else b, descending,
                 op.attrs.get("compare_type") == "TOTALORDER")]

    def _equal(self, name: str, key: str) -> bool:
        op = self.operation_of.get(name)
        return op is not None and op.name == "stablehlo.compare" and op.attrs.get(
            "comparison_direction") == "EQ" and self._twins(op.operands[0], op.operands[1]) and any(
            self._same(x, key) for x in op.operands)

    def _side(self, name: str) -> int | None:
        """0 if the value is made of left arguments only, 1 of right ones, None of both."""
        sides = set(self._sides(name))
        return sides.pop() if len(sides) == 1 else None

    def _sides(self, name: str) -> list[int]:
        if name in self.sides:
            return [self.sides[name][1]]
        op = self.operation_of.get(name)
        return [] if op is None else [s for x in op.operands for s in self._sides(x)]

    def arguments(self, name: str) -> set[int]:
        """The operands of the sort that a value of the comparator is made of."""
        if name in self.sides:
            return {self.sides[name][0]}
        op = self.operation_of.get(name)
        return set() if op is None else {i for x in op.operands for i in self.arguments(x)}

    def _twins(self, a: str, b: str, other: bool = True) -> bool:
        """Whether b is a with left and right arguments exchanged (or the same, without `other`)."""
        if a in self.sides and b in self.sides:
            (i, left), (j, right) = self.sides[a], self.sides[b]
            return i == j and (left != right) is other
        p, q = self.operation_of.get(a), self.operation_of.get(b)
        if p is None or q is None:
            return a == b
        return p.name == q.name and p.attrs == q.attrs and not p.regions and len(
            p.operands) == len(q.operands) and all(
            self._twins(x, y, other) for x, y in zip(p.operands, q.operands, strict=True))

    def _same(self, a: str, b: str) -> bool:
        return self._twins(a, b, other=False)


def _by_keys(ctx: Context, rows: Sequence[Any], keys: Sequence[Key]) -> tuple[Any, Any]:
    """The order by the last key, then, stable, by the key before it, and so on. With one key that
    is the first operand, its sorted values too."""
    order = values = None
    for name, descending, total in reversed(keys):
        key = _key(ctx, rows, name, total)
        moved = key if order is None else taken_along(key, order)
        values, places = o.sort(moved, axis=moved.ndim - 1, descending=descending)
        order = places if order is None else taken_along(order, places)
    whole = len(keys) == 1 and rows[0] is key
    return (values if whole else None), order


_TRIALS = [-np.inf, -2.0, -0.0, 0.0, 3.0, np.inf, np.nan]


def _key(ctx: Context, rows: Sequence[Any], name: str, total: bool) -> Any:
    """A key on all elements. JAX's own keys have one zero and one NaN, which our sort takes as
    such; others are turned into integers where the total order of floats counts."""
    region = ctx.op.regions[0]
    index = next((i for i, a in enumerate(region.arguments) if a.name == name), None)
    if index is not None:
        (key,) = flat([rows[index // 2]])
        return total_order(key) if total and key.dtype.is_float else key
    reads = _Comparator(region).arguments(name)
    whole = all(isinstance(r, Array) for r in rows)
    for i in range(len(rows)):
        if whole and reads == {i} and rows[i].dtype.is_float and _unifies(ctx, name, rows, i):
            return rows[i]
    key = _run(ctx, region, name, rows)
    return total_order(key) if total and key.dtype.is_float else key


def _unifies(ctx: Context, name: str, rows: Sequence[Array], i: int) -> bool:
    """Whether a key is operand i itself, but for one zero and one NaN."""
    row = rows[i].dtype.numpy
    trial = np.array(_TRIALS, row)
    given = [np.zeros(len(_TRIALS), r.dtype.numpy) for r in rows]
    given[i] = trial
    answers = _run(ctx, ctx.op.regions[0], name, [*map(ctx.builder.constant, given)]).numbers
    plain = np.where(trial == 0, np.zeros((), row), trial)
    return answers is not None and answers.dtype == trial.dtype and np.array_equal(
        answers, plain, equal_nan=True) and not np.signbit(answers[[3, 6]]).any()


def _run(ctx: Context, region: Region, name: str, values: Sequence[Array]) -> Any:
    """The value called `name` in the comparator, on these as left and right arguments."""
    last = replace(region.operations[-1], operands=(name,))
    shortened = Region(region.arguments, (*region.operations[:-1], last))
    return ctx.driver.inline(shortened, [v for v in values for _ in (0, 1)], ctx.env, True)[0]


# ---- any comparator ----------------------------------------------------------------------------

def _ranked(ctx: Context, rows: Sequence[Any]) -> Any:
    """The order by counting: the place of an element is the number of those before it."""
    *lead, n = rows[0].shape
    if not isinstance(n, int) or n > _RANKED:
        raise Refused(f"more than {_RANKED} elements need a comparator that compares keys")
    column = [x.reshape((*lead, n, 1)) for x in rows]
    line = [x.reshape((*lead, 1, n)) for x in rows]
    kinds = [a.kind for a in ctx.op.regions[0].arguments[::2]]
    sides = zip(joined(kinds, column), joined(kinds, line), strict=True)
    (less,) = ctx.region(0, flat(v for side in sides for v in side), vector=True)
    before = less.broadcast((*lead, n, n))  # [i, j]: i comes before j
    behind = before.transpose((*range(len(lead)), len(lead) + 1, len(lead)))
    earlier = ctx.builder.constant(np.triu(np.ones((n, n), np.bool_), 1))
    first = before | (earlier & ~behind)
    rank = o.reduce_sum(first.cast(dtypes.int64), axes=(len(lead),))
    counted = ctx.builder.constant(np.arange(n)).broadcast((*lead, n))
    return o.scatter(counted, rank.reshape((*lead, n, 1)), counted, axes=(len(lead),),
                     batch=len(lead))
