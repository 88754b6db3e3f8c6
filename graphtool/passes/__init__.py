"""The passes: one flat table in pipeline order, and the driver that runs, verifies and times them.

A pass is `Graph -> Graph`, and the driver applies it to regions too. A pass that changes the table
of symbols is `Module -> Module`. The annotation of the first parameter says which.
"""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache as remembered
from typing import Any, get_type_hints

from graphtool.assume import joined
from graphtool.assume.tiers import Tier, reaches
from graphtool.errors import GraphtoolError, InternalError, UsageError
from graphtool.ir.graph import Module
from graphtool.ir.replay import carried, in_regions
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.verify import verify_module
from graphtool.kernels.choice.rules import Rules
from graphtool.passes.amp import amp
from graphtool.passes.arguments import PassCall, checked, form, parse
from graphtool.passes.cache import cache
from graphtool.passes.chunk import chunk
from graphtool.passes.claims import check_claims, claims, refuse, roots
from graphtool.passes.cse import cse
from graphtool.passes.dce import dce
from graphtool.passes.decompose import decompose
from graphtool.passes.distribute import distribute
from graphtool.passes.fold import fold
from graphtool.passes.freeze import freeze
from graphtool.passes.fuse import fuse
from graphtool.passes.integer import integer
from graphtool.passes.kept import keeps_terms
from graphtool.passes.layout import layout
from graphtool.passes.quantise import quantise
from graphtool.passes.recognise import recognise
from graphtool.passes.remat import remat
from graphtool.passes.select import select
from graphtool.passes.simplify import simplify
from graphtool.passes.specialize import specialize
from graphtool.passes.step import step
from graphtool.passes.stream import stream
from graphtool.passes.tabulate import tabulate
from graphtool.passes.unroll import unroll
from graphtool.plugins import broke
from graphtool.rewrite.journal import Fired, Journal


@dataclass(frozen=True)
class Pass:
    """A row of the table. `default` says whether the row is part of the default pipeline;
    `arguments` are the arguments it gets there. `tier` is that of what the pass does itself; its
    rules have tiers of their own. With `keeps_terms` the driver checks after each run that the
    outputs are the same terms, where proofs are asked for."""

    name: str
    function: Callable[..., Any]
    reason: str
    default: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)
    tier: Tier = "tested"
    keeps_terms: bool = False


# What a pass does itself is proved where it only applies rules; where it computes what the
# evaluator or the definition of an op says, which is what a graph means; and where the driver
# checks each run.
PASSES: list[Pass] = [
    Pass("amp", amp, "It comes before fold, which then casts constant parameters at compile time; "
         "and before freeze, which drops the marks of gradients.", default=False),
    Pass("distribute", distribute, "It finds gradients by their marks, which freeze drops.",
         default=False),
    Pass("specialize", specialize, "With known sizes every later pass can decide more.",
         default=False,
         tier="proved"),
    Pass("cache", cache, "It looks for an input joined with new elements, as the model's author "
         "wrote it; later passes join more.", default=False),
    Pass("remat", remat, "It chooses among the values that the model's author wrote; after later "
         "passes these are split, merged or tied to kernels.", default=False),
    Pass("quantise", quantise, "It rounds the weights that the author wrote, not packed ones; and "
         "`integer` must still find the integers.", default=False),
    Pass("step", step, "It looks for layers over the frames of a window, as the model's author "
         "wrote them; and the rows that it keeps are those of the quantised values.",
         default=False),
    Pass("dce", dce, "Later passes should not spend time on nodes that no output needs.",
         tier="proved", keeps_terms=True),
    Pass("simplify", simplify, "Importers translate node by node, so many of the nodes they add "
         "cancel each other; later passes see plainer patterns without them.",
         tier="proved"),
    Pass("integer", integer, "It must see quantised weights as integers; fold would turn them into "
         "floats.",
         tier="proved"),
    Pass("fold", fold, "Shapes and masks computed from constants become constants, which later "
         "passes can read.",
         tier="proved"),
    Pass("unroll", unroll, "After fold the trip counts are known; a short loop with a small body "
         "runs faster as straight code."),
    Pass("recognise", recognise, "Exporters write softmax, layer norm or attention as many small "
         "nodes; the whole composite has a faster kernel. Its patterns are simplified graphs.",
         tier="proved"),
    Pass("freeze", freeze, "It multiplies batch norm and scales into the weights, which must "
         "happen before the weights are packed for a kernel.",
         tier="proved"),
    Pass("cse", cse, "After freeze parameters are constants, so equal ones can be merged.",
         tier="proved", keeps_terms=True),
    Pass("decompose", decompose, "Lowering knows primitives and the composites that have a kernel; "
         "every other composite is replaced by its definition. Those whose definition depends on "
         "the order of the axes wait for layout.", arguments={"layout_dependent": False},
         tier="proved"),
    Pass("simplify", simplify, "Definitions of composites are general; with literal operands and "
         "axes of size 1 much of them cancels.",
         tier="proved"),
    Pass("fold", fold, "It evaluates the constants that decompositions brought in.",
         tier="proved"),
    Pass("integer", integer, "Scales and biases are constants by now, so those of neighbouring "
         "products can be joined.",
         tier="proved"),
    Pass("cse", cse, "Composites on the same operand decompose into equal nodes, which are "
         "computed once.",
         tier="proved", keeps_terms=True),
    Pass("chunk", chunk, "Layout and select then choose for the size of a chunk, not of the whole "
         "batch."),
    Pass("layout", layout, "Convolution and pooling are faster with channels last."),
    Pass("simplify", simplify, "Layout puts transposes around each convolution; most of them "
         "cancel with their neighbour's.",
         tier="proved"),
    Pass("fold", fold, "Constants are transposed at compile time, not at each run.",
         tier="proved"),
    Pass("select", select, "It replaces contractions by the ops of the kernels, which read packed "
         "weights; and it decomposes the composites that waited for layout."),
    Pass("simplify", simplify, "Reshapes before and after neighbouring kernels cancel.",
         tier="proved"),
    Pass("fold", fold, "It packs constant weights at compile time.",
         tier="proved"),
    Pass("cse", cse, "Kernels that read the same weights or padded input share one copy.",
         tier="proved", keeps_terms=True),
    Pass("dce", dce, "Nodes that only the replaced contractions read are dead now.",
         tier="proved", keeps_terms=True),
    Pass("stream", stream, "It counts the bytes of the images that the chosen kernels read, and "
         "its loop would hide the layers from the passes before."),
    Pass("tabulate", tabulate, "Earlier it would hide activations from the passes that look for "
         "them, and a table has no order of axes that layout could move."),
    Pass("fuse", fuse, "It describes the nodes as they are, so it comes last.",
         tier="proved", keeps_terms=True),
]

