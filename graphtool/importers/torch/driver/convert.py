"""Converts a `CapturedProgram` to a Module by one handler for each call; lists all it lacks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import GraphtoolError, InputError, InternalError
from graphtool.front import Array, Refused
from graphtool.front import complex as complex_
from graphtool.front.assumptions import Facts, SizeKnowledge
from graphtool.importers.torch.driver import provenance
from graphtool.importers.torch.driver.captured import (
    CapturedProgram,
    ComplexType,
    GraphInput,
    GraphOutput,
    NamedValue,
    Opaque,
    OpCall,
    fits,
    identity,
    names_in,
    parts_of,
    read_by,
)
from graphtool.importers.torch.driver.complex_pairs import (
    REASON,
    constant_pair,
    paired_handler,
)
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.marks import Marks, Stops
from graphtool.importers.torch.driver.missed import Missed, why
from graphtool.importers.torch.driver.sizes import SizePromises, number
from graphtool.importers.torch.driver.state_dict import state_dict
from graphtool.importers.torch.driver.table import IGNORED, PROMISES, SIZED, handler
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, TensorType, Value
from graphtool.ir.replay import prune
from graphtool.ir.rounded_once import settle
from graphtool.ir.run_sizes import bare
from graphtool.ops.random import state_of
from graphtool.symbolic import Poly, symbols

_BOUNDARY = ("complex inputs and outputs are not supported; pass the real and imaginary parts "
             "(torch.view_as_real, torch.view_as_complex)")
_SYMBOLIC = ("_operator.", "math.", "aten.sym_", "torch.sym_")


class Converter:
    """Converts one CapturedProgram; `knowledge` collects what it must know of sizes."""

    def __init__(self, program: CapturedProgram, knowledge: SizeKnowledge | None = None) -> None:
        self.program = program
        self.knowledge = knowledge or SizeKnowledge(Facts())
        self.context = Context(self.knowledge, self._region)
        self.locations = provenance.Locations()
        self.env: dict[str, Any] = {}
        self.marks = Marks()
        self.stops = Stops()
        self.missed = Missed()
        self.poisoned: set[str] = set()
        self.used = read_by(program)
        self.apart = names_in(*(c.args[1] for c in program.calls
                                if c.target.startswith("graphtool.inner_gradient")))
        if knowledge is None:
            self.knowledge.settle(program.symbols)
            self.knowledge.pairs += [(e.left, e.right) for e in program.conditions]
        self.sizes = set(program.symbols)  # the sizes that a node has defined by now
        self.context.declared = frozenset(program.symbols)
        self.inside = False  # another graph, where complex numbers cross as their parts
        self.promises = SizePromises(self.context, program.symbols)
        self.asked: dict[str, OpCall] = {}  # what computes a number out of sizes

    def run(self) -> Module:
        """The module, without its conditions. Raises UnsupportedError GT1101, InputError GT1103."""
        inputs = self._sources()
        for call in self.program.calls:
            self._call(call)
        self.missed.check()
        outputs, names, donations = self._sinks(inputs)
        self.missed.check()
        initial = {i: source.data for i, (source, _) in enumerate(inputs)
                   if source.data is not None}
        seeds = []
        if self.context.seed is not None and self.context.state is not None:
            seeds = [self.context.seed.value]
            initial[len(inputs)] = weight(state_of(0))
            donations.append((len(outputs), len(inputs)))
            outputs.append(self.context.state.value)
            names.append(next(n for n in ("rng" + "_" * i for i in count()) if n not in names))
        graph = prune(Graph((*(v for _, v in inputs), *seeds), self.promises.nodes(),
                            tuple(outputs)))
        state, kept = state_dict(self.program, graph)
        meta = {**self.program.meta, **({"state_dict": state} if state else {})}
        return Module(graph, tuple(names), dict(self.program.symbols), self._locations(graph),
                      tuple(donations), meta, initial, kept=kept, modules=self.locations.modules)

    def _region(self, program: CapturedProgram) -> Graph:
        """An inner graph, closed; what it cannot convert is added to the list."""
        inner = Converter(program, self.knowledge)
        inner.locations = self.locations
        inner.sizes = set(self.sizes)
        inner.promises = SizePromises(inner.context, self.promises.declared, self.promises.checks)
        inner.context.declared = frozenset(self.sizes)
        inner.inside = True
        inputs = inner._sources()
        for call in program.calls:
            inner._call(call)
        self.missed.take(inner.missed)
        if inner.missed:
            raise Refused("")  # the reasons are in the list
        if inner.context.seed is not None:
            raise Refused("random numbers inside a branch or a loop are not supported; draw them "
                          "outside and pass them in")
        outputs, _, _ = inner._sinks(inputs)
        return prune(Graph(tuple(v for _, v in inputs), inner.promises.nodes(), tuple(outputs)))

    def _fault_of(self, call: OpCall) -> str:
        """Why a call's results or arguments cannot be imported whatever its handler says."""
        for name in (n for n in call.outputs if n in self.used):
            match self.program.types.get(name):
                case Opaque(reason):
                    return reason
                case TensorType() as kind:
                    if call.target.rpartition(".")[0] not in SIZED and any(
                            s.name not in self.sizes for d in kind.shape for s in symbols(d)):
                        return "its size depends on the data"
        return next((x.reason for x in (*call.args, *call.kwargs.values())
                     if isinstance(x, Opaque)), "")

    # ---- inputs --------------------------------------------------------------------------------

    def _sources(self) -> list[tuple[GraphInput, Value]]:
        """Users' inputs, then mutated buffers; all other buffers and parameters are constants."""
        changed = {s.key for s in self.program.sinks if s.kind == "state"}
        owners: dict[Any, str] = {}
        inputs: list[tuple[GraphInput, Value]] = []
        state: list[tuple[GraphInput, Value]] = []
        for source in self.program.sources:
            kind = self.program.types.get(source.name)
            if self.inside and isinstance(kind, ComplexType) and source.data is None:
                parts = [self.context.input(kind.parts, f"{source.key}.{part}")
                         for part in ("real", "imag")]
                inputs += [(source, x.value) for x in parts]
                self.env[source.name] = complex_.Complex(*parts)
            elif source.data is None or source.key in changed:
                if isinstance(kind, (Opaque, ComplexType)):
                    reason = _BOUNDARY if isinstance(kind, ComplexType) else kind.reason
                    self.missed.at_boundary(f"the input {source.key}", reason)
                    self.poisoned.add(source.name)
                if not isinstance(kind, TensorType):  # a size, or an argument that capture fixed
                    self.env[source.name] = kind
                    continue
                x = self.context.input(kind, source.key)
                (inputs if source.data is None else state).append((source, x.value))
                self.env[source.name] = x
            elif source.name in self.used:
                first = owners.setdefault(identity(source.data), source.key)
                trained = source.kind == "parameter" and source.trained
                saved = bool(source.state)  # equal statistics of two norms are still two
                self.env[source.name] = constant_pair(
                    self.context, source.data, first, trained, saved) if isinstance(
                    kind, ComplexType) else self.context.constant(
                    source.data, first, trained, alone=saved)
            else:
                owners.setdefault(identity(source.data), source.key)
        return inputs + state

    # ---- calls ---------------------------------------------------------------------------------

    def _call(self, call: OpCall) -> None:
        base = call.target.rpartition(".")[0]
        if base in PROMISES:
            self._promise(call)
        if base in IGNORED or not call.outputs:
            return
        if self._symbolic(call) or self._number(call):
            return
        names = names_in(call.args, *call.kwargs.values())
        known = (*map(self.program.types.get, call.outputs), *map(self.env.get, names))
        paired = any(isinstance(x, (ComplexType, complex_.Complex)) for x in known)
        fn = paired_handler(call.target) if paired else handler(call.target)
        fault = self._fault_of(call) or (
            "" if fn else why(call.target, REASON) if paired else why(call.target))
        tainted = not self.poisoned.isdisjoint(names)
        if fault and not tainted:  # what follows from a refused call is not listed again
            self.missed.add(call, fault)
        if fn is None or fault or tainted:
            self.poisoned.update(call.outputs)
            return
        try:
            before = len(self.context.nodes)
            self._bind(call, self._apply(call, fn))
            self.knowledge.reshaped(self.context.nodes[before:])
        except Refused as refused:
            if str(refused):
                self.missed.add(call, str(refused), refused.name)
            self.poisoned.update(call.outputs)

    def _symbolic(self, call: OpCall) -> bool:
        """Whether the call computes a size; its value is then recorded from the program's types."""
        kinds = [self.program.types.get(n) for n in call.outputs]
        if any(isinstance(k, TensorType) for k in kinds):
            return False
        if not call.target.startswith(_SYMBOLIC):
            return False
        self.asked[call.outputs[0]] = call
        for name, kind in zip(call.outputs, kinds, strict=True):
            self.env[name] = kind if kind is not None else number(
                self.context, call.target, self._resolve(call.args))
        return True

    def _promise(self, call: OpCall) -> None:
        """Records a comparison of sizes as a promise: if it does not hold, the run fails."""
        asked = self.asked.get(call.args[0].name) if isinstance(call.args[0], NamedValue) else None
        sides = self._resolve(asked.args) if asked is not None else ()
        if asked is not None and len(sides) == 2 and all(
                isinstance(x, (int, Poly)) and not isinstance(x, bool) for x in sides):
            with self.context.scope(call.place.module, self.locations.key(call.place)):
                self.promises.keep(asked.target.removeprefix("_operator."), *sides)

    def _number(self, call: OpCall) -> bool:
        """Whether the call reads a number from a tensor; it is then a symbolic size or a scalar."""
        if not call.target.startswith(("aten._local_scalar_dense", "aten.item")):
            return False
        kind = self.program.types.get(call.outputs[0])
        free = symbols(kind) if isinstance(kind, Poly) else ()
        self.context.number_wanted = (kind, free[0].hi) if isinstance(kind, Poly) else None
        operand = self._read(call, call.args)
        if isinstance(kind, Poly) and (bare(kind) is None or free[0].name in self.sizes):
            self.missed.add(call, "it reads a number that is bound to others")
        elif isinstance(kind, int) and not isinstance(operand[0], Array):
            self.poisoned.update(call.outputs)
        else:
            fn = handler(call.target)
            assert fn is not None
            with self.context.scope(call.place.module, self.locations.key(call.place)):
                self.env[call.outputs[0]] = fn(self.context, *operand)
            self.sizes |= {s.name for s in free}
        return True

    def _apply(self, call: OpCall, fn: Callable[..., Any]) -> tuple[Any, ...]:
        types = [self.program.types.get(n) if n in self.used else None for n in call.outputs]
        self.context.complex_outs = tuple(
            isinstance(self.program.types.get(n), ComplexType) for n in call.outputs)
        self.context.outs = tuple(parts_of(t) for t in types)
        self.context.first = parts_of(self.program.types.get(call.outputs[0]))
        if not any(self.context.outs):
            return (None,) * len(call.outputs)
        args = self._read(call, call.args)
        kwargs = {k: self._read(call, v) for k, v in call.kwargs.items()}
        state = self.context.state = self.marks.seen(self.context.state, call.checkpoint)
        before = len(self.context.nodes)
        # of narrow types each op on known numbers would round; `settle` rounds once
        folds = not any(t is not None and t.dtype.is_narrow for t in self.context.outs)
        with self.context.scope(call.place.module, self.locations.key(call.place)), (
                self.context.folding(folds)):
            try:
                results = fn(self.context, *args, **kwargs)
            except InputError as error:
                error.within(provenance.describe(call.place))
                raise
            except (TypeError, KeyError, IndexError, AttributeError, ValueError) as error:
                raise InputError("GT1103", f"{call.target} has arguments that cannot be read: "
                                           f"{error}",
                                 where=provenance.describe(call.place)) from error
            settled = tuple(settle(self.context, before, results if isinstance(
                results, (tuple, list)) else (results,)))
        settled = self.stops.made(settled, call.gradient, self.context.nodes[before:])
        for x in (*settled, None if self.context.state is state else self.context.state):
            self.marks.made(x, call.checkpoint)
        return settled

    def _contradiction(self, call: OpCall, got: object, wanted: object) -> GraphtoolError:
        """The error for a call of another type than was recorded: a file may say anything."""
        where = provenance.describe(call.place)
        if self.program.meta.get("source") == "pt2":
            return InputError("GT1103", f"{call.target} gives {got}, the archive says {wanted}",
                              where=where, hint="save the program again by torch.export.save")
        return InternalError("GT7203", f"{call.target} gives {got}, torch says {wanted}",
                             where=where)

    def _bind(self, call: OpCall, results: tuple[Any, ...]) -> None:
        for name, result, wanted in zip(call.outputs, results, self.context.outs, strict=False):
            if wanted is None:
                continue
            if result is None:
                raise Refused("a result that only torch's gradient needs is not supported; leave "
                              "it unused")
            for part in result.parts if isinstance(result, complex_.Complex) else (result,):
                if not fits(part.type, wanted):
                    raise self._contradiction(call, part.type, wanted)
            # a gradient by a copy is not one by what was copied
            self.env[name] = self.context.record(o.barrier, (result,), {}) if (
                name in self.apart and isinstance(result, Array)) else result
            self.sizes |= {s.name for d in result.shape for s in symbols(d)}

    def _read(self, call: OpCall, x: Any) -> Any:
        """An argument of a call as a tracer, a size or a literal, marked for the call's region."""
        return self.marks.seen(self.stops.seen(self._resolve(x), call.gradient), call.checkpoint)

    def _resolve(self, x: Any) -> Any:
        match x:
            case NamedValue(name):
                if name not in self.env:
                    raise InputError("GT1103", f"{name!r} is used before it is defined")
                return self.env[name]
            case tuple():
                return tuple(self._resolve(i) for i in x)
            case _:
                return x

    # ---- outputs -------------------------------------------------------------------------------

    def _sinks(self, inputs: list[tuple[GraphInput, Value]]
               ) -> tuple[list[Value], list[str], list[tuple[int, int]]]:
        position = {source.key: i for i, (source, _) in enumerate(inputs)}
        outputs: list[Value] = []
        names: list[str] = []
        donations: list[tuple[int, int]] = []
        for sink in sorted(self.program.sinks, key=lambda s: s.kind == "state"):
            if sink.kind == "state":
                donations.append((len(outputs), position[sink.key]))
            value = self.env.get(getattr(sink.value, "name", ""))
            if isinstance(value, complex_.Complex) and self.inside:
                outputs += [value.real.value, value.imag.value]
                continue
            if isinstance(value, complex_.Complex):
                self.missed.at_boundary(f"the output {sink.key}", _BOUNDARY)
                continue
            outputs.append(self._output(sink))
            names.append(sink.key)
        return outputs, names, donations

    def _output(self, sink: GraphOutput) -> Value:
        x = self.marks.seen(self.stops.seen(self._resolve(sink.value), ""), 0)
        if isinstance(x, Poly):  # a size that the model returns
            x = self.context.number(x, dtypes.int64)
        value = self.context.operand(x if isinstance(x, Array) else self.context.constant(x))
        assert isinstance(value, Value)
        return value

    def _locations(self, graph: Graph) -> dict[str, Any]:
        reached = {n.where for n in graph.nodes}
        return {k: v for k, v in self.locations.table.items() if k in reached}
