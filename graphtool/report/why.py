"""The reasons for a kernel: its alternatives, the rules that made its nodes, and why two nodes are
not in one kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from graphtool.assume import Assumed
from graphtool.errors import InputError, near
from graphtool.io.manifest_rows import AssumedRow, Choice, StepRow, ThreadsRow
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import (
    Graph,
    Group,
    Module,
    Node,
    Value,
    is_constant,
    kernel_label,
    names_of,
)
from graphtool.ir.plan import of_plan
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import value_names
from graphtool.loops.program import Run
from graphtool.passes.claims import roots
from graphtool.passes.fuse import Fuser

_ALONE = ("threads: one alone, as it has little to do, or no loop to share",)


class Rival(msgspec.Struct):
    """An alternative kernel, with its expected or measured time in microseconds."""

    kernel: str
    us: float


class Why(msgspec.Struct):
    """The reasons for one kernel. `by`: cost or tuned, empty without alternatives. `fused`: the
    nodes it computes. `rules`: the rules that made the node, in order. `notes`: other reasons.
    `assumes`: the classes of soundness that this needs, by what, and why."""

    name: str
    op: str
    site: str
    kernel: str
    by: str
    us: float
    rivals: list[Rival]
    fused: list[str]
    rules: list[str]
    at: str
    notes: list[str] = []
    assumes: list[str] = []


class WhyReport(msgspec.Struct):
    """`show --why --json`; schemas/why.schema.json is made from it."""

    precision: str
    kernels: list[Why]
    threads: str = ""  # what decides how many a run uses; a graph does not know yet


class WhyNot(msgspec.Struct):
    """`show --why-not-fused --json`; schemas/why-not-fused.schema.json is made from it."""

    a: str
    b: str
    fused: bool
    possible: bool
    reason: str


def _why(name: str, op: str, choice: Choice | None, fused: list[str], history: Iterable[str],
         at: str, assumes: list[str]) -> Why:
    """The reasons from a node's history, where rules are `pass.rule` and notes `pass: words`."""
    lines = list(history)
    rules = [one for one in lines if ": " not in one]
    notes = [one.partition(": ")[2] for one in lines if ": " in one]
    if choice is None:
        return Why(name, op, "", "", "", 0.0, [], fused, rules, at, notes, assumes)
    (best, us), *rest = choice.us.items()
    return Why(name, op, choice.site, best, choice.by, us, [Rival(c, t) for c, t in rest], fused,
               rules, at, notes, assumes)


def why_graph(module: Module, name: str | None = None) -> WhyReport:
    """The kernels of a graph that have alternatives or notes; with a name, the kernel of that node
    only.

    Raises InputError GT3093 for a name that no value has.
    """
    names = value_names(module.graph)
    groups = {n: g for g in module.graph.groups for n in g.members}
    rows, noted = [], _noted(module)
    wanted = _node(module.graph, name, ()) if name is not None else None
    for node in all_nodes(module.graph) if wanted is None else (wanted,):
        choice = _made(node, module)
        if wanted is None and choice is None and node not in noted:
            continue
        group = groups.get(node)
        fused = [_name(n, names) for n in group.members] if group else []
        if group and choice is None:  # what the group's template is
            choice = next(filter(None, (_made(n, module) for n in group.members)), None)
        at = module.locations.get(node.where)
        rules = [r for root in roots(node.outputs[0].hint) for r in module.history.get(root, ())]
        rows.append(_why(_name(node, names), node.op.name, choice, fused, rules,
                         at.at if at else node.where,
                         _claims(module.assumes, [node.outputs[0].hint])))
    return WhyReport(str(module.meta.get("precision", "default")), rows)


def _made(node: Node, module: Module) -> Choice | None:
    """The choice among alternatives that gave the node its plan; if unknown, the plan alone."""
    plan = node.attrs.get("plan")
    if plan is None:
        return None
    return of_plan(module.choices.get(node.outputs[0]), plan) or Choice("", "", {str(plan): 0.0})