ORDER: list[tuple[str, str, str]] = [
    ("amp", "distribute", "every process must see the same overflow, so what amp adds to look for "
                          "it must read the averaged gradients"),
    ("quantise", "integer", "integer looks for the products that quantise makes"),
    ("recognise", "decompose", "decompose takes apart what recognise has found, and recognise's "
                               "patterns contain composites"),
    ("integer", "fold", "fold turns quantised weights into floats, and integer no longer finds "
                        "them"),
    ("freeze", "decompose", "freeze joins whole batch norms and linear layers, not their parts"),
    ("decompose", "layout", "layout chooses an order of axes for the ops that are left"),
    ("unroll", "chunk", "unroll could replace the loop that chunk makes"),
    ("chunk", "select", "chunk cannot divide the batch of the ops that select inserts"),
    ("layout", "select", "select chooses kernels for a given order of axes"),
    ("select", "fuse", "a group holds at most one kernel, so fuse must know the kernels"),
    ("layout", "tabulate", "layout cannot move an order of axes through a table"),
    ("select", "stream", "the loop consists of the kernels that select chooses"),
    ("stream", "fuse", "a change of the nodes drops the groups"),
    ("tabulate", "fuse", "a change of the nodes drops the groups"),
    ("simplify", "fuse", "a change of the nodes drops the groups"),
    ("fold", "fuse", "a change of the nodes drops the groups"),
    ("cse", "fuse", "a change of the nodes drops the groups"),
]


