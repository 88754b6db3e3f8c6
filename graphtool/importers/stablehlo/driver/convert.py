"""The driver: runs the operations of `main` through their handlers; calls are inlined.

A value is an Array, one of the values that consist of Arrays (see `parts.py`), or REFUSED. What is
refused is collected, so that one error lists all of it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphtool.errors import GraphtoolError, InputError, InternalError, near
from graphtool.escaping import line
from graphtool.front import REFUSED, Array, Front, Refused
from graphtool.front.complex import Complex
from graphtool.front.regions import Closed
from graphtool.importers.stablehlo.driver import arithmetic, boundary, own
from graphtool.importers.stablehlo.driver.boundary import main_function
from graphtool.importers.stablehlo.driver.context import Context, Env
from graphtool.importers.stablehlo.driver.parts import (
    PAIRED,
    TOKEN,
    ComplexCaptures,
    Quantised,
    ValueTuple,
    flat,
    is_complex,
    joined,
    leaves,
    read_quantised,
)
from graphtool.importers.stablehlo.driver.registry import HANDLERS, IGNORED, NODE, NODES, Handler
from graphtool.importers.stablehlo.driver.session import Session, title
from graphtool.importers.stablehlo.driver.values import element_type, shown
from graphtool.importers.stablehlo.text.tree import Function, MlirType, Operation, Region, Signature
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.replay import prune
from graphtool.ir.rounded_once import settle
from graphtool.ir.trace import Tracer
from graphtool.symbolic import known
from graphtool.symbolic.parse import parse

PASSES = frozenset(("call", "func.call", "stablehlo.composite", "stablehlo.optimization_barrier",
                    "stablehlo.tuple", "stablehlo.get_tuple_element", "stablehlo.after_all",
                    "stablehlo.create_token", "sdy.sharding_constraint"))
"""What hands values on as they are."""
FLAT = frozenset(f"stablehlo.{name}" for name in (
    "while", "if", "case", "sort", "reduce", "reduce_window", "scatter", "map", "custom_call",
    "constant", "broadcast_in_dim", "dynamic_broadcast_in_dim", "broadcast",
    "reshape", "dynamic_reshape", "transpose", "slice", "real_dynamic_slice", "reverse", "pad",
    "dynamic_pad", "concatenate", "gather", "dynamic_gather", "dynamic_slice",
    "dynamic_update_slice", "select", "get_dimension_size"))
"""What moves values, or hands them to bodies: it sees their tensors, not what these mean."""
_DEPTH = 64
SHARDING = "sharding annotations: the graph is for one device"
_SHARDED = ("sdy.mesh", "mhlo.sharding", "@Sharding")
_BAD = (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError,
        MemoryError, AttributeError, AssertionError)


class StablehloConversion(Session):
    """The conversion of one program into one module."""

    def run(self) -> Module | None:
        """The module, without its conditions, or None if anything was refused."""
        main = main_function(self.program, self.names.function)
        entered = boundary.Entry(self, main)
        env: Env = ChainMap(dict(zip((a.name for a in main.arguments), entered.values,
                                     strict=True)))
        results = self._block(main.body or (), env, False)
        outputs = [self._output(x) for x in (*flat(results), *self.expected.values())]
        if self.refusals:
            return None
        graph = prune(Graph(entered.inputs, tuple(self.builder.nodes), tuple(outputs)),
                      self.wanted)
        names = boundary.output_names(main, self.names)
        meta = {"ignored": SHARDING} if any(
            word in self.program.text for word in _SHARDED) else {}
        return Module(graph, tuple(boundary.distinct([*names, *self.expected])),
                      entered.symbols(graph), self._locations(graph),
                      boundary.donations(main, graph), meta, own.initial(main),
                      requires=own.requires(self.program.attrs, self.sizes))

    # ---- what handlers use ---------------------------------------------------------------------

    def function(self, name: str) -> Function:
        """The function called `name`. Raises InputError GT1305 if there is none."""
        function = self.program.functions.get(name)
        if function is None:
            raise InputError("GT1305", f"there is no function @{name}",
                             hint=near(name, self.program.functions, ""))
        if function.body is None:
            raise Refused(f"the function @{name} has no body: it is only declared")
        return function

    def call(self, function: Function, xs: Sequence[Any], vector: bool = False) -> list[Any]:
        """The results of a function on these values, computed in the current graph."""
        names = [a.name for a in function.arguments]
        if len(names) != len(xs):
            raise InputError("GT1305", f"@{function.name} takes {len(names)} values, "
                                       f"{len(xs)} given")
        return self._block(function.body or (), ChainMap(dict(zip(names, xs, strict=True))),
                           vector)

    def inline(self, region: Region, xs: Sequence[Any], env: Env, vector: bool) -> list[Any]:
        """The results of a region on these values, computed in the current graph."""
        inner = dict(zip((a.name for a in region.arguments), xs, strict=True))
        return self._block(region.operations, ChainMap(inner, env), vector)

    def graph(self, function: Function) -> Graph:
        """A function as a closed graph. The text names the sizes of its arguments.
        """
        types, env, given = [], dict[str, Any](), []
        for a in function.arguments:
            if size := own.size(a):
                env[a.name] = self.builder.number(self.sizes[size], element_type(a.kind))
                continue
            sizes = [parse(d, self.sizes) for d in own.sizes(a)]
            types.append(TensorType(element_type(a.kind), tuple(
                sizes or [d or 0 for d in a.kind.shape or ()])))
            given.append(a)
        body = Region(tuple(given), tuple(function.body or ()))
        return self.closed(body, types, ChainMap(env)).graph([])

    def closed(self, region: Region, types: Sequence[TensorType], env: Env,
               vector: bool = False) -> Closed:
        """A region traced alone on inputs of these types."""
        outer, where = self.builder, self.builder.where
        builder = self.builder = Front(self.knowledge)
        captures = ComplexCaptures(env, builder)
        names = [a.name for a in region.arguments]
        hints = [n for a in region.arguments for n, _ in leaves(
            a.kind, a.name.removeprefix("%") or "x")]
        inputs = [builder.input(t, n) for t, n in zip(types, hints, strict=True)]
        given = joined([a.kind for a in region.arguments], inputs)
        try:
            with builder.scope(outer.prefix, where):
                inner = ChainMap(dict(zip(names, given, strict=True)), captures)
                results = flat(self._block(region.operations, inner, vector))
        finally:
            self.builder = outer
        if any(x is REFUSED for x in results):
            raise Refused("")
        return Closed(builder, inputs, results, captures.taken, self.wanted)

    # ---- operations ----------------------------------------------------------------------------

    def _block(self, operations: Sequence[Operation], env: Env, vector: bool) -> list[Any]:
        """Run operations in order; the values that the last one returns."""
        self.depth += 1
        if self.depth > _DEPTH:
            raise InputError("GT1305", f"functions and regions are nested more than {_DEPTH} deep",
                             hint="a function that calls itself cannot be inlined")
        try:
            for op in operations:
                if op.name == "return":
                    return [self._use(op, n, env) for n in op.operands]
                self._operation(op, env, vector)
        finally:
            self.depth -= 1
        return []

    def _use(self, op: Operation, name: str, env: Env) -> Any:
        if name not in env:
            raise self.fault(op, "GT1303", f"{name} is used before it is defined")
        return env[name]

    def apply(self, op: Operation, xs: Sequence[Any], env: Env, vector: bool) -> list[Any]:
        """The results of one operation on these values."""
        results = self._handle(op, list(xs), env, vector)
        return list(results) if isinstance(results, (tuple, list)) else [results]

    def _operation(self, op: Operation, env: Env, vector: bool) -> None:
        self.visited += 1
        self.limits.check_nodes(self.visited, self.place(op))
        if not self.visited % 256:
            self.limits.check_seconds(self.started, self.place(op))
        xs = [self._use(op, n, env) for n in op.operands]
        for name in op.results:
            if name in env and name in getattr(env, "maps", [env])[0]:
                raise self.fault(op, "GT1303", f"{name} is defined twice")
        results: Sequence[Any] = [REFUSED] * len(op.results)
        if not any(x is REFUSED for x in xs):
            key = self.places.key(op.origin) or self.builder.where
            with self.builder.scope(self.places.scope(op.origin), key):
                results = self._results(op, xs, env, vector)
        env.update(zip(op.results, results, strict=True))

    def _results(self, op: Operation, xs: list[Any], env: Env, vector: bool) -> Sequence[Any]:
        try:
            out = self.apply(op, xs, env, vector)
            self._check(op, out, vector)
        except Refused as refused:
            if str(refused):
                self.refuse(title(op), str(refused), self.place(op))
            return [REFUSED] * len(op.results)
        except InternalError as error:
            raise self.fault(op, "GT1306", f"{title(op)} cannot be read: {error.message}"
                              ) from error
        except GraphtoolError as error:
            place = self.place(op)
            if line(place) not in error.where:
                error.within(place)
            raise
        except _BAD as error:
            raise self.fault(op, "GT1306", f"{title(op)} cannot be read: {error}") from error
        return out

    def _handle(self, op: Operation, xs: list[Any], env: Env, vector: bool) -> Any:
        if NODE in op.attrs and op.name in NODES:
            ctx = Context(self, op, env, vector)
            return ctx.kept(NODES[op.name](ctx, *xs, **self._attributes(op, HANDLERS[op.name])))
        handler = HANDLERS.get(op.name)
        if not _passes(op) and (any(_compound(x) for x in xs) or any(
                map(_several, op.signature.results))):
            return self._compound(op, xs, env, vector, handler)
        if handler is None:
            dialect, _, word = op.name.partition(".")
            like = near(word, [h.partition(".")[2] for h in HANDLERS if h.startswith(
                f"{dialect}.")], "") if len(word) > 4 else ""
            meant = like.partition("'")[2].partition("'")[0]
            raise Refused(f"it is not supported; did you mean '{dialect}.{meant}'?" if meant else
                          "it is not supported")
        if vector and not handler.elementwise:
            raise Refused("it occurs in the body of another operation, where only elementwise "
                          "operations are supported")
        if not handler.least <= len(xs) <= handler.most:
            raise self.fault(op, "GT1306", f"{title(op)} takes {handler.least} operands, "
                                            f"{len(xs)} given")
        before = len(self.builder.nodes)
        out = handler.fn(Context(self, op, env, vector), *xs, **self._attributes(op, handler))
        return settle(self.builder, before, [out])[0] if isinstance(out, Tracer) else out

    def _compound(self, op: Operation, xs: list[Any], env: Env, vector: bool,
                  handler: Handler | None) -> Any:
        """What the operation does with complex numbers, quantised ones, tuples and tokens."""
        ctx = Context(self, op, env, vector)
        attrs = self._attributes(op, handler) if handler is not None else dict(op.attrs)
        pairs = any(isinstance(x, Complex) for x in xs) or any(
            map(is_complex, op.signature.results))
        if pairs and op.name in PAIRED:
            out = PAIRED[op.name](ctx, *xs, **attrs)
            if out is not NotImplemented:
                return out
        if handler is None:
            raise Refused("it is not supported")
        if op.name not in FLAT:
            if pairs or any(isinstance(x, ValueTuple) or x is TOKEN for x in xs):
                raise Refused("it is not supported on complex numbers, tuples and tokens")
            return arithmetic.by_numbers(ctx, handler.fn, xs, attrs)
        inner = replace(ctx, op=replace(op, signature=Signature(
            tuple(k for o in op.signature.operands for _, k in leaves(o)),
            tuple(k for r in op.signature.results for _, k in leaves(r)))))
        out = handler.fn(inner, *flat(xs), **attrs)
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        return joined(op.signature.results, results)

    def _attributes(self, op: Operation, handler: Handler) -> dict[str, Any]:
        out = {}
        for name, value in op.attrs.items():
            if name in handler.attrs:
                out[name] = value
            elif not handler.others and name not in IGNORED and "." not in name:
                raise self.fault(op, "GT1306", f"{title(op)} has no attribute {name!r}",
                                  near(name, handler.attrs, ""))
        for name, required in handler.attrs.items():
            if required and name not in out:
                raise self.fault(op, "GT1306", f"{title(op)} needs the attribute {name!r}")
        return out

    def _check(self, op: Operation, results: Sequence[Any], vector: bool) -> None:
        """Compare what was made with the types in the text. Raises InputError GT1307."""
        if len(results) != len(op.results):
            raise self.fault(op, "GT1306", f"{title(op)} has {len(results)} results, the text "
                                           f"names {len(op.results)}")
        if vector:
            return
        for x, kind in zip(results, op.signature.results, strict=True):
            if x is REFUSED or kind.shape is None:
                continue
            tensors_, stated = flat([x]), leaves(kind)
            if len(tensors_) != len(stated) or not all(_fits(m, k) for m, (_, k) in zip(
                    tensors_, stated, strict=True)):
                raise self.fault(op, "GT1307", f"{title(op)} gives "
                                 f"{shown([m.type for m in tensors_])}, the text says {kind}")

    # ---- outputs --------------------------------------------------------------------------------

    def _output(self, x: Any) -> Any:
        if x is REFUSED:
            return None
        if isinstance(x, Array):
            return x.value
        raise InputError("GT1305", "a result of @main is not a tensor")

    def _locations(self, graph: Graph) -> dict[str, Any]:
        reached = {n.where for n in graph.nodes}
        return {k: v for k, v in self.places.table.items() if k in reached}


def _compound(x: Any) -> bool:
    return isinstance(x, (Complex, Quantised, ValueTuple)) or x is TOKEN


def _passes(op: Operation) -> bool:
    return op.name in PASSES or op.name.startswith(("chlo.broadcast_", "check.")) or str(
        op.attrs.get("call_target_name")).startswith("check.")


def _several(kind: MlirType) -> bool:
    return is_complex(kind) or kind.shape is None or read_quantised(kind.element) is not None


def _fits(x: Any, kind: MlirType) -> bool:
    """Whether a tensor is of the type, as far as both are known."""
    shape, said = x.shape, kind.shape or ()
    return x.dtype is element_type(kind) and len(shape) == len(said) and not any(
        n is not None and known(d, "==", n) is False for d, n in zip(shape, said, strict=True))
