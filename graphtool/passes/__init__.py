"""The passes: one flat table in pipeline order, and the driver that runs, verifies and times them.

A pass is `Graph -> Graph` (the driver recurses into regions) or, where it changes the table of
symbols, `Module -> Module`; its first annotation says which.
"""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from graphtool.errors import GraphtoolError, InternalError, UsageError
from graphtool.ir.graph import Graph, Module, Node
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.verify import verify_module
from graphtool.passes.amp import amp
from graphtool.passes.arguments import PassCall, checked, parse
from graphtool.passes.chunk import chunk
from graphtool.passes.cse import cse
from graphtool.passes.dce import dce
from graphtool.passes.decompose import decompose
from graphtool.passes.distribute import distribute
from graphtool.passes.fold import fold
from graphtool.passes.freeze import freeze
from graphtool.passes.fuse import fuse
from graphtool.passes.integer import integer
from graphtool.passes.layout import layout
from graphtool.passes.recognise import recognise
from graphtool.passes.remat import remat
from graphtool.passes.select import select
from graphtool.passes.simplify import simplify
from graphtool.passes.specialize import specialize
from graphtool.passes.unroll import unroll
from graphtool.rewrite.engine import Fired, Journal


@dataclass(frozen=True)
class Pass:
    """A row of the table. `default` says whether the row is part of the default pipeline, and
    `arguments` what it is called with there.
    """

    name: str
    function: Callable[..., Any]
    reason: str
    default: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)


PASSES: tuple[Pass, ...] = (
    Pass("amp", amp, "casts of parameters are there for fold, and gradients have their names",
         default=False),
    Pass("distribute", distribute, "the gradients have their names only in what `grad` has written",
         default=False),
    Pass("specialize", specialize, "bound sizes let everything below decide more", default=False),
    Pass("remat", remat, "what to keep is chosen of what was written, kernels are not known yet",
         default=False),
    Pass("dce", dce, "no later pass should look at what nobody reads"),
    Pass("simplify", simplify, "importers are literal: most of what they add undoes itself"),
    Pass("integer", integer, "quantised weights are as they were stored, until fold widens them"),
    Pass("fold", fold, "shape arithmetic and masks become constants"),
    Pass("unroll", unroll, "a few small turns are quicker as straight code, once sizes are known"),
    Pass("recognise", recognise, "what exporters took apart has better kernels whole"),
    Pass("freeze", freeze, "batch norm and scales join the weights before these are packed"),
    Pass("cse", cse, "parameters that were equal by chance are constants now"),
    Pass("decompose", decompose, "lowering knows primitives and the composites with a kernel",
         arguments={"placed": False}),
    Pass("simplify", simplify, "decompositions meet literals and axes of size 1"),
    Pass("fold", fold, "constants that decompositions brought in"),
    Pass("integer", integer, "scales and biases are constants now: those of neighbours join"),
    Pass("cse", cse, "decompositions of siblings share their parts"),
    Pass("chunk", chunk, "what is in the loop gets its layout and its kernels for a chunk"),
    Pass("layout", layout, "convolution and pooling are fast with channels last"),
    Pass("simplify", simplify, "most of the transposes that layout made meet their inverse"),
    Pass("fold", fold, "constants are laid out now, not at run time"),
    Pass("select", select, "contractions become the ops of the kernels, their weights packed; "
         "composites that waited for their layout are opened"),
    Pass("simplify", simplify, "reshapes around the kernels meet"),
    Pass("fold", fold, "packing constant weights happens here"),
    Pass("cse", cse, "equal packed weights, equal paddings"),
    Pass("dce", dce, "what the kernels do not read"),
    Pass("fuse", fuse, "last: it describes the nodes as they are"),
)

ORDER: tuple[tuple[str, str, str], ...] = (
    ("amp", "distribute", "all processes must see the same overflow: it is looked for behind"),
    ("recognise", "decompose", "decompose would undo it, and the patterns have composites in them"),
    ("integer", "fold", "folded weights are floats: nobody sees that they were quantised"),
    ("freeze", "decompose", "batch norm and linear are easier to join whole"),
    ("decompose", "layout", "layouts are chosen for the ops that remain"),
    ("unroll", "chunk", "unroll would write the loop out again"),
    ("chunk", "select", "target ops have no rule for fewer examples"),
    ("layout", "select", "kernels are chosen for a layout"),
    ("select", "fuse", "a group has one template, so templates must be known"),
    ("simplify", "fuse", "any change of nodes drops the groups"),
    ("fold", "fuse", "any change of nodes drops the groups"),
    ("cse", "fuse", "any change of nodes drops the groups"),
)


