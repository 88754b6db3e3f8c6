"""Sizes that a model needs to be equal, and that are so for some inputs only: assumed at import.

An import runs with what is known so far. Where an operation needs equal sizes that are written
differently, `Assuming` gives them one name and notes the equation. From all equations `Facts`
derives steps (`H % 32 == 0`), bounds (`H//6 == 1`) and names of one size (`M == N`); then the
import runs again with these, so that every size has one form. What no symbol can express stays an
equation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import Undecided
from graphtool.front.meeting import common_shape, own_axes
from graphtool.ir.graph import Module, Node, Value
from graphtool.ir.op import Op
from graphtool.ir.run_sizes import bare
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import (
    Dim,
    Equation,
    Poly,
    Symbol,
    dim_of,
    equations,
    known,
    product,
    solved,
    substitute,
    symbol,
    symbols,
    text,
    with_steps,
)
from graphtool.symbolic.bounding import with_bounds
from graphtool.symbolic.equations import simplified
from graphtool.symbolic.parse import parse

Bounds = tuple[int, int | None] | tuple[int, int | None, int] | str
"""What `--dynamic` says of a name: bounds, perhaps a step, or a size that it is equal to."""
ROUNDS = 6  # imports of one model, each with more that is known
_TRIES = 4  # of one node


@dataclass(frozen=True)
class Facts:
    """What is known of the open sizes: steps and bounds by name, and pairs of equal sizes as text,
    because a symbol with another step is another symbol."""

    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    equal: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def given(dynamic: Mapping[str, Bounds]) -> Facts:
        """What a person says by `--dynamic`."""
        steps, equal = {}, []
        for key, row in dynamic.items():
            name = key.partition("@")[0]
            if isinstance(row, str):
                equal.append((name, row))
            elif len(row) == 3:
                steps[name] = row[2], row[0] % row[2]
        return Facts(steps, {}, tuple(equal))

    def at_least(self, least: Mapping[str, int]) -> Facts:
        """These facts with new lower bounds of sizes."""
        bounds = dict(self.bounds)
        for name, n in least.items():
            low, high = bounds.get(name, (None, None))
            bounds[name] = n if low is None else max(low, n), high
        return replace(self, bounds=bounds)

    def size(self, name: str, lo: int | None, hi: int | None) -> Dim:
        """The size of this name, with bounds from elsewhere."""
        low, high = self.bounds.get(name, (None, None))
        lo = low if lo is None else lo if low is None else max(lo, low)
        hi = high if hi is None else hi if high is None else min(hi, high)
        return symbol(name, lo, hi, None, *self.steps.get(name, (1, 0)))

    def also(self, equations: Sequence[Equation], free: Mapping[str, Symbol]) -> Facts:
        """These facts and what follows from the equations found in an import whose sizes, which
        the inputs tell, are `free`.

        Raises InputError GT0317 for equations that no size satisfies.
        """
        steps = {n: (s.step, s.offset) for n, s in with_steps(equations, free).items()}
        solutions = solved(equations, list(free))
        equal = [(name, text(d)) for name, d in solutions.items()]
        bounds = dict(self.bounds)
        for name, row in with_bounds(equations, free).items():
            if name not in solutions and name not in steps:
                bounds[name] = row
        for name, d in solutions.items():
            if (same := bare(d)) is not None:
                bounds[same.name] = _both(free[name], bounds.get(same.name, (None, None)))
        return Facts({**self.steps, **steps}, bounds,
                     tuple(dict.fromkeys((*self.equal, *equal))))


def _both(s: Symbol, more: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    lows = [n for n in (s.lo, more[0]) if n is not None]
    highs = [n for n in (s.hi, more[1]) if n is not None]
    return max(lows, default=None), min(highs, default=None)


def entered_as(module: Module, same: Sequence[Any]) -> Module:
    """The module whose inputs have symbols of their own on some axes, with what these are equal to
    as a requirement. Each of `same` has the name of an `input`, `axis`, `symbol` and `other`."""
    shapes: dict[str, dict[int, Dim]] = {}
    for row in same:
        shapes.setdefault(row.input, {})[row.axis] = dim_of(row.symbol)
    graph, inputs, nodes = module.graph, [], []
    for v in module.graph.inputs:
        sizes = shapes.get(v.hint, {})
        shape = tuple(sizes.get(i, d) for i, d in enumerate(v.type.shape))
        new = Value(replace(v.type, shape=shape), v.hint) if sizes else v
        inputs.append(new)
        if sizes:
            nodes.append(Node(o.assume, (new,), {"shape": v.type.shape}, (v,)))
    rows = {row.symbol.name: Equation(dim_of(row.symbol), row.other) for row in same}
    return replace(module, graph=replace(graph, inputs=tuple(inputs),
                                         nodes=(*nodes, *graph.nodes)),
                   requires=(*module.requires, *rows.values()))


class SizeKnowledge:
    """What one import knows and assumes of its sizes.

    `free` has the symbols that can be read from the shapes of inputs. `same` maps a symbol to the
    size that it equals. `pairs` are sizes that the import had to assume equal.
    """

    def __init__(self, facts: Facts, broadcasts: bool = False) -> None:
        self.facts, self.broadcasts = facts, broadcasts
        self.untold: set[str] = set()  # symbols whose bounds nobody gave
        self.not_zero: set[str] = set()  # symbols of `untold` that are known to be 1 or more
        self.free: Mapping[str, Symbol] = {}
        self.same: dict[str, Dim] = {}
        self.pairs: list[tuple[Dim, Dim]] = []
        self.rooms: list[Dim] = []  # sizes that are 0 or more in every run that has a meaning
        self.numbers = count()

    def settle(self, free: Mapping[str, Symbol]) -> None:
        """Take over the known sizes, once all inputs are defined."""
        self.free, table = free, {n: dim_of(s) for n, s in free.items()}
        for name, other in self.facts.equal:
            if name in free:
                d = substitute(parse(other, table), self.same)
                self.same = {n: substitute(e, {name: d}) for n, e in self.same.items()}
                self.same[name] = d

    def entered(self, x: Any) -> Any:
        """An input, or a tuple of them, under the names that its sizes have in the graph."""
        if isinstance(x, tuple):
            return tuple(map(self.entered, x))
        if not isinstance(x, Tracer):
            return x
        shape = tuple(substitute(d, self.same) for d in x.shape)
        return x if shape == x.shape else x.builder.emit(o.assume, (x,), {"shape": shape},
                                                         f"{x.value.hint}.assume")

    def common(self, shapes: Iterable[Sequence[Dim]], fault: Undecided
               ) -> tuple[Dim | None, ...]:
        """The shape that these shapes broadcast to where inputs tell their sizes, and a note of
        what that requires; None for sizes that must be equal.

        Raises `fault` if another import must know first that a size is not 0.
        """
        common = common_shape(shapes, self.free if self.broadcasts else ())
        if not common.not_zero <= self.untold:
            return (None,) * len(common.shape)
        if common.not_zero:
            self.not_zero |= common.not_zero
            raise fault
        self.pairs += common.pairs
        return common.shape

    @property
    def assumed(self) -> list[Equation]:
        """What was assumed of sizes that the inputs tell, and does not follow from the rest."""
        return equations((a, b) for a, b in self.pairs if self.of_inputs(a, b))

    def of_inputs(self, *dims: Dim) -> bool:
        """Whether the inputs tell these sizes."""
        return all(s.name in self.free for d in dims for s in symbols(d))

    def reshaped(self, nodes: Iterable[Node]) -> None:
        """Note what reshapes require: n // 4 rows of 4 are all elements if n % 4 == 0."""
        for node in nodes:
            if node.op is o.reshape:
                have, want = (product(v.type.shape) for v in (node.inputs[0], node.outputs[0])
                              if isinstance(v, Value))
                if self.of_inputs(have, want):
                    self.pairs.append((have, want))

    @property
    def required(self) -> tuple[Equation, ...]:
        """What a run must check besides the steps of symbols."""
        equal = [Equation(dim_of(self.free[name]), d) for name, d in self.same.items()]
        return (*equal, *simplified(self.assumed, self.free))

    def better(self) -> Facts:
        """What the next import of the model may know."""
        order = [n for n in self.free if n not in self.same]
        return self.facts.also(self.assumed, {n: self.free[n] for n in order})


