"""What a program computes with sizes: promises about data-dependent ones, from torch._check and
from torch's shape rules, and quotients that are no integers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.torch.driver.context import Context
from graphtool.ir.graph import Node
from graphtool.ir.op import OPS
from graphtool.ir.run_sizes import bare, defined
from graphtool.ir.trace import Builder
from graphtool.symbolic import Dim, Poly, coefficient, known, minimum, symbol, symbol_of, symbols

# ---- promises -----------------------------------------------------------------------------------

_GAPS: Mapping[str, Callable[[Dim, Dim], Dim]] = {  # not below 0 where the promise is kept
    "ge": lambda a, b: a - b, "gt": lambda a, b: a - b - 1, "le": lambda a, b: b - a,
    "lt": lambda a, b: b - a - 1, "eq": lambda a, b: a - b}


class SizePromises:
    """The promises of one program; `declared` names the sizes of its inputs."""

    def __init__(self, builder: Builder, declared: Collection[str],
                 checks: Iterator[int] | None = None) -> None:
        self.builder, self.declared = builder, frozenset(declared)
        self.most: dict[str, Dim] = {}
        self.checks = checks or count()

    def keep(self, fn: str, a: Dim, b: Dim) -> None:
        """Records that `a fn b` holds: as a bound of a size, or as a check at this point."""
        if fn not in _GAPS:
            return
        gap, equal = _GAPS[fn](a, b), fn == "eq"
        if known(0, "==" if equal else "<=", gap) is True or (not equal and self._bounds(gap)):
            return
        if all(s.name in self.declared for s in symbols(gap)):
            return  # it speaks of inputs alone, whose shapes are checked as they come in
        n = self.builder.emit(OPS["dim"], (), {"of": gap, "dtype": dtypes.int64})
        self.builder.emit(OPS["size"], (n,), {
            "size": symbol(f"promise{next(self.checks)}", 0), "most": 0 if equal else None,
            "checked": True})

    def _bounds(self, gap: Dim) -> bool:
        """Records 0 ≤ gap as a bound if gap is input sizes minus one computed size; else False."""
        open_ = [s for s in symbols(gap) if s.name not in self.declared]
        if len(open_) != 1 or coefficient(gap, open_[0].name) != -1:
            return False
        node = next((n for n in self.builder.nodes if n.op.name == "size"
                     and bare(n.attrs["size"]) == open_[0]), None)
        if node is None:
            return False
        name, room = open_[0].name, gap + symbol_of(open_[0])
        self.most[name] = minimum(self.most[name], room) if name in self.most else room
        return True

    def nodes(self) -> tuple[Node, ...]:
        """The builder's nodes; nodes that define sizes have their bounds."""
        return tuple(map(self._limited, self.builder.nodes))

    def _limited(self, node: Node) -> Node:
        size = defined(node) if node.op.name == "size" else None
        if size is None or size.name not in self.most:
            return node
        most, given = self.most[size.name], node.attrs.get("most")
        most = most if given is None else minimum(most, given)
        return replace(node, attrs={**node.attrs, "most": most})


# ---- quotients that are no integers -------------------------------------------------------------

_TABLE: Mapping[str, Callable[..., Any]] = {
    "_operator.truediv": o.div, "_operator.mul": o.mul, "_operator.add": o.add,
    "_operator.sub": o.sub, "_operator.pow": o.pow, "_operator.neg": o.neg,
    "torch.sym_float": lambda x: x, "torch._sym_sqrt": o.sqrt, "math.sqrt": o.sqrt,
    "math.floor": o.floor, "math.ceil": o.ceil, "math.trunc": o.trunc,
}

_COMPARE: Mapping[str, Callable[..., Any]] = {
    f"_operator.{name}": getattr(o, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")} | {
    "_operator.and_": o.and_, "_operator.or_": o.or_, "torch.sym_not": o.not_}


def number(c: Context, target: str, args: tuple[Any, ...]) -> Any:
    """The scalar that a call on sizes and fractions gives; None for a call not in the tables."""
    op = _TABLE.get(target) or _COMPARE.get(target)
    if op is None or not any(isinstance(x, (Array, Poly)) for x in args) or not all(
            isinstance(x, (Array, Poly, int, float)) for x in args):
        return None
    logic = any(isinstance(x, Array) and x.dtype is dtypes.bool_ for x in args)
    return op(*(x if logic else c.cast(x, dtypes.float64) for x in args))
