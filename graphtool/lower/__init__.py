"""Graph → Program: units become kernels, values get places, the arena is planned."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.ir.graph import Module, Node, Value
from graphtool.loops.ir import Buffer, Kernel, Port, Program, Run
from graphtool.lower.dims import own_names
from graphtool.lower.donate import donation
from graphtool.lower.kernel import KernelTable, copy_kernel, fill_kernel, touched, unit_kernel
from graphtool.lower.place import VIEWS, WINDOWS, Copy, Placement, Placer, windowable
from graphtool.lower.plan import barriers, lifetimes, plan_arena
from graphtool.lower.statements import STATEMENTS
from graphtool.lower.units import Unit, schedule, units
from graphtool.symbolic import Dim, Symbol
from graphtool.target import Target
from graphtool.weights import layout

__all__ = ["lower"]


def lower(module: Module, target: Target, *, name: str = "model") -> Program:
    """The program of a module for a target.

    Raises UnsupportedError GT2001 that lists every op without a lowering, with its places.
    """
    _refuse_unsupported(module)
    module = own_names(module)
    graph = module.graph
    free = frozenset(n for n in graph.nodes if n.op.name in VIEWS | {"constant"}
                     or (n.op.name in WINDOWS and windowable(n)))
    grouped = frozenset(n for g in graph.groups for n in g.members)
    all_units = units(graph, free - grouped)
    given = donation(module, all_units)
    placement = Placer(graph, all_units, given.donors, given.in_place).run()
    table = KernelTable()
    steps: list[_Step] = []
    for item in schedule(graph, all_units, given.after):
        if isinstance(item, Unit):
            steps += [_Step(*s, item) for s in unit_kernel(item, placement, target, table)]
        else:
            steps += _copies(item, placement, table)
    steps += _copies(None, placement, table)
    return _program(module, name, target, placement, table, steps, given.donors)


class _Step:
    """A run before the plan is made: which kernel on which buffers."""

    def __init__(self, kernel: Kernel, args: tuple[str, ...], writes: frozenset[str], flops: Dim,
                 origin: Unit | Copy) -> None:
        self.kernel, self.args, self.flops = kernel, args, flops
        self.writes = writes
        _, read, _ = touched(kernel.body)  # a window may be read of the buffer that is written
        self.reads = frozenset(a for a, p in zip(args, kernel.params, strict=True)
                               if p.name in read)
        self.label = origin.label
        self.where = origin.where if isinstance(origin, Unit) else ""


def _copies(node: Node | None, placement: Placement, table: KernelTable) -> list[_Step]:
    copies = placement.copies.get(node, [])
    edges = [c for c in copies if isinstance(c.source, float)]
    moves = [c for c in copies if not isinstance(c.source, float)]
    steps = [_Step(*fill_kernel(edges, placement, table), edges[0])] if edges else []
    return steps + [_Step(*copy_kernel(c, placement, table), c) for c in moves]


_OTHERS = VIEWS | WINDOWS | {"constant", *STATEMENTS}  # lowered without a pull


def _refuse_unsupported(module: Module) -> None:
    missing: dict[str, list[str]] = {}
    for node in module.graph.nodes:
        if node.op.lower is None and (
                "template" not in node.op.traits and node.op.name not in _OTHERS):
            missing.setdefault(node.op.name, []).append(node.outputs[0].hint)
    if missing:
        items = tuple(Unsupported(op, "has no form in compiled code", tuple(places))
                      for op, places in sorted(missing.items()))
        raise UnsupportedError("GT2001", "the graph cannot be compiled", items,
                               hint="`graphtool opt` with its default passes decomposes composites")


def _program(module: Module, name: str, target: Target, placement: Placement, table: KernelTable,
             steps: list[_Step], donors: Mapping[int, int]) -> Program:
    lives = lifetimes([s.reads | s.writes for s in steps])
    offsets, arena = plan_arena(placement.buffers, lives)
    used = {a for s in steps for a in s.args}
    held = {n: b for n, b in placement.buffers.items() if b.weight is not None and n in used}
    at, _ = layout([b.weight for b in held.values() if b.weight is not None])
    buffers = {}
    for n, b in placement.buffers.items():
        if n in used or b.space in ("input", "output"):
            offset = at[b.weight.digest] if b.weight is not None else offsets.get(n, 0)
            buffers[n] = Buffer(n, b.dtype, b.size, b.space, offset, b.slot, b.label)
    wait = barriers([s.reads for s in steps], [s.writes for s in steps], buffers)
    runs = tuple(Run(s.kernel.name, s.args, s.label, s.where, s.flops, b)
                 for s, b in zip(steps, wait, strict=True))
    return Program(
        name, _dims(module), tuple(_port(v, v.hint) for v in module.graph.inputs),
        tuple(_port(v, n) for v, n in zip(module.graph.outputs, module.output_names, strict=True)),
        tuple(buffers.values()), tuple(table.kernels), runs, arena, target.threads,
        tuple(donors.items()),
        tuple((n, b.weight.digest) for n, b in held.items() if b.weight is not None),
        {"target": target.march, "lanes": str(target.lanes)})


def _port(v: Value, name: str) -> Port:
    return Port(name, v.type.dtype, v.type.shape)


def _dims(module: Module) -> tuple[Symbol, ...]:
    return tuple(module.symbols[name] for name in sorted(module.symbols))
