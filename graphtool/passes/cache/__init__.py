"""A cache that grows by copying becomes one of a fixed room that each run writes into.

Exported language models take a past of any length P and give back the past and the new keys,
joined: each step copies all of it. Here the input and the output have room for `max` elements along
that axis, the output is donated from the input, and a run writes the new elements behind the first
P. What reads the joined keys reads the first P + S elements of the room. P becomes a number that
the caller gives, the position; to go back n elements is to give a smaller one.

On request the room holds fewer bits: what is new is rounded once, and what reads the keys
reads them widened. Kernels of attention widen them as they read.

A row is what one position of one head has: the elements along the last axis, or along the axis
before it, where the last one is that of the positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import UsageError
from graphtool.ir.bind import bind
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value, producers
from graphtool.ir.replay import replay
from graphtool.ir.run_sizes import bare
from graphtool.ir.trace import Builder, Tracer
from graphtool.ops.packed import LEAST, STEPS
from graphtool.rewrite.patterns import bindings, pattern
from graphtool.symbolic import Dim, Symbol, bounds, dim_of, substitute, symbols

Kept = Literal["own", "bf16", "f16", "i8"]
_TYPES = {"bf16": dtypes.bfloat16, "f16": dtypes.float16, "i8": dtypes.int8}
POSITION = "position"
_APPENDED = pattern(lambda past, new, axis: o.concat(past, new, axis=axis))


@dataclass(frozen=True)
class CacheRows:
    """The form of one cache: the model's type, the type that is kept, the axis of positions."""

    dtype: DType
    kept: DType
    axis: int

    @property
    def scaled(self) -> bool:
        """Whether there is a factor for each row."""
        return self.kept is dtypes.int8 and self.kept is not self.dtype

    def across(self, rank: int) -> int:
        """The axis along which a row lies."""
        return rank - 2 if self.axis == rank - 1 else rank - 1

    def factors(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The shape of the factors of numbers of this shape."""
        at = self.across(len(shape))
        return (*shape[:at], 1, *shape[at + 1:])

    def stored(self, x: Any) -> tuple[Any, ...]:
        """The numbers that are kept for x, and the factors of rows.

        A row is divided by a 127th of its greatest magnitude and rounded, ties to even; one with a
        NaN or an infinity reads as NaN.
        """
        if not self.scaled:
            return (x if self.kept is self.dtype else o.cast(x, dtype=self.kept),)
        x = x if x.dtype is dtypes.float32 else o.cast(x, dtype=dtypes.float32)
        top = o.max(o.reduce_max(o.abs(x), axes=(self.across(x.ndim),)), LEAST)
        return o.cast(o.round(x * (STEPS / top)), dtype=dtypes.int8), top / STEPS

    def read(self, kept: Any, factors: Any = None) -> Any:
        """The numbers in the model's type."""
        if factors is not None:
            wide = o.cast(kept, dtype=dtypes.float32) * factors
            return wide if self.dtype is dtypes.float32 else o.cast(wide, dtype=self.dtype)
        return kept if self.kept is self.dtype else o.cast(kept, dtype=self.dtype)


def rows_of(dtype: DType, kept: Kept, axis: int, rank: int) -> CacheRows:
    """The form of a cache; one that is not of floats, or has no axis beside that of positions,
    keeps the model's type."""
    fits = dtype.is_float and rank >= 2 and kept != "own"
    return CacheRows(dtype, _TYPES[kept] if fits else dtype, axis)


@dataclass(frozen=True)
class Grown:
    """An output that is an input and what came new, joined along `axis`; both by number."""

    output: int
    input: int
    axis: int
    size: Symbol  # of the input along the axis


def cache(module: Module, *, max: int, position: str = POSITION, dtype: Kept = "own") -> Module:
    """The module whose growing caches have room for `max` elements and are updated in place.

    `position` names the new input, i64[]: how many elements are valid before the run. Other inputs
    whose sizes depend on that number, such as masks, get their room for `max` too. `dtype` is that
    of the caches: bf16, f16, or i8 with a factor for each position and head, in caches of their
    own; own leaves the model's. Raises UsageError GT0626 where no output is an input of open size
    joined with new elements, or where several grow apart.
    """
    grown = list(_grown(module))
    names = {g.size.name for g in grown}
    if len(names) != 1:
        what = "no output is" if not grown else f"{len(names)} sizes grow apart: "
        raise UsageError("GT0626", f"cache: {what}" + (
            " an input of open size with new elements joined to it" if not grown else
            ", ".join(sorted(names))), hint="import the step of a decoder with its past as inputs, "
            "whose length is open: --dynamic 'P@past.2=1..4096'")
    if max < 1:
        raise UsageError("GT0626", f"cache: max is {max}, 1 or more expected")
    return _Rewriting(module, grown, max, position, dtype).module()


def _grown(module: Module) -> Iterator[Grown]:
    """The outputs that are a cache and its new elements."""
    graph, made_by = module.graph, producers(module.graph)
    inputs = {v: i for i, v in enumerate(graph.inputs)}
    donated = {out for out, _ in module.donations}
    for out, v in enumerate(graph.outputs):
        env = next(bindings(_APPENDED, v, made_by.get), None)
        if env is None or out in donated:
            continue
        past, axis = env["past"], env["axis"] % v.type.rank
        if isinstance(past, Value) and past in inputs and graph.outputs.count(v) == 1:
            size = bare(past.type.shape[axis])
            if size is not None and size.name in module.symbols:
                yield Grown(out, inputs[past], axis, size)


@dataclass(frozen=True)
class Cache:
    """One cache on its way: `room` is what the caller gives, numbers and perhaps factors; `valid`
    the parts with elements in them; `past` these as the model sees them."""

    grown: Grown
    rows: CacheRows
    room: tuple[Tracer, ...]
    valid: tuple[Tracer, ...]
    past: Tracer


class _Rewriting:
    """One module on its way. `past` is the size of the caches before a run, `new` what a run
    adds."""

    def __init__(self, module: Module, grown: Sequence[Grown], room: int, name: str,
                 dtype: Kept) -> None:
        self.dtype = dtype
        self.room, self.grown, self.name, self.old = room, grown, name, module
        size = grown[0].size
        self.old_size = size.name
        sizes = _known_past(module, size.name)
        roomy = self.roomy(bind(module.graph, sizes), grown[0])
        sizes = {n: substitute(d, roomy) for n, d in sizes.items()} | roomy
        self.requires = tuple(e for e in (e.under(sizes) for e in module.requires)
                              if e.holds is not True)
        self.new = self.added(bind(module.graph, sizes), grown[0])
        most = bounds(self.new)[0] or 0
        self.past = dim_of(Symbol(size.name, 0, room - most))
        kept = {n: bare(sizes.get(n, dim_of(s))) for n, s in module.symbols.items()}
        self.symbols = {n: s for n, s in kept.items() if s is not None and s.name == n != size.name}
        self.graph = bind(bind(module.graph, sizes), {size.name: self.past})
        self.builder = Builder()

    def added(self, graph: Graph, g: Grown) -> Dim:
        """The number of new elements, the same for each cache."""
        total = graph.outputs[g.output].type.shape[g.axis]
        return total - dim_of(g.size)

    def roomy(self, graph: Graph, g: Grown) -> dict[str, Dim]:
        """The number of new elements; an open size becomes a size that has room."""
        s = bare(self.added(graph, g))
        if s is None or (s.hi is not None and s.hi <= self.room):
            return {}
        return {s.name: dim_of(dataclasses.replace(s, hi=self.room))}

    def module(self) -> Module:
        """The module with caches of a fixed room."""
        given = [self.given(v) for v in self.graph.inputs]
        position = self.builder.input(TensorType(dtypes.int64, ()), self.name)
        with self.builder.scope(self.name):
            last = self.room - self.new
            counted = o.size(position, size=self.past, most=last, checked=True)
        assert isinstance(counted, Tracer)
        caches = {g.input: self.cache(g, given[g.input]) for g in self.grown}
        args = [caches[i].past if i in caches else
                x if x.shape == v.type.shape else self.part(x, v.hint, 0, v.type.shape)
                for i, (v, x) in enumerate(zip(self.graph.inputs, given, strict=True))]
        nodes = {self.graph.outputs[c.grown.output]: c for c in caches.values()}
        written: dict[Value, tuple[Tracer, ...]] = {}

        def apply(node: Node, *operands: Any) -> tuple[Value, ...]:
            if (at := nodes.get(node.outputs[0])) is not None:
                written[node.outputs[0]], seen = self.written(node, operands[1], at)
                return (seen,)
            self.builder.add(dataclasses.replace(node, inputs=operands))
            return node.outputs
        outputs = replay(self.graph, [x.value for x in args], apply)
        whole = [written[v][0].value if v in written else y
                 for v, y in zip(self.graph.outputs, outputs, strict=True)]
        factors = [(c, written[v][1].value) for v, c in nodes.items() if len(c.room) > 1]
        graph = Graph((*(x.value for x in given), position.value,
                       *(c.room[1].value for c, _ in factors)),
                      tuple(self.builder.nodes), (*whole, *(y for _, y in factors)))
        pairs = [(g.output, g.input) for g in self.grown]
        pairs += [(len(whole) + i, len(given) + 1 + i) for i in range(len(factors))]
        names = (f"{self.old.output_names[c.grown.output]}_factors" for c, _ in factors)
        return dataclasses.replace(
            self.old, graph=graph, symbols=self.symbols, requires=self.requires,
            output_names=(*self.old.output_names, *names),
            donations=(*self.old.donations, *pairs))

    def given(self, v: Value) -> Tracer:
        """An input, with room if its size depends on the past."""
        shape = tuple(self.room if self.old_size in {s.name for s in symbols(d)} else d
                      for d in v.type.shape)
        kept = [g for g in self.grown if self.graph.inputs[g.input] is v]
        dtype = self.rows(kept[0], v).kept if kept else v.type.dtype
        return self.builder.input(TensorType(dtype, shape), v.hint)

    def rows(self, g: Grown, v: Value) -> CacheRows:
        """The form in which a cache is kept."""
        return rows_of(v.type.dtype, self.dtype, g.axis, v.type.rank)

    def cache(self, g: Grown, x: Tracer) -> Cache:
        """A cache: its room, the parts of it that are valid, and what the model sees of them."""
        v = self.graph.inputs[g.input]
        rows = self.rows(g, v)
        room: tuple[Tracer, ...] = (x,)
        if rows.scaled:
            shape = rows.factors(x.shape)
            room = (x, self.builder.input(TensorType(dtypes.float32, shape), f"{v.hint}_factors"))
        valid = tuple(self.part(r, v.hint, 0, shape) for r, shape in zip(
            room, (v.type.shape, rows.factors(v.type.shape)), strict=False))
        with self.builder.scope(v.hint):
            return Cache(g, rows, room, valid, rows.read(*valid))

    def written(self, node: Node, new: Any, c: Cache) -> tuple[tuple[Tracer, ...], Value]:
        """The cache after the run, and the valid part of it as the model sees it."""
        hint, end = node.outputs[0].hint, self.past + self.new
        axis, whole = c.grown.axis, []
        with self.builder.scope(hint, node.where, node.of):
            fresh = c.rows.stored(Tracer(new, self.builder))
            for room, past, added in zip(c.room, c.valid, fresh, strict=True):
                shape = list(room.shape)
                shape[axis] = self.room - end
                rest = self.part(room, "", end, tuple(shape), axis)
                whole.append(o.concat(past, added, rest, axis=axis))
        valid = node.outputs[0].type.shape
        shapes = (valid, c.rows.factors(valid))
        if c.rows.kept is c.rows.dtype:
            return tuple(whole), self.part(whole[0], hint, 0, valid, axis).value
        with self.builder.scope(hint, node.where, node.of):
            seen = c.rows.read(*(self.part(x, "", 0, s, axis) for x, s in zip(
                whole, shapes, strict=False)))
        return tuple(whole), seen.value

    def part(self, x: Tracer, hint: str, start: Dim, shape: tuple[Dim, ...],
             axis: int | None = None) -> Tracer:
        """`shape` elements of x from `start` on, along the axis, if one is given."""
        at = tuple(start if i == axis else 0 for i in range(x.ndim))
        limit = tuple(a + d for a, d in zip(at, shape, strict=True))
        rows = self.builder.emit(o.slice, (x,), {
            "start": at, "limit": limit, "strides": (1,) * x.ndim}, hint)
        if rows.shape != shape:  # it cannot be seen that the new elements have room
            rows = self.builder.emit(o.assume, (rows,), {"shape": shape}, hint)
        assert isinstance(rows, Tracer)
        return rows


def _known_past(module: Module, past: str) -> dict[str, Dim]:
    """Symbols that the module requires to be the past plus a number: `M == P + 1`."""
    out: dict[str, Dim] = {}
    for e in module.requires:
        for one, other in ((e.left, e.right), (e.right, e.left)):
            s = bare(one)
            if s is not None and s.name != past and past in {x.name for x in symbols(other)} and (
                    s.name in module.symbols and s not in symbols(other)):
                out[s.name] = other
    return out
