"""Rewrite rules as equations, and the engine that applies them; the rules stand elsewhere.

    @rule(lambda x, p, q: transpose(transpose(x, perm=p), perm=q))
    def merge_transposes(x, p, q):                      # (xᵖ)ᑫ = x^(p∘q)
        return transpose(x, perm=tuple(p[i] for i in q))

The left side is written in the op language: its parameters match any operand or attribute, equal
twice; a literal matches an equal literal; an attribute that is not mentioned has its default;
commutative ops match both ways. The right side declines with None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal

import numpy as np

import graphtool.ops  # noqa: F401  (fills the registry, which the left sides need)
from graphtool.errors import InputError, InternalError, UsageError
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, use_counts
from graphtool.ir.op import OPS, Op, complete_attrs
from graphtool.ir.trace import Builder, Operators, Tracer, infer, rebuild
from graphtool.passes.dce import dce
from graphtool.weights import Weight

Array = np.ndarray[Any, Any]
Numerics = Literal["exact", "reassociated", "approximate"]
NUMERICS: tuple[Numerics, ...] = ("exact", "reassociated", "approximate")
_DEPTH = 32  # rules that fire within what a rule produced
_ROUNDS = 16
_MATCHED = ""  # the key under which a match keeps the values between its leaves


# ---- patterns ----------------------------------------------------------------------------------

class Pattern(Operators):
    """Stands for a tensor on the left side of a rule; an op called on it becomes an `Applied`."""

    __slots__ = ()

    def match_pattern(self, op: Op, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Applied:
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


def matches(p: Any, x: Any, env: Env, look: Look) -> Iterator[Env]:
    """Every way in which the operand x has the form p, each as the bindings it needs."""
    match p:
        case Var():
            if x is not None:
                yield from _bind(p.name, x, env)
        case Applied():
            node = look(x) if isinstance(x, Value) else None
            if node is not None and node.op is p.op and len(node.outputs) == 1:
                inner = env | {_MATCHED: (*env.get(_MATCHED, ()), x)}
                yield from match_node(p, node.op, node.inputs, node.attrs, inner, look)
        case None:
            if x is None:
                yield env
        case _:
            if _same_literal(p, x, look):
                yield env


def match_node(p: Applied, op: Op, inputs: Sequence[Operand], attrs: Mapping[str, Any], env: Env,
               look: Look) -> Iterator[Env]:
    """Every way in which one application of an op has the form p."""
    for name, a in op.schema.items():
        bound = _match_attr(p.attrs.get(name, a.default), attrs[name], env)
        if bound is None:
            return
        env = bound
    orders = [tuple(inputs)]
    if "commutative" in op.traits and len(inputs) == 2:
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
    """Equal as numbers of the operand's type; a constant of one element counts as a literal."""
    if isinstance(x, Value):
        node = look(x)
        if node is None or node.op.name != "constant" or node.attrs["param"]:
            return False
        data: Weight = node.attrs["data"]
        return data.source.size == 1 and data.dtype.kind != "bool" and bool(
            data.source.reshape(-1)[0] == np.asarray(p).astype(data.dtype.numpy))
    if x is None or isinstance(p, bool) is not isinstance(x, bool):
        return False
    return bool(p == x) or (isinstance(p, float) and bool(np.float32(p) == x))


# ---- rules -------------------------------------------------------------------------------------

@dataclass(frozen=True, eq=False)
class Rule:
    """One equation, or one function over a family of ops (`pattern` is None then)."""

    name: str
    roots: tuple[str, ...]
    fn: Callable[..., Any]
    pattern: Applied | None
    numerics: Numerics
    once: bool
    doc: str