@dataclass(frozen=True)
class PassReport:
    """What one run of a pass did: seconds, the number of nodes before and after, the rules that
    fired; and what was `left_out` for its tier of proof: rules, or the pass itself."""

    call: PassCall
    seconds: float
    before: int
    after: int
    journal: tuple[Fired, ...]
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the pass, without its arguments."""
        return self.call.name


def functions() -> dict[str, Callable[..., Any]]:
    """The passes by name, in the order of their first row."""
    return {p.name: p.function for p in PASSES}


def check_order(names: Sequence[str], error: type[GraphtoolError] = UsageError) -> None:
    """Raise an error if ORDER needs one of the passes before another; the first run of each
    counts."""
    for earlier, later, reason in ORDER:
        if earlier in names and later in names and names.index(earlier) > names.index(later):
            raise error("GT0604", f"{earlier} must run before {later}", hint=reason)


check_order([p.name for p in PASSES], InternalError)


def run(module: Module, passes: str | Sequence[str | PassCall] | None = None, *,
        verify: bool = True, after: Callable[[PassReport, Module], None] | None = None,
        supply: Mapping[str, Any] | None = None, texts: bool = False) -> Module:
    """The module after the passes (the default pipeline if none are named).

    `verify` checks it after each one; `after` gets each report and result; `supply` has the
    parameters that the driver provides (`target`); with `texts` the journals of the reports have
    expressions. Raises UsageError GT060x for unknown passes or
    arguments and for an illegal order, InputError GT0636 for a module that assumes more than the
    rules in `supply` allow, InternalError GT71xx if a pass made the graph invalid.
    """
    rules = (supply or {}).get("rules")
    if rules is not None:
        refuse(module, rules)
    least: Tier = rules.proofs if rules is not None else "tested"
    for call, taken in gated(calls(passes), least):
        if not taken:
            if after:
                nodes = len(module.graph.nodes)
                after(PassReport(call, 0.0, nodes, nodes, (), (call.name,)), module)
            continue
        journal: Journal = (supply or {}).get("journal", Journal(texts=texts, proofs=least))
        notes, choices = dict[str, str](), dict(module.choices)
        start = time.perf_counter()
        result = _apply(call, module, {"journal": journal, "notes": notes, "choices": choices,
                                       **(supply or {})})
        report = PassReport(call, time.perf_counter() - start, len(module.graph.nodes),
                            len(result.graph.nodes), tuple(journal),
                            tuple(f"{call.name}.{name}" for name in journal.left_out))
        assumed = tuple(claims(call.name, journal))
        if assumed:
            result = dataclasses.replace(result, assumes=joined((*result.assumes, *assumed)))
        if journal or notes:
            history = _history(result, call.name, journal, notes)
            result = dataclasses.replace(result, history=history)
        if choices and result.graph is not module.graph:
            result = dataclasses.replace(result, choices=carried(result.graph, choices))
        if verify and result.graph is not module.graph:
            _verify(call, module, result, journal, rules)
        if least != "tested":
            _check_terms(call, module, result)
        module = result
        if after:
            after(report, module)
    return module


def gated(wanted: Sequence[PassCall], least: Tier) -> list[tuple[PassCall, bool]]:
    """The calls, each with whether its pass reaches a tier of proof. If no kernels are selected,
    because `select` does not, every composite is replaced by its definition."""
    tiers = {p.name: p.tier for p in reversed(PASSES)}
    plain = not reaches(tiers.get("select", "proved"), least)
    return [(dataclasses.replace(c, arguments={"keep": ()}) if plain and c.name == "decompose"
             else c, reaches(tiers[c.name], least)) for c in wanted]


def _history(module: Module, name: str, journal: Sequence[Fired],
             notes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each value that still exists, the rules that made it, as `pass.rule`, and the notes on
    it, as `pass: words`. A value belongs to a name if it has the name's root, or a name that
    begins with it."""
    history = dict(module.history)
    for fired in journal:
        value, rule = fired.matched[0], f"{name}.{fired.rule}"
        before = history.get(value, ())
        if before[-1:] != (rule,):
            history[value] = (*before, rule)
    for value, words in notes.items():
        history[value] = (*history.get(value, ()), f"{name}: {words}")
    alive = {root for n in all_nodes(module.graph) for v in n.outputs for root in roots(v.hint)}
    return {value: rules for value, rules in history.items() if value in alive}


def calls(passes: str | Sequence[str | PassCall] | None = None) -> list[PassCall]:
    """The pass calls in a list or a text, in a legal order."""
    known = functions()
    if passes is None:
        return [PassCall(p.name, p.arguments) for p in PASSES if p.default]
    out: list[PassCall] = []
    for item in (passes,) if isinstance(passes, str) else passes:
        out += parse(item, known) if isinstance(item, str) else [
            checked(item.name, item.arguments, known)]
    check_order([c.name for c in out])
    return out


def _apply(call: PassCall, module: Module, supply: Mapping[str, Any]) -> Module:
    function = functions()[call.name]
    parameters, of_module = _signature(function)
    given = {k: v for k, v in supply.items() if k in parameters} | dict(call.arguments)
    missing = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY
               and p.default is p.empty and p.name not in given]
    if missing:
        raise UsageError("GT0609", f"the pass {call.name} needs {', '.join(missing)}",
                         hint=f"{call.name}{{{form(function)}}}")
    if of_module:
        result: Module = function(module, **given)
        return result
    graph = in_regions(module.graph, lambda g: function(g, **given))
    if graph is module.graph:
        return module
    rules = given.get("rules")
    meta = {**module.meta, **(rules.marks if rules else {})}
    return dataclasses.replace(module, graph=graph, meta=meta)


@remembered
def _signature(function: Callable[..., Any]) -> tuple[Mapping[str, inspect.Parameter], bool]:
    """The parameters of a pass, and whether it takes a module, which its annotation says."""
    parameters = inspect.signature(function).parameters
    return parameters, get_type_hints(function).get(next(iter(parameters))) is Module


def _check_terms(call: PassCall, before: Module, module: Module) -> None:
    """Raises InternalError GT7116 if a pass changed a term and may not."""
    if any(p.name == call.name and p.keeps_terms for p in PASSES) and not keeps_terms(
            before.graph, module.graph):
        raise broke("pass", [call.name], InternalError(
            "GT7116", f"the pass {call} changed what an output computes, and may only merge, "
                      "remove and group nodes"))


def _verify(call: PassCall, before: Module, module: Module, journal: Journal,
            rules: Rules | None) -> None:
    try:
        verify_module(module)
        check_claims(before, module, rules or Rules())
    except GraphtoolError as error:
        error.within(f"after the pass {call}")
        fault = broke("pass", [call.name], broke("rule", {f.rule for f in journal}, error))
        raise fault from error
