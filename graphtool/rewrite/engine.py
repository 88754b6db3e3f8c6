"""Rewrite rules as equations, and the engine that applies them; the rules are in rules/.

    @rule(lambda x, p, q: transpose(transpose(x, perm=p), perm=q))
    def merge_transposes(x, p, q):
        "(xᵖ)ᑫ = x^(p∘q)"
        return transpose(x, perm=tuple(p[i] for i in q))

The left side is written in the op language. A parameter matches any operand or attribute; a
parameter that occurs twice must match equal operands. A literal matches an equal literal; an
attribute that is left out must have its default; commutative ops match in both orders. A right side
that returns None declines.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.assume import EXACT, Assumes, Needs, Soundness, several
from graphtool.assume.tiers import Tier, reaches, recorded
from graphtool.errors import InputError, InternalError
from graphtool.io.weights import Weight
from graphtool.ir.facets import Trait
from graphtool.ir.graph import (
    Graph,
    Node,
    Operand,
    TensorType,
    Value,
    is_constant,
    names_of,
    use_counts,
)
from graphtool.ir.op import OPS, Op, complete_attrs, named
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.text import expression
from graphtool.ir.trace import Builder, Tracer, infer
from graphtool.plugins import broke
from graphtool.rewrite.journal import Fired, Journal
from graphtool.rewrite.patterns import MATCHED, Applied, Env, Look, match_node, pattern

Array = np.ndarray[Any, Any]
_DEPTH = 32  # rules that fire within what a rule produced
_ROUNDS = 16


# ---- rules -------------------------------------------------------------------------------------

@dataclass(frozen=True, eq=False)
class Rule:
    """One equation, or one function over several ops, in which case `pattern` is None.

    It `needs` all of these classes; where it also needs a class of `may`, it returns an `Assumes`.
    `tier` is how sure it is that the rule is right.
    """

    name: str
    roots: tuple[Op, ...]
    fn: Callable[..., Any]
    pattern: Applied | None
    once: bool
    doc: str
    needs: tuple[Soundness, ...] = ()
    may: tuple[Soundness, ...] = ()
    tier: Tier = "tested"

    @property
    def key(self) -> str:
        """The module and name, by which the proof of a rule is found."""
        return f"{self.fn.__module__}.{self.name}"


def rule(equation: Callable[..., Any], *, needs: Needs = (), may: Needs = (),
         once: bool = False, tier: Tier | None = None) -> Callable[[Callable[..., Any]], Rule]:
    """Declare `equation = fn`. With `once`, only the match itself may read its inner values. By
    default the tier is that of the recorded proof, if there is one."""
    names = list(inspect.signature(equation).parameters)
    left = pattern(equation)

    def declare(fn: Callable[..., Any]) -> Rule:
        name = getattr(fn, "__name__", "rule")
        if list(inspect.signature(fn).parameters) != names:
            raise InternalError("GT7603", f"rule {name}: the sides differ in their parameters")
        return _proved(Rule(name, (left.op,), fn, left, once, inspect.getdoc(fn) or "",
                            several(needs), several(may)), tier)
    return declare


def _proved(r: Rule, tier: Tier | None) -> Rule:
    return replace(r, tier=recorded(r.key) if tier is None else tier)


def family_rule(*roots: Op | str, needs: Needs = (), may: Needs = (), tier: Tier | None = None,
                ) -> Callable[[Callable[..., Any]], Rule]:
    """Declare a rule over several ops: `fn(op, xs, attrs, type)`; xs are tracers and literals.

    Raises InputError GT0401 for a name that no op has.
    """
    ops = tuple(named(r) if isinstance(r, str) else r for r in roots)

    def declare(fn: Callable[..., Any]) -> Rule:
        return _proved(Rule(getattr(fn, "__name__", "rule"), ops, fn, None, False,
                            inspect.getdoc(fn) or "", several(needs), several(may)), tier)
    return declare


def with_trait(trait: Trait) -> tuple[Op, ...]:
    """The ops that have a trait, for `family_rule`."""
    return tuple(op for op in OPS.values() if trait in op.traits)


# ---- what a right side may ask about its operands ----------------------------------------------

def producer(x: Any) -> Node | None:
    """The node that made a tracer's value; None for inputs of the graph, and for literals."""
    return x.builder.made_by.get(x.value) if isinstance(x, Tracer) else None