def rule(equation: Callable[..., Any], *, numerics: Numerics = "exact",
         once: bool = False) -> Callable[[Callable[..., Any]], Rule]:
    """Declare `equation = fn`. With `once`, nothing else may read what lies inside the match."""
    names = list(inspect.signature(equation).parameters)
    pattern = equation(*map(Var, names))
    if not isinstance(pattern, Applied):
        raise InternalError("GT7602", "the left side of a rule must be an op")

    def declare(fn: Callable[..., Any]) -> Rule:
        name = getattr(fn, "__name__", "rule")
        if list(inspect.signature(fn).parameters) != names:
            raise InternalError("GT7603", f"rule {name}: the sides differ in their parameters")
        return Rule(name, (pattern.op.name,), fn, pattern, numerics, once, inspect.getdoc(fn) or "")
    return declare


def family_rule(*roots: str, numerics: Numerics = "exact") -> Callable[[Callable[..., Any]], Rule]:
    """Declare a rule over several ops: `fn(op, xs, attrs, type)`, xs being tracers and literals."""
    def declare(fn: Callable[..., Any]) -> Rule:
        return Rule(getattr(fn, "__name__", "rule"), roots, fn, None, numerics, False,
                    inspect.getdoc(fn) or "")
    return declare


def with_trait(trait: str) -> tuple[str, ...]:
    """The names of the ops that have a trait, for `family_rule`."""
    return tuple(name for name, op in OPS.items() if trait in op.traits)


@dataclass(frozen=True)
class Fired:
    """One rule that fired: the values it matched and the value it made, by their hints."""

    rule: str
    numerics: Numerics
    matched: tuple[str, ...]
    produced: str


Journal = list[Fired]


# ---- what a right side may ask about its operands ----------------------------------------------

def producer(x: Any) -> Node | None:
    """The node that made a tracer's value; None for inputs of the graph, and for literals."""
    return x.builder.made.get(x.value) if isinstance(x, Tracer) else None


def array_of(x: Any, params: bool = False) -> Array | None:
    """The contents of a constant; trainable parameters count only if `params` says so."""
    node = producer(x)
    if node is None or node.op.name != "constant" or (node.attrs["param"] and not params):
        return None
    data: Weight = node.attrs["data"]
    return data.source


def number_of(x: Any) -> float | None:
    """The number that a literal, or a constant of one element, is."""
    array = array_of(x)
    if array is not None and array.size == 1 and array.dtype.kind != "b":
        return float(array.reshape(-1)[0])
    return float(x) if is_number(x) else None


def readers(x: Any) -> int | None:
    """How often a tracer's value is read; None for a value made in this round."""
    if not isinstance(x, Tracer) or not isinstance(x.builder, Emitter):
        return None
    return x.builder.uses.get(x.value)


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


# ---- the engine --------------------------------------------------------------------------------

Attempt = Callable[[Op, tuple[Operand, ...], Mapping[str, Any], TensorType, "Emitter"], Any]


@dataclass(eq=False)
class Emitter:
    """Stands in for the builder while a rule runs, so that what it emits is rewritten in turn."""

    builder: Builder
    attempt: Attempt
    uses: Mapping[Value, int] = field(default_factory=dict)
    depth: int = 0

    @property
    def made(self) -> dict[Value, Node]:
        return self.builder.made

    def operand(self, x: Any) -> Operand:
        return self.builder.operand(x)

    def wrap(self, x: Any) -> Any:
        return Tracer(x, self) if isinstance(x, Value) else x  # type: ignore[arg-type]

    def constant(self, array: Array | Weight, hint: str = "", param: bool = False) -> Any:
        return self.wrap(self.builder.constant(array, hint, param).value)

    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any], hint: str = "") -> Any:
        inputs = tuple(self.operand(x) for x in operands)
        attrs = complete_attrs(op, attrs)
        if self.depth < _DEPTH:
            types = infer(op, inputs, attrs, self.builder.where)
            self.depth += 1
            result = None if isinstance(types, tuple) else self.attempt(
                op, inputs, attrs, types, self)
            self.depth -= 1
            if result is not None:
                return result
        out = self.builder.emit(op, inputs, attrs, hint)
        return tuple(self.wrap(t.value) for t in out) if isinstance(out, tuple) else (
            self.wrap(out.value))