def _noted(module: Module) -> set[Node]:
    """The nodes with notes that belong to no kernel with a plan."""
    nodes = [n for n in all_nodes(module.graph) if n.outputs]
    plans = {root for n in nodes if n.attrs.get("plan") for root in roots(n.outputs[0].hint)}
    noted = {v for v, lines in module.history.items() if any(": " in one for one in lines)} - plans
    return {n for n in nodes if n.outputs[0].hint in noted}


def _claims(rows: Iterable[Assumed | AssumedRow], names: Sequence[str]) -> list[str]:
    """What was assumed of values with these names, or with names that begin with one of them."""
    return [f"{r.needs}, by {r.by}: {r.why}" for r in rows
            if any(v in roots(n) or n in roots(v) for v in r.values for n in names)]


def why_steps(steps: Iterable[Run | StepRow], precision: str, name: str | None = None, *,
              threads: ThreadsRow | None = None, alone: Collection[str] = (),
              assumes: Sequence[Assumed | AssumedRow] = ()) -> WhyReport:
    """The same for a program or a build; a name is a kernel's, or that of a node in it. `alone` are
    the kernels that run on one thread, `assumes` what rewrites assumed."""
    rows = list(steps)
    if name is None:
        chosen = [s for s in rows if s.choice is not None]
    else:
        chosen = [s for s in rows if name == s.kernel or any(
            name == part or name.startswith(f"{part}.") for part in s.label.split(" + "))]
        if not chosen:
            raise _unknown(name, {w for s in rows for w in (s.kernel, *s.label.split(" + "))})
    return WhyReport(precision, [_why(s.label.split(" + ")[0], s.kernel, s.choice,
                                      s.label.split(" + "), _ALONE if s.kernel in alone else (),
                                      s.where, _claims(assumes, s.label.split(" + ")))
                                 for s in chosen],
                     _told_threads(threads) if threads else "")