@dataclass(frozen=True)
class PassReport:
    """What one run of a pass did: seconds, how many nodes came and went out, the rules it fired."""

    call: PassCall
    seconds: float
    before: int
    after: int
    journal: tuple[Fired, ...]

    @property
    def name(self) -> str:
        return self.call.name


def functions() -> dict[str, Callable[..., Any]]:
    """The passes by name, in order of their first row."""
    return {p.name: p.function for p in PASSES}


def check_order(names: Sequence[str], error: type[GraphtoolError] = UsageError) -> None:
    """Raises where ORDER wants one of the passes before another: the first runs are compared."""
    for earlier, later, reason in ORDER:
        if earlier in names and later in names and names.index(earlier) > names.index(later):
            raise error("GT0604", f"{earlier} must run before {later}", hint=reason)


check_order([p.name for p in PASSES], InternalError)


def run(module: Module, passes: str | Sequence[str | PassCall] | None = None, *,
        verify: bool = True, after: Callable[[PassReport, Module], None] | None = None,
        supply: Mapping[str, Any] | None = None) -> Module:
    """The module after the passes (the default pipeline if none are named).

    `verify` checks it after each one; `after` sees each report and result; `supply` fills the
    parameters that the driver gives (`target`). Raises UsageError GT060x for unknown passes or
    arguments and for an illegal order, InternalError GT71xx where a pass broke the graph.
    """
    for call in calls(passes):
        journal, notes = Journal(), dict[str, str]()
        start = time.perf_counter()
        result = _apply(call, module, {"journal": journal, "notes": notes, **(supply or {})})
        report = PassReport(call, time.perf_counter() - start, len(module.graph.nodes),
                            len(result.graph.nodes), tuple(journal))
        if verify and result.graph is not module.graph:
            _verify(call, result)
        if journal or notes:
            result = dataclasses.replace(result, history=_told(result, call.name, journal, notes))
        module = result
        if after:
            after(report, module)
    return module


def _told(module: Module, name: str, journal: Sequence[Fired],
          notes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The rules that made each value that is still there, as `pass.rule`, and the notes on it, as
    `pass: words`: a value has its root's name, or one that begins with it.
    """
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


def roots(name: str) -> list[str]:
    """The names that `a.b.c` was called after: a, a.b, and itself."""
    words = name.split(".")
    return [".".join(words[:i + 1]) for i in range(len(words))]


def calls(passes: str | Sequence[str | PassCall] | None = None) -> list[PassCall]:
    """The calls that a list or a text of passes stands for, in a legal order."""
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
    parameters = inspect.signature(function).parameters
    given = {k: v for k, v in supply.items() if k in parameters} | dict(call.arguments)
    missing = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY
               and p.default is p.empty and p.name not in given]
    if missing:
        raise UsageError("GT0609", f"the pass {call.name} needs {', '.join(missing)}")
    if get_type_hints(function)[next(iter(parameters))] is Module:
        result: Module = function(module, **given)
        return result
    graph = in_regions(module.graph, lambda g: function(g, **given))
    if graph is module.graph:
        return module
    precision = getattr(given.get("rules"), "precision", "default")
    meta = module.meta if precision == "default" else {**module.meta, "precision": precision}
    return dataclasses.replace(module, graph=graph, meta=meta)


def in_regions(graph: Graph, function: Callable[[Graph], Graph]) -> Graph:
    """The pass on every region, innermost first, then on the graph itself."""
    nodes, changed = [], False
    for node in graph.nodes:
        regions = {k: in_regions(a, function) for k, a in node.attrs.items()
                   if isinstance(a, Graph)}
        if any(node.attrs[k] is not g for k, g in regions.items()):
            changed = True
            node = Node(node.op, node.inputs, {**node.attrs, **regions}, node.outputs, node.where)
        nodes.append(node)
    return function(Graph(graph.inputs, tuple(nodes), graph.outputs) if changed else graph)


def _verify(call: PassCall, module: Module) -> None:
    try:
        verify_module(module)
    except GraphtoolError as error:
        error.where = f"after the pass {call}" + (f"\n{error.where}" if error.where else "")
        raise