def array_of(x: Any, params: bool = False) -> Array | None:
    """The elements of a constant; None for others, and for trained parameters without `params`."""
    node = producer(x)
    if not is_constant(node) or (node.attrs["param"] and not params):
        return None
    data: Weight = node.attrs["data"]
    return data.source


def number_of(x: Any) -> float | None:
    """The number of a literal or of a constant of one element; None for anything else."""
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
    """True for an int or a float literal, not for a bool."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)


# ---- the engine --------------------------------------------------------------------------------

Attempt = Callable[[Op, tuple[Operand, ...], Mapping[str, Any], TensorType, "Emitter"], Any]


@dataclass(eq=False)
class Emitter:
    """The builder that a rule sees: rules are also applied to the nodes that the rule emits."""

    builder: Builder
    attempt: Attempt
    uses: Mapping[Value, int] = field(default_factory=dict)
    depth: int = 0

    @property
    def made_by(self) -> dict[Value, Node]:
        """The node that made each value, as in the builder."""
        return self.builder.made_by

    def operand(self, x: Any) -> Operand:
        """The operand for a tracer, a value or a literal, as in the builder."""
        return self.builder.operand(x)

    def wrap(self, x: Any) -> Any:
        """A tracer of a value, so that rules can apply ops to it; literals stay as they are."""
        return Tracer(x, self) if isinstance(x, Value) else x  # type: ignore[arg-type]

    def constant(self, array: Array | Weight, hint: str = "", param: bool = False,
                 of: tuple[str, ...] = ()) -> Any:
        """A tracer of a new constant."""
        return self.wrap(self.builder.constant(array, hint, param, of).value)

    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any], hint: str = "") -> Any:
        """Emits a node, or what a rule makes of it; nested at most 32 deep."""
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
    index: Mapping[Op, Sequence[Rule]]
    may: frozenset[Soundness]
    uses: Mapping[Value, int]
    journal: Journal
    seen: Callable[[Look], Look]
    fired: list[Fired] = field(default_factory=list)

    @property
    def spent(self) -> bool:
        limit = self.journal.limit
        return limit is not None and len(self.journal) + len(self.fired) >= limit

    def visit(self, node: Node, inputs: tuple[Operand, ...], builder: Builder) -> Any:
        if node.op not in self.index or len(node.outputs) != 1:
            return None
        result = self.attempt(node.op, inputs, node.attrs, node.outputs[0].type,
                              Emitter(builder, self.attempt, self.uses))
        return None if result is None else (result.value,)

    def attempt(self, op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any],
                type: TensorType, emitter: Emitter) -> Any:
        for r in self.index.get(op, ()):
            if self.spent:
                return None
            if self.journal.without == (r.name, emitter.builder.prefix):
                continue
            for env in self.candidates(r, op, inputs, attrs, emitter):
                names = emitter.builder.of  # of the other nodes that the rule replaces too
                matched = [emitter.made_by[v] for v in env.get(MATCHED, ())]
                start = len(emitter.builder.nodes)
                emitter.builder.of = tuple(dict.fromkeys((*names_of(*matched), *names)))
                try:
                    result = self.right_side(r, op, inputs, attrs, type, env, emitter)
                    if result is not None and self.allows(r, result):
                        accepted = self.accept(r, env, result, type, emitter)
                        if self.journal.texts:
                            self.tell(op, inputs, attrs, matched, accepted, emitter.builder, start)
                        return accepted
                except InputError:  # sizes that are not known well enough, mostly
                    pass
                finally:
                    emitter.builder.of = names
        return None

    def tell(self, op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any],
             matched: list[Node], result: Any, builder: Builder, start: int) -> None:
        """Add the place and the expressions to the last entry: what was matched, and what the nodes
        from `start` on compute."""
        was = Node(op, inputs, attrs, ())
        inside = {v: n for n in matched for v in n.outputs}
        fresh = {v: n for n in builder.nodes[start:] for v in n.outputs}
        node = fresh.get(result.value)
        self.fired[-1] = replace(self.fired[-1], where=builder.where,
                                 was=expression(was, inside),
                                 became=expression(node, fresh) if node else result.value.hint)

    def candidates(self, r: Rule, op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any],
                   emitter: Emitter) -> Iterator[Env]:
        if r.pattern is None:
            yield {}
            return
        for env in match_node(r.pattern, op, inputs, attrs, {}, self.seen(emitter.made_by.get)):
            # a value made in this round has no count yet: the next round knows it
            if not r.once or all(self.uses.get(v) == 1 for v in env.get(MATCHED, ())):
                yield env

    @staticmethod
    def right_side(r: Rule, op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any],
                   type: TensorType, env: Env, emitter: Emitter) -> Any:
        if r.pattern is None:
            return r.fn(op, tuple(map(emitter.wrap, inputs)), attrs, type)
        return r.fn(**{k: emitter.wrap(v) for k, v in env.items() if k != MATCHED})

    def allows(self, r: Rule, result: Any) -> bool:
        """Whether what the result assumes may be assumed."""
        if isinstance(result, Assumes) and result.needs not in r.may:
            raise broke("rule", [r.name], InternalError(
                "GT7605", f"rule {r.name} assumes {result.needs}, and does not declare it"))
        if isinstance(result, Assumes) and result.needs not in self.may:
            return False
        if not reaches(r.tier, self.journal.proofs):
            self.journal.left_out[r.name] = None
            return False
        return True

    def accept(self, r: Rule, env: Env, result: Any, type: TensorType, emitter: Emitter) -> Any:
        """The result in the type of the replaced value; a smaller shape is broadcast to it."""
        needs, why = r.needs, r.doc.partition("\n")[0]
        if isinstance(result, Assumes):
            result, needs, why = result.value, (*needs, result.needs), result.why
        if isinstance(result, (bool, int, float)):  # 1 · x with a literal for x
            result = emitter.constant(np.full((1,) * type.rank, result, type.dtype.numpy))
        inferred = result.type
        try:
            if inferred.dtype is type.dtype and inferred.shape != type.shape:
                result = o.broadcast(result, shape=type.shape)
        except InputError:
            pass
        if result.type != type:
            raise broke("rule", [r.name], InternalError(
                "GT7604", f"rule {r.name} turned {type} into {inferred}"))
        name = emitter.builder.prefix
        self.fired.append(Fired(r.name, needs, (
            name, *(v.hint for v in env.get(MATCHED, ()))), result.value.hint, why, tier=r.tier))
        return result


def stated(module: str) -> list[Rule]:
    """The rules that a module states, in the order in which they stand there."""
    return [r for r in vars(sys.modules[module]).values()
            if isinstance(r, Rule) and r.fn.__module__ == module]


def index_rules(rules: Sequence[Rule], may: frozenset[Soundness]) -> dict[Op, list[Rule]]:
    """The rules that need only allowed classes, by the op at their root."""
    index: dict[Op, list[Rule]] = {}
    for r in rules:
        for root in r.roots if may.issuperset(r.needs) else ():
            index.setdefault(root, []).append(r)
    return index


def apply_rules(graph: Graph, rules: Sequence[Rule],
                may: frozenset[Soundness] = EXACT, journal: Journal | None = None,
                seen: Callable[[Look], Look] = lambda look: look) -> Graph:
    """The graph after rules that need what they `may`; patterns look at it through `seen`."""
    index = index_rules(rules, may)
    journal = Journal() if journal is None else journal
    for _ in range(_ROUNDS):
        engine = _Engine(index, may, use_counts(graph), journal, seen)
        new = rebuild(graph, engine.visit)
        if not engine.fired:
            break
        graph = prune(new)
        journal += engine.fired
    return graph
