"""Buffer assignment: the buffer, offset and strides of each value of the graph.

Movement ops are views. The operands of concat and pad are written directly into windows of the
result, so neither copies. A movement that strides cannot express becomes a copy.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Graph, Node, Value, is_constant, joined_names, producers, readers_of
from graphtool.kernels.record import serving
from graphtool.loops.pull import View, dense
from graphtool.lower.units import Unit
from graphtool.lower.views import (
    Assignment,
    Copy,
    Edge,
    Storage,
    reshape_view,
    scattered,
    unview,
    view_of,
    windows_of,
)
from graphtool.symbolic import Dim, product

_BY_MOVEMENT = (Lowering.VIEW, Lowering.WINDOW)  # made by movement alone, without a kernel


class Assigner:
    """Assigns buffers in two passes: backwards, concat, pad and outputs request windows; forwards,
    all values get views."""

    def __init__(self, graph: Graph, units: list[Unit], donors: Mapping[int, int],
                 in_place: Container[int], edge: Edge | None = None) -> None:
        self.graph, self.donors, self.in_place = graph, donors, in_place
        self.lent: dict[Value, View] = {}  # donated inputs lie in their output's buffer
        self.late: list[tuple[Value, View]] = []
        self.unit_of = {node: unit for unit in units for node in unit.nodes}
        self.stored = {v for unit in units for v in unit.outputs}
        self.wanted: dict[Value, View] = {}
        self.reduced: set[str] = set()  # buffers that an exchange between processes overwrites
        self.edge = edge
        self.out = Assignment() if edge is None else Assignment(buffers=edge.buffers)
        self.readers = readers_of(graph)

    def run(self) -> Assignment:
        """The buffer assignment of all values of the graph."""
        self.outputs()
        for node in reversed(self.graph.nodes):
            if node in self.unit_of or not node.outputs:
                continue
            if node.op.lowering is Lowering.WINDOW:
                self.windows(node)
            elif node.op.lowering is Lowering.VIEW:
                self.pass_on(node)
        self.forward()
        self.overwrite()
        return self.out

    # ---- buffers ---------------------------------------------------------------------------

    def buffer(self, stem: str, dtype: DType, size: Dim, space: str, **more: object) -> str:
        """Add a buffer of `size` elements and return its name: `stem` and a number."""
        name = f"{stem}{sum(b.startswith(stem) for b in self.out.buffers)}" if space in (
            "input", "output") else f"{stem}{len(self.out.buffers)}"
        self.out.buffers[name] = Storage(name, dtype, size, space, **more)  # type: ignore[arg-type]
        return name

    def fresh(self, v: Value) -> View:
        """A row-major view of a new arena buffer for v."""
        t = v.type
        return dense(self.buffer("b", t.dtype, product(t.shape), "arena", label=v.hint),
                     t.dtype, t.shape)

    # ---- backwards -------------------------------------------------------------------------

    def outputs(self) -> None:
        """Choose a view for each output: its own buffer or its donor's. Where the value cannot be
        computed there, add a copy."""
        for i, v in enumerate(self.graph.outputs):
            t = v.type
            if self.edge is not None:
                self.deliver(v, self.edge.outputs[i])
                continue
            view = dense(self.buffer("out", t.dtype, product(t.shape), "output", slot=i,
                                     label=v.hint), t.dtype, t.shape)
            donor = self.graph.inputs[self.donors[i]] if i in self.donors else None
            if donor is not None:
                self.lent[donor] = view
                if i in self.in_place:
                    self.wanted[v] = view
                elif v is not donor:
                    self.late.append((v, view))
            elif v in self.wanted or not self.made_here(v):
                self.copy(None, v, view)
            else:
                self.wanted[v] = view

    def deliver(self, v: Value, view: View | None) -> None:
        """Assign an output of a region to the view that the caller requires, if there is one."""
        if view is None:
            return
        if v in self.wanted or not self.made_here(v) or not self.readable(v, view):
            self.copy(None, v, view)
        else:
            self.wanted[v] = view

    def made_here(self, v: Value) -> bool:
        """Whether a kernel, concat, pad or a view of such a result defines v, so that its view can
        be chosen."""
        return v in self.stored or (
            v in self.made_by and self.made_by[v].op.lowering in _BY_MOVEMENT)

    @property
    def made_by(self) -> dict[Value, Node]:
        """The node that computes each value."""
        if not hasattr(self, "_made_by"):
            self._made_by = producers(self.graph)
        return self._made_by

    def copy(self, before: Node | None, source: Value | float, target: View) -> None:
        """Add a copy to `target` before a node, or at the end of the graph for None; an empty
        target needs none."""
        if any(d == 0 for d in target.shape):
            return
        self.out.copies.setdefault(before, []).append(
            Copy(source, target, _label(before, source, self.made_by)))

    def windows(self, node: Node) -> None:
        """Request a window of the result for each operand of a concat or pad."""
        out = node.outputs[0]
        whole = self.wanted.get(out)
        if whole is None and Movement.JOINS in node.op.movement:
            whole = self.already_side_by_side(node)
            if whole is not None and self.readable(out, whole):
                self.wanted[out] = whole
                return
            whole = None
        if whole is None:
            whole = self.wanted[out] = self.fresh(out)
            if any(r.op is o.collective_begin for r in self.readers.get(out, ())):
                self.reduced.add(whole.buffer)
        for x, view in windows_of(node, whole):
            if isinstance(x, Value) and self.looped(x):
                self.copy(node, x, view)
            elif isinstance(x, Value):
                self.ask(node, x, view)
            else:
                self.copy(node, x, view)

    def already_side_by_side(self, node: Node) -> View | None:
        """The window that a larger concat gave the operands, if they are adjacent there in this
        order."""
        views = [self.wanted.get(x) for x in node.inputs if isinstance(x, Value)]
        first = views[0]
        if first is None or len(set(node.inputs)) != len(node.inputs):
            return None
        t = node.outputs[0].type
        whole = View(first.buffer, t.dtype, t.shape, first.strides, first.offset)
        parts = [view for _, view in windows_of(node, whole)]
        return whole if all(a == b for a, b in zip(views, parts, strict=True)) else None

    def looped(self, x: Value) -> bool:
        """Whether a loop in a loop gives the value: while it runs, its result alone is to be
        live."""
        node = self.made_by.get(x)
        while node is not None and node.op.lowering is Lowering.VIEW and isinstance(
                node.inputs[0], Value):
            node = self.made_by.get(node.inputs[0])
        return self.edge is not None and node is not None and node.op.lowering is Lowering.CONTROL

    def ask(self, node: Node, x: Value, view: View) -> None:
        """Request that x is stored in `view`; if that is impossible, add a copy."""
        if x not in self.wanted and self.made_here(x) and self.readable(x, view):
            self.wanted[x] = view
        else:
            self.copy(node, x, view)

    def readable(self, x: Value, view: View) -> bool:
        """Whether all readers of x can read it from `view`.

        A reshape may need it dense; a template needs adjacent elements in each row.
        """
        if view.buffer in self.reduced and len(self.readers.get(x, ())) > 1:
            return False
        maker = self.made_by.get(x)
        if maker is not None and Trait.DENSE in maker.op.traits and not view.contiguous:
            return False
        if scattered(view) and self.in_rows(x):
            return False  # a pass of its own in squares costs less than a line for each number
        for r in self.readers.get(x, ()):
            if Trait.DENSE in r.op.traits and not view.contiguous:
                return False
            if r.op is o.reshape and r not in self.unit_of and (
                    reshape_view(view, r.attrs["shape"]) is None):
                return False
            kernel = serving(r.op)
            if kernel is not None and not kernel.reads(r, x, view):
                return False
        return True

    def in_rows(self, x: Value) -> bool:
        """Whether a template computes x, or parts of it, row by row."""
        maker = self.made_by.get(x)
        if maker is None or maker in self.unit_of:
            return maker is not None and self.unit_of[maker].kind == "template"
        return maker.op.lowering in _BY_MOVEMENT and any(
            self.in_rows(v) for v in maker.inputs if isinstance(v, Value))

    def pass_on(self, node: Node) -> None:
        """Pass the window required for a view of x on to x itself, if strides can express it."""
        out, x = node.outputs[0], node.inputs[0]
        if not isinstance(x, Value):
            return
        if out not in self.wanted and self.would_be_copied(node, x):
            self.wanted[out] = self.fresh(out)
        view = self.wanted.get(out)
        if view is None:
            return
        back = unview(node, view, x)
        if back is not None and x not in self.wanted and self.made_here(x) and (
                self.readable(x, back)):
            self.wanted[x] = back
            del self.wanted[out]

    def would_be_copied(self, node: Node, x: Value) -> bool:
        """Whether a reader of the view could not read it there, though it could read a buffer of
        its own."""
        if x not in self.stored or x in self.wanted:
            return False
        seen = view_of(node, dense("", x.type.dtype, x.type.shape))
        return seen is None or not self.readable(node.outputs[0], seen)

    # ---- forwards --------------------------------------------------------------------------

    def forward(self) -> None:
        """Give each value its view, in the order of the nodes."""
        views = self.out.views
        for i, v in enumerate(self.graph.inputs):
            t = v.type
            if self.edge is not None:
                views[v] = self.edge.inputs[i]
                continue
            if v in self.lent:
                views[v] = self.lent[v]
                continue
            views[v] = dense(self.buffer("in", t.dtype, product(t.shape), "input", slot=i,
                                         label=v.hint), t.dtype, t.shape)
        for node in self.graph.nodes:
            if is_constant(node):
                w = node.attrs["data"]
                name = self.buffer("w", w.dtype, product(w.shape), "weight", weight=w,
                                   label=node.outputs[0].hint)
                views[node.outputs[0]] = dense(name, w.dtype, w.shape)
            elif node in self.unit_of:
                for v in node.outputs:
                    if v in self.stored:
                        views[v] = self.wanted.get(v) or self.over(node, v) or self.fresh(v)
            elif node.op.lowering is Lowering.WINDOW:
                views[node.outputs[0]] = self.wanted[node.outputs[0]]
            elif node.op.lowering is Lowering.VIEW:
                views[node.outputs[0]] = self.view(node)

    def over(self, node: Node, v: Value) -> View | None:
        """The view of a collective's operand for its result, if nothing else uses that buffer; the
        matching wait op finds the result in the same buffer."""
        waits = node.op is o.collective_end
        if not (waits or node.op is o.collective_begin) or v is not node.outputs[0]:
            return None
        x = node.inputs[waits]
        assert isinstance(x, Value)
        if waits:
            return self.out.views[x]
        if node.attrs["kind"] not in ("sum", "max", "min"):
            return None
        view = self.out.views[x]
        there = {u for u, w in self.out.views.items() if w.buffer == view.buffer}
        used = {r for u in there for r in self.readers.get(u, ()) if not (
            r.op.lowering in _BY_MOVEMENT and r.outputs[0] in there)}
        allowed = {node, *(r for r in self.readers.get(v, ()) if r.op is o.collective_end)}
        free = self.out.buffers[view.buffer].space == "arena" and there.isdisjoint(
            self.graph.outputs)
        return view if free and used <= allowed else None

    def overwrite(self) -> None:
        """Add copies of the outputs that could not be computed in their donor's buffer, at the end
        of the graph."""
        lent = {view.buffer for view in self.lent.values()}
        late = []
        for v, target in self.late:
            if self.out.views[v].buffer in lent:  # it may be overwritten by then
                saved = Value(v.type, v.hint)
                self.out.views[saved] = self.fresh(v)
                self.copy(None, v, self.out.views[saved])
                v = saved
            late.append((v, target))
        for v, target in late:
            self.copy(None, v, target)

    def view(self, node: Node) -> View:
        """The view of a movement op's result: a view of its operand if strides allow it and all
        readers can use it, else a copy."""
        out, x = node.outputs[0], node.inputs[0]
        assert isinstance(x, Value)
        seen = view_of(node, self.out.views[x])
        if seen is not None and self.wanted.get(out) == seen:
            return seen  # a part of a donor, at its own place in the result
        if out in self.wanted or seen is None or not self.readable(out, seen):
            target = self.wanted.get(out) or self.fresh(out)
            if all(d != 0 for d in target.shape):
                self.out.copies.setdefault(node, []).append(
                    Copy(node, target, joined_names(node)))
            return target
        return seen


def _label(reader: Node | None, source: Value | float, made_by: Mapping[Value, Node]) -> str:
    """The author's names of the nodes for which a copy is made."""
    if not isinstance(source, Value):
        return "" if reader is None else joined_names(reader)
    node = reader or made_by.get(source)
    return source.hint if node is None else joined_names(node)