def _told_threads(row: ThreadsRow) -> str:
    if row.most == 1:
        return "1: no kernel has a loop that is worth sharing"
    if isinstance(row.work, str):
        return (f"1, and another one for each {row.least:,} of {row.work} flops, up to {row.most}")
    most = min(row.most, 1 + row.work // row.least)
    return (f"{f'up to {most}' if most > 1 else most}: a second one pays from {row.least:,} flops "
            f"on, a third one from twice as many, and a run has {row.work:,}, bytes of weights "
            "counted in")


def why_not_fused(module: Module, a: str, b: str, steps: Iterable[StepRow] = ()) -> WhyNot:
    """The reasons why two nodes are in two kernels, by the rules of the pass `fuse`. A name is a
    node's, an author's, or a kernel's among the `steps` of a build.

    Raises InputError GT3093 for a name that no value has.
    """
    graph, rows = module.graph, list(steps)
    first, second = sorted((_node(graph, a, rows), _node(graph, b, rows)), key=graph.nodes.index)
    fuser = Fuser(graph)
    groups = graph.groups or fuser.run().groups
    of = {n: g for g in groups for n in g.members}
    together = of.get(first)
    if first is second or (together is not None and together is of.get(second)):
        kind = together.kind if together else "nest"
        return WhyNot(a, b, True, True, f"they are fused: one {kind} kernel computes both")
    fuser.taken = {n for g in groups for n in g.members}
    reason = _apart(fuser, first, second, of)
    if not reason:
        return WhyNot(a, b, False, True, "they could be: no rule forbids it, `graphtool opt "
                                         "--passes fuse` decides anew")
    return WhyNot(a, b, False, False, reason)


def _apart(fuser: Fuser, maker: Node, reader: Node, of: Mapping[Node, Group]) -> str:
    if not set(maker.outputs) & set(reader.inputs):
        return (f"{reader.outputs[0].hint} does not read {maker.outputs[0].hint}: a group grows "
                "from a node to those that it reads or that read it")
    if maker.op.lowering is Lowering.TEMPLATE or (maker in of and of[maker].kind == "template"):
        root = next((n for n in (of[maker].members if maker in of else (maker,))
                     if n.op.lowering is Lowering.TEMPLATE), maker)
        inside = set(of[maker].members) if maker in of else {maker}
        return fuser.left_out(reader, inside, root, root.outputs[0].type.shape)
    if reader.op.lowering is Lowering.TEMPLATE:
        return (f"{reader.op.name} reads its operands as they lie in memory: a template has an "
                "epilogue, and nothing runs before it")
    inside = set(of[reader].members) if reader in of else {reader}
    reason = fuser.kept_apart(maker, reader, inside)
    root = next((n for n in inside if reader in of and of[reader].root in n.outputs), reader)
    if not reason and maker in Fuser(fuser.graph).grown(root, set()):
        return ("the loops of the group would compute it, or what it is made of, several times "
                "for each element; to store it costs less")
    return reason


def _name(node: Node, names: Mapping[Value, str]) -> str:
    v = node.outputs[0]
    return names.get(v, v.hint)


def _node(graph: Graph, name: str, steps: Sequence[StepRow]) -> Node:
    names = value_names(graph)
    for node in graph.nodes:
        if any(names[v] == name for v in node.outputs):
            return node
    computing = [n for n in graph.nodes if not is_constant(n)]
    if match := _of_kernel(graph, computing, name, steps) or _authored(graph, computing, name):
        return match
    raise _unknown(name, {*names.values(), *names_of(*computing), *(s.kernel for s in steps)})


def _of_kernel(graph: Graph, nodes: Sequence[Node], kernel: str, steps: Sequence[StepRow]
               ) -> Node | None:
    """The node that a kernel computes, or its group's root; kernels of equal labels have them in
    order."""
    label = next((s.label for s in steps if s.kernel == kernel), None)
    fused, label_of = {n: g for g in graph.groups for n in g.members}, kernel_label(graph)
    matches = [n for n in nodes if (
        n not in fused and label_of([n]) == label) or (
        n in fused and fused[n].root in n.outputs and label_of(fused[n].members) == label)]
    same = list(dict.fromkeys(s.kernel for s in steps if s.label == label))
    return matches[min(same.index(kernel), len(matches) - 1)] if matches else None


def _authored(graph: Graph, nodes: Sequence[Node], name: str) -> Node | None:
    """Of the nodes that compute what the author named so, or that were made from a value of this
    name: the one with a plan, or else the last one, views left out if there are others."""
    matches = [n for n in nodes if name in n.of] or [
        n for n in nodes if any(v.hint.startswith(f"{name}.") for v in n.outputs)]
    matches = [n for n in matches if n.attrs.get("plan") is not None] or matches
    matches = [n for n in matches if n.op.lowering is not Lowering.VIEW] or matches
    return matches[-1] if matches else None


def _unknown(name: str, names: set[str]) -> InputError:
    return InputError("GT3093", f"there is no node or kernel {name!r}",
                      hint=near(name, sorted(names), "`graphtool show` lists them"))


def why_lines(report: WhyReport) -> list[str]:
    """One paragraph for each kernel."""
    out = [f"precision: {report.precision}"]
    out += [f"threads: {report.threads}"] if report.threads else []
    if not report.kernels:
        out += ["nothing was chosen among kernels here; of a graph, `graphtool opt` chooses them"]
    for k in report.kernels:
        out += ["", f"{k.name}  ({k.op}{', ' + k.at if k.at else ''})"]
        if k.kernel and not k.site:
            out.append(f"  kernel    {k.kernel}: over what it was chosen is not recorded")
        elif k.kernel:
            source = "measured by tune" if k.by == "tuned" else "expected by the cost model"
            out += [f"  computes  {k.site}", f"  kernel    {k.kernel}: {k.us:g} µs, {source}"]
            out += [f"  against   {r.kernel}: {r.us:g} µs" for r in k.rivals]
        elif not k.notes:
            out.append("  kernel    had no alternatives")
        out += [f"  because   {words}" for words in k.notes]
        out += [f"  assumes   {words}" for words in k.assumes]
        if len(k.fused) > 1:
            out.append(f"  fused     {', '.join(k.fused)}")
        if k.rules:
            out.append(f"  made by   {', '.join(k.rules)}")
    return out