class Assuming(Builder):
    """A builder that assumes sizes to be equal where an op needs that.

    What it assumes is required of every run; in a branch or a loop (`inside`) of runs that come
    there, so that a node checks it.
    """

    def __init__(self, facts: SizeKnowledge, inside: bool = False) -> None:
        super().__init__()
        self.knowledge, self.inside = facts, inside

    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any], hint: str = "") -> Any:
        """Record one node; its operands get equal sizes if these cannot be told from theirs."""
        for _ in range(_TRIES):
            try:
                return super().emit(op, operands, attrs, hint)
            except Undecided as error:
                operands, attrs = self._agreed(op, operands, attrs, error)
        return super().emit(op, operands, attrs, hint)

    def require(self, a: Dim, b: Dim) -> None:
        """Assume that two sizes are equal, unless they are for all inputs."""
        if a != b and known(a, "==", b) is not True:
            self._note(a, b)

    def fits(self, room: Dim) -> None:
        """Note that runs have a meaning only where this size is not negative; what follows for
        the bounds of open sizes is known from the next import on."""
        if not self.inside and isinstance(room, Poly):
            self.knowledge.rooms.append(room)

    def _agreed(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any], error: Undecided
                ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Operands and attributes in which the two sizes of each pair are one: the simpler one."""
        if not self.inside and (wide := self._spread(op, operands, error)) is not None:
            return wide, attrs
        one: dict[Dim, Dim] = {}
        for a, b in error.pairs:
            worse, better = sorted((a, b), key=lambda d: (len(text(d)), text(d)), reverse=True)
            one[worse] = better
        renamed = [self._with(x, one) for x in operands]
        inside = {k: tuple(one.get(i, i) if isinstance(i, Poly) else i for i in v)
                  if isinstance(v, tuple) else v for k, v in attrs.items()}
        if op is o.reshape and inside == attrs:  # its sizes are products
            (have, want), = error.pairs
            flat = super().emit(op, operands, {"shape": (have,)})
            renamed = [super().emit(o.assume, (flat,), {"shape": (want,)})]
        elif inside == attrs and all(x is y for x, y in zip(renamed, operands, strict=True)):
            self.knowledge.pairs += error.pairs
            raise error
        for a, b in error.pairs:
            self._note(a, b)
        return renamed, inside

    def _spread(self, op: Op, operands: Sequence[Any], error: Undecided) -> list[Any] | None:
        """The operands with one size where theirs are equal or 1, if it is a run that tells."""
        rank = own_axes(op)
        if rank is None:
            return None
        leads = {i: x.shape[:x.ndim - rank] for i, x in enumerate(operands)
                 if isinstance(x, Tracer)}
        shape = self.knowledge.common(leads.values(), error)
        wide = [self.spread(x, shape[len(shape) - len(leads[i]):]) if i in leads else x
                for i, x in enumerate(operands)]
        return None if all(x is y for x, y in zip(wide, operands, strict=True)) else wide

    def spread(self, x: Tracer, shape: tuple[Dim | None, ...]) -> Tracer:
        """x with these sizes on its first axes, where it has not 1 and one is given."""
        wide = tuple(d if d == 1 or n is None else n for d, n in zip(x.shape, shape, strict=False))
        wide += x.shape[len(shape):]
        return x if wide == x.shape else super().emit(o.spread, (x,), {"shape": wide})

    def _with(self, x: Any, one: Mapping[Dim, Dim]) -> Any:
        if not isinstance(x, Tracer):
            return x
        shape = tuple(one.get(d, d) for d in x.shape)
        return x if shape == x.shape else super().emit(o.assume, (x,), {"shape": shape})

    def _note(self, a: Dim, b: Dim) -> None:
        """Note the equation, or have a node check it: if the run computes the sizes, or may not
        come here."""
        if not self.inside:
            self.knowledge.pairs.append((a, b))
        if self.inside or not self.knowledge.of_inputs(a, b):
            n = super().emit(o.dim, (), {"of": a - b, "dtype": dtypes.int64})
            size = symbol(f"equal{next(self.knowledge.numbers)}", 0)
            super().emit(o.size, (n,), {"size": size, "most": 0, "checked": True})