@dataclass(eq=False)
class _Engine:
    index: Mapping[str, Sequence[Rule]]
    uses: Mapping[Value, int]
    journal: Journal
    fired: list[Fired] = field(default_factory=list)

    def visit(self, node: Node, inputs: tuple[Operand, ...], builder: Builder) -> Any:
        if node.op.name not in self.index or len(node.outputs) != 1:
            return None
        result = self.attempt(node.op, inputs, node.attrs, node.outputs[0].type,
                              Emitter(builder, self.attempt, self.uses))
        return None if result is None else (result.value,)

    def attempt(self, op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any],
                type: TensorType, emitter: Emitter) -> Any:
        for r in self.index.get(op.name, ()):
            for env in self.candidates(r, op, inputs, attrs, emitter):
                try:
                    result = self.right_side(r, op, inputs, attrs, type, env, emitter)
                except InputError as error:
                    if error.code != "GT0310":  # a size that is not known well enough declines
                        raise
                    result = None
                if result is not None:
                    return self.accept(r, env, result, type, emitter)
        return None

    def candidates(self, r: Rule, op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any],
                   emitter: Emitter) -> Iterator[Env]:
        if r.pattern is None:
            yield {}
            return
        for env in match_node(r.pattern, op, inputs, attrs, {}, emitter.made.get):
            # a value made in this round has no count yet: the next round knows it
            if not r.once or all(self.uses.get(v) == 1 for v in env.get(_MATCHED, ())):
                yield env

    @staticmethod
    def right_side(r: Rule, op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any],
                   type: TensorType, env: Env, emitter: Emitter) -> Any:
        if r.pattern is None:
            return r.fn(op, tuple(map(emitter.wrap, inputs)), attrs, type)
        return r.fn(**{k: emitter.wrap(v) for k, v in env.items() if k != _MATCHED})

    def accept(self, r: Rule, env: Env, result: Any, type: TensorType, emitter: Emitter) -> Any:
        """The result with the type that the rule replaces: a smaller shape is broadcast to it."""
        made = result.type
        try:
            if made.dtype is type.dtype and made.shape != type.shape:
                result = OPS["broadcast"](result, shape=type.shape)
        except InputError:
            pass
        if result.type != type:
            raise InternalError("GT7604", f"rule {r.name} turned {type} into {made}")
        name = emitter.builder.prefix
        self.fired.append(Fired(r.name, r.numerics, (
            name, *(v.hint for v in env.get(_MATCHED, ()))), result.value.hint))
        return result


def numerics_class(text: str, where: str) -> Numerics:
    """The class of that name. Raises UsageError GT0605 for any other."""
    for known in NUMERICS:
        if known == text:
            return known
    raise UsageError("GT0605", f"{where}: unknown numerics class {text!r}",
                     hint=f"one of {', '.join(NUMERICS)}")


def index_rules(rules: Sequence[Rule], numerics: Numerics = "exact") -> dict[str, list[Rule]]:
    """The rules of at most the given numerics class, by the op at their root."""
    allowed = NUMERICS[:NUMERICS.index(numerics) + 1]
    index: dict[str, list[Rule]] = {}
    for r in rules:
        for root in r.roots if r.numerics in allowed else ():
            index.setdefault(root, []).append(r)
    return index


def apply_rules(graph: Graph, rules: Sequence[Rule], numerics: Numerics = "exact",
                journal: Journal | None = None) -> Graph:
    """Rewrite until no rule fires; a graph on which none does comes back as the same object."""
    index = index_rules(rules, numerics)
    for _ in range(_ROUNDS):
        engine = _Engine(index, use_counts(graph), [])
        new = rebuild(graph, engine.visit)
        if not engine.fired:
            break
        graph = dce(new)
        if journal is not None:
            journal += engine.fired
    return graph
