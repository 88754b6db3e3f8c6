"""Graph → Program: units become kernels, values get buffers, and the arena is planned."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.analysis.made_up import index_limits
from graphtool.dtypes import string
from graphtool.errors import InputError, Unsupported, UnsupportedError
from graphtool.io.manifest_rows import Choice
from graphtool.io.weights import layout
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import Graph, Module, Node, Value
from graphtool.ir.plan import of_plan
from graphtool.ir.run_sizes import all_nodes, at_most, defined, limits, unbounded
from graphtool.kernels.record import has_text
from graphtool.loops.contract import HOME
from graphtool.loops.dim_names import author_text, by_author
from graphtool.loops.liveness import lifetimes
from graphtool.loops.program import (
    ENDLESS,
    INDICES_OF,
    Bind,
    Buffer,
    Port,
    Program,
    Run,
    Step,
    flags,
    runs,
)
from graphtool.loops.sharing import sharing
from graphtool.lower.buffer_assignment import Assigner
from graphtool.lower.control import RegionLowering, control_steps
from graphtool.lower.donation import Donation, donation
from graphtool.lower.index_checks import IndexChecks, decisive, early
from graphtool.lower.kernel import KernelTable, Made, copy_kernel, fill_kernel, unit_kernel
from graphtool.lower.memory_plan import ALIGN, Barriers, plan_arena
from graphtool.lower.numbers import with_numbers
from graphtool.lower.places import with_places
from graphtool.lower.ranks import LOOPS
from graphtool.lower.rename_dims import one_name, own_names
from graphtool.lower.units import Unit, schedule, units
from graphtool.lower.views import Assignment, Copy, Edge, Storage, windowable
from graphtool.symbolic import Dim, Symbol, symbols
from graphtool.target import Target

__all__ = ["lower"]
Limits = Mapping[str, Dim | None]


def lower(module: Module, target: Target, *, name: str = "model",
          index_checks: bool = True) -> Program:
    """The program of a module for a target; with `index_checks` it finds indices out of range.

    Raises UnsupportedError GT2001 that lists every op without a lowering, with its source
    locations.
    """
    _refuse_unsupported(module, target.language)
    given = own_names(module)
    module = one_name(given)
    graph = module.graph
    bounds = limits(graph)
    places = {n: at.at for n, at in module.locations.items()}
    lowering = _Lowering(target, frozenset({*module.symbols, *bounds}), bounds, places,
                         module.choices, module.meta.get("precision") == "fast", index_checks)
    all_units = units_of(graph)
    donated = donation(module, all_units, decisive(graph, all_units))
    steps = lowering.graph(graph, all_units, donated)
    return _program(module, given.graph.inputs, name, target, lowering, steps, donated.donors)


def units_of(graph: Graph) -> list[Unit]:
    """The units of the graph: everything that becomes a kernel, a branch or a loop."""
    free = frozenset(n for n in graph.nodes if n.op.lowering in (Lowering.VIEW, Lowering.DATA)
                     or (n.op.lowering is Lowering.WINDOW and windowable(n)))
    grouped = frozenset(n for g in graph.groups for n in g.members)
    return units(graph, free - grouped)


class _Lowering:
    """The steps of a graph and its regions; they share kernels and buffers."""

    def __init__(self, target: Target, dims: frozenset[str], limits: Limits,
                 places: Mapping[str, str], choices: Mapping[Value, Choice],
                 excess: bool, index_checks: bool) -> None:
        self.index_checks = index_checks
        self.target, self.table = target, KernelTable(excess, target.language, target.grid)
        self.around = RegionLowering(self.region, self.copy, dims)
        self.buffers: dict[str, Storage] = {}
        self.limits, self.places = limits, places  # entry of the locations: place in the source
        self.choices = choices

    def region(self, graph: Graph, edge: Edge) -> tuple[Step, ...]:
        return self.graph(graph, units_of(graph), Donation(), edge)

    def graph(self, graph: Graph, all_units: list[Unit], given: Donation,
              edge: Edge | None = None) -> tuple[Step, ...]:
        assignment = Assigner(graph, all_units, given.donors, given.in_place, edge).run()
        self.buffers = assignment.buffers
        steps: list[Step] = []
        checks = IndexChecks(graph)
        for item in schedule(graph, all_units, given.after):
            if not isinstance(item, Unit):
                steps += self.copies(item, assignment)
                steps += self.bound(item, assignment)
            elif item.nodes[0].op.lowering is Lowering.CONTROL:
                steps += control_steps(item.nodes[0], assignment, self.around)
            else:
                if self.index_checks:
                    steps += [self.run(entry, label, where) for entry, label, where in
                              checks.of_unit(item, assignment, self.table)]
                steps += [self.run(entry, item.label, item.where, self.choice(item))
                          for entry in unit_kernel(item, assignment, self.target, self.table)]
        return (*early(steps, self.table.kernels, self.buffers), *self.copies(None, assignment))

    def bound(self, node: Node, assignment: Assignment) -> list[Step]:
        """The step that sets the size which a node defines; none for most nodes."""
        size = defined(node)
        if size is None:
            return []
        view = assignment.views[node.outputs[0]]
        most = self.limits[size.name]
        # ENDLESS is not a real bound: no buffer is so large
        most = ENDLESS if most is None else most
        return [Bind(size, view.buffer, view.offset, most, node.outputs[0].hint)]

    def located(self, label: str, check: str, steps: tuple[Step, ...]) -> str:
        """What a check says, with the place in the source that its step has."""
        step = next((s for s in runs(steps) if check in s.args), None)
        if step is None:
            return label
        return f"{label}, at {step.where or 'node ' + step.label.removeprefix(INDICES_OF)}"

    def choice(self, unit: Unit) -> Choice | None:
        """The alternatives that the plan of the unit's kernel was chosen from, if they are
        known."""
        node = next((n for n in unit.nodes if n.attrs.get("plan") is not None), None)
        return None if node is None else of_plan(self.choices.get(node.outputs[0]),
                                                 node.attrs["plan"])

    def run(self, entry: Made, label: str, where: str = "",
            choice: Choice | None = None) -> Run:
        kernel, args, _, flops = entry
        most = at_most(flops, self.limits)
        return Run(kernel.name, args, label, self.places.get(where, where),
                   0 if most is None else most, False, choice)

    def copies(self, node: Node | None, assignment: Assignment) -> list[Step]:
        copies = assignment.copies.get(node, [])
        edges = [c for c in copies if isinstance(c.source, float)]
        moves = [c for c in copies if not isinstance(c.source, float)]
        steps: list[Step] = [self.run(fill_kernel(edges, assignment, self.table), edges[0].label)] \
            if edges else []
        return steps + [self.copy(c, assignment) for c in moves]

    def copy(self, c: Copy, assignment: Assignment) -> Step:
        return self.run(copy_kernel(c, assignment, self.table), c.label)


def _refuse_unsupported(module: Module, language: str) -> None:
    missing: dict[tuple[str, str], list[str]] = {}
    for v in module.graph.inputs:
        if v.type.dtype is string:
            missing.setdefault(("input", _TEXT), []).append(v.hint)
    for node in all_nodes(module.graph):
        if why := _no_form(node) or _no_text(node, language):
            missing.setdefault((node.op.name, why), []).append(node.outputs[0].hint)
    if missing:
        items = tuple(Unsupported(op, why, tuple(places))
                      for (op, why), places in sorted(missing.items()))
        hint = "`graphtool opt` with its default passes decomposes composites"
        if all(i.reason != _FORMLESS for i in items):
            hint = "`graphtool eval` runs it; or leave the outputs that need this out of the model"
        raise UnsupportedError("GT2001", "the graph cannot be compiled", items, hint=hint)


_TEXT = "compiled code has no strings"
_FORMLESS = "has no form in compiled code"


def _no_form(node: Node) -> str:
    """Why the node cannot be compiled; empty if it can."""
    if any(x.type.dtype is string for x in (*node.inputs, *node.outputs) if isinstance(x, Value)):
        return _TEXT
    match node.op.lowering:
        case Lowering.EVALUATED:
            return "is evaluated only"
        case Lowering.NONE:
            return _FORMLESS
        case Lowering.CONTROL if node.attrs.get("bound") is not None:
            return _FORMLESS
    return ""


def _no_text(node: Node, language: str) -> str:
    """Why the node cannot be emitted in this language; empty if it can."""
    return "" if has_text(node.op, language) or node.op in LOOPS else (
        f"has no text in the language {language}")


def _program(module: Module, inputs: tuple[Value, ...], name: str, target: Target,
             lowering: _Lowering, steps: tuple[Step, ...], donors: Mapping[int, int]) -> Program:
    _make_room(lowering.buffers, module.graph, lowering.limits)
    kernels = lowering.table.kernels
    if target.language == HOME:
        kernels, steps = with_numbers(kernels, steps)
    elif target.devices:
        kernels, steps = with_places(kernels, steps)
    lives = lifetimes(steps)
    shared = {} if module.symbols or lowering.limits else sharing(
        {k.name: k for k in kernels}, steps, lives, target.lanes)
    offsets, arena = plan_arena(lowering.buffers, lives, target.align, shared)
    used = {a for s in runs(steps) for a in s.args} | set(flags(steps))
    held = {n: b for n, b in lowering.buffers.items() if b.weight is not None and n in used}
    at, _ = layout([b.weight for b in held.values() if b.weight is not None])
    buffers = {}
    for n, b in lowering.buffers.items():
        if n in used or b.space in ("input", "output"):
            offset = at[b.weight.digest] if b.weight is not None else offsets.get(n, 0)
            label = lowering.located(b.label, n, steps) if b.space == "check" else b.label
            buffers[n] = Buffer(n, b.dtype, b.size, b.space, offset, b.slot, label)
    steps = Barriers(kernels, buffers).steps(steps)
    below = {v: tuple(d for d in limits if {s.name for s in symbols(d)} <= module.symbols.keys())
             for v, limits in index_limits(module.graph).items()}
    return Program(
        name, _dims(module), tuple(_port(v, v.hint, below.get(v, ())) for v in inputs),
        tuple(_port(v, n) for v, n in zip(module.graph.outputs, module.output_names, strict=True)),
        tuple(buffers.values()), kernels, steps, arena, target.most_threads,
        tuple(donors.items()),
        tuple((n, b.weight.digest) for n, b in held.items() if b.weight is not None),
        {"target": target.march, "lanes": str(target.lanes),
         "machine": str(module.meta.get("machine", target.machine)),
         "precision": str(module.meta.get("precision", "default")),
         **({"assume": "normal"} if module.meta.get("assume") == "normal" else {}),
         **_grids(module, inputs),
         **({"align": str(target.align)} if target.align != ALIGN else {}),
         **({"language": target.language} if target.language != HOME else {}),
         **({"devices": ",".join(map(str, target.devices))} if target.devices else {}),
         "index_checks": "on" if lowering.index_checks else "off"}, module.requires,
        module.assumes)


def _make_room(buffers: Mapping[str, Storage], graph: Graph, limits: Limits) -> None:
    """Set each buffer's size to the largest number of elements that it may have.

    Raises InputError GT2005, which names all sizes that lack a bound, if one has none.
    """
    rooms = [(b, at_most(b.size, limits)) for b in buffers.values()]
    without = [b for b, room in rooms if room is None]
    if without:
        need = unbounded(graph)
        open_symbols = {name: None for b in without for s in symbols(b.size)
                        for name in sorted(need.get(s.name, ()))}
        open_sizes = [*map(by_author, open_symbols)]
        which = "size {} has" if len(open_sizes) == 1 else "sizes {} have"
        raise InputError("GT2005", f"the {which.format(' and '.join(open_sizes))} no upper bound, "
                         "and compiled code plans its memory by it",
                         where=f"{without[0].label} has {author_text(without[0].size)} elements",
                         hint="import an ONNX model with " + " ".join(
                             f"--dynamic {name}=0..MOST" for name in open_sizes)
                         + "; in a torch model, call torch._check(y.shape[0] <= MOST) on the "
                           "result y that is so long")
    for b, room in rooms:
        assert room is not None
        b.size = room


def _port(v: Value, name: str, below: tuple[Dim, ...] = ()) -> Port:
    return Port(name, v.type.dtype, v.type.shape, below)


def _grids(module: Module, inputs: tuple[Value, ...]) -> dict[str, str]:
    """The grids of the ports that are bytes, as `Program.grids` reads them."""
    known = module.meta.get("grids", {})
    ends = (("inputs", [(v.hint, v) for v in inputs]),
            ("outputs", list(zip(module.output_names, module.graph.outputs, strict=True))))
    rows = [f"{kind[:-1]}{i} {known[kind][name][0]!r} {known[kind][name][1]}"
            for kind, ports in ends for i, (name, v) in enumerate(ports)
            if name in known.get(kind, {}) and v.type.dtype.bytes == 1]
    return {"grids": ", ".join(rows)} if rows else {}


def _dims(module: Module) -> tuple[Symbol, ...]:
    return tuple(module.symbols[name] for name in sorted(module.symbols))
