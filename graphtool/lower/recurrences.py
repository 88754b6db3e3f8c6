"""Recurrences and their gradients, a kernel each; states and steps may lie anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphtool import dtypes
from graphtool.errors import UnsupportedError
from graphtool.ir.graph import Node, Operand, Value
from graphtool.loops.ir import Template
from graphtool.lower.alone import Lowered, operand, scratch
from graphtool.lower.buffer_assignment import Placement
from graphtool.lower.views import View
from graphtool.ops.steps import COUNT
from graphtool.symbolic import Dim, Symbol, symbol_of
from graphtool.target import Target, tile_rows

_KINDS = {"lstm": (0, 4), "gru": (1, 3), "gru_linear": (2, 3), "tanh": (3, 1), "relu": (4, 1)}
_BLOCK = 8  # at most so many rows of the batch share a look at the weights
_S, _D, _B = (symbol_of(Symbol(n, 0, None)) for n in "sdb")
_PLACES: dict[str, tuple[Dim, ...]] = {
    "(s, d, b)": (_S, _D, _B, 0), "(d, b)": (_D, _B, 0), "(d)": (_D, 0)}


class _Site:
    """The macros and pointers of one kernel as they come together."""

    def __init__(self, node: Node, placement: Placement, target: Target, r: View,
                 like: View) -> None:
        self.node, self.placement, self.target = node, placement, target
        if like.dtype is not dtypes.float32:
            raise UnsupportedError(
                "GT2003", f"{node.outputs[0].hint}: a {like.dtype.name} recurrence",
                hint="it is compiled for float32 only")
        self.steps, self.count, self.batch, _ = like.shape
        self.kind, self.gates = _KINDS[node.attrs["kind"]]
        packed = node.attrs["packed"]
        self.macros: list[tuple[str, str | Dim]] = [
            ("GT_STEPS", self.steps), ("GT_DIRS", self.count), ("GT_ROWS", self.batch),
            ("GT_KIND", str(self.kind)), ("GT_GATES", str(self.gates)),
            ("GT_REVERSE", str(int(node.attrs["direction"] == "reverse"))),
            ("GT_PANEL", str(packed // target.lanes)), ("GT_RK", packed or r.strides[1]),
            ("GT_RC", 1 if packed else r.strides[2])]
        self.pointers = [("GT_R(d)", r.buffer, r.index((_D, *(0,) * (len(r.shape) - 1))))]
        self.reads, self.writes = [r.buffer], list[str]()

    def size(self, hidden: Dim) -> None:
        self.hidden = hidden
        self.macros.append(("GT_H", hidden))

    def add(self, name: str, at: str, view: View) -> None:
        """A pointer GT_NAME, and how far apart its elements are."""
        self.macros.append((f"GT_{name}S", view.strides[-1]))
        self.pointers.append((f"GT_{name}{at}", view.buffer, view.index(_PLACES[at])))

    def read(self, given: Iterable[tuple[str, str]], operands: Sequence[Operand]) -> None:
        """The operands that are there."""
        for (name, at), x in zip(given, operands, strict=False):
            if isinstance(x, Value):
                view = self.placement.views[x]
                self.add(name, at, view)
                self.reads.append(view.buffer)

    def write(self, given: Iterable[tuple[str, str]], outputs: Sequence[Value]) -> None:
        """The results that somebody reads."""
        for (name, at), v in zip(given, outputs, strict=True):
            if v in self.placement.views:
                view = self.placement.views[v]
                self.add(name, at, view)
                self.writes.append(view.buffer)

    def work(self, states: int) -> None:
        """Scratch for so many states, and the gates, of a block of rows of the batch."""
        rows, threads = self.block(), self.target.threads
        share = rows * (self.gates + states) * self.hidden
        name = scratch(self.placement, dtypes.float32, share * threads, self.node.outputs[0].hint)
        self.macros.append(("GT_BLOCK", str(rows)))
        self.pointers.append(("GT_WORK(t)", name, symbol_of(Symbol("t", 0, None)) * share))
        self.writes.append(name)

    def block(self) -> int:
        """Rows whose tile fits the registers, balanced; a block for each thread where there are
        rows enough."""
        nv = max(1, self.node.attrs["packed"] // self.target.lanes)
        most = min(_BLOCK, tile_rows(self.target, nv, None))
        if not isinstance(self.batch, int) or self.batch < 1:
            return most
        shares = -(-self.target.threads // COUNT[self.node.attrs["direction"]])
        blocks = max(-(-self.batch // most), min(shares, -(-self.batch // 4)))
        return -(-self.batch // blocks)

    def kernel(self, header: str) -> Lowered:
        body = Template(header, tuple(self.macros), tuple(self.pointers),
                        tuple(dict.fromkeys(self.reads)), tuple(dict.fromkeys(self.writes)))
        products = self.steps * self.count * self.batch * self.hidden * self.hidden
        return (body,), products * self.gates * 2, 1 << 30


def recurrence(node: Node, placement: Placement, target: Target) -> Lowered:
    """y, the last states, and what the gradient reads, as far as somebody does."""
    p, r = operand(node, 0, placement), operand(node, 1, placement)
    site = _Site(node, placement, target, r, p)
    site.size(r.shape[-2])
    site.read([("P", "(s, d, b)")], node.inputs[:1])
    site.read((("B", "(d)"), ("H0", "(d, b)"), ("C0", "(d, b)")), node.inputs[2:])
    cell = [("CN", "(d, b)")] if site.kind == 0 else []
    site.write([("Y", "(s, d, b)"), ("HN", "(d, b)"), *cell, ("KEPT", "(s, d, b)")], node.outputs)
    site.work(3)
    return site.kernel("recurrent.h")


def recurrence_grad(node: Node, placement: Placement, target: Target) -> Lowered:
    """The gradients of the projections and of the first states."""
    r, y = operand(node, 0, placement), operand(node, 1, placement)
    site = _Site(node, placement, target, r, y)
    site.size(y.shape[-1])
    site.read((("Y", "(s, d, b)"), ("KEPT", "(s, d, b)"), ("GY", "(s, d, b)"), ("GH", "(d, b)"),
               ("H0", "(d, b)"), ("GC", "(d, b)"), ("C0", "(d, b)")), node.inputs[1:])
    cell = [("DC", "(d, b)")] if site.kind == 0 else []
    site.write([("DP", "(s, d, b)"), ("DH", "(d, b)"), *cell], node.outputs)
    site.work(4)
    return site.kernel("recurrent_grad.h")
