"""Promises about data-dependent sizes, from torch._check and from torch's shape rules.

A promise that bounds one such size by input sizes becomes a bound of the node that defines it,
and is checked there. Any other promise is checked by a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import count

from graphtool import dtypes
from graphtool.ir.graph import Node
from graphtool.ir.op import OPS
from graphtool.ir.run_sizes import bare, defined
from graphtool.ir.trace import Builder
from graphtool.symbolic import Dim, coefficient, known, minimum, symbol, symbol_of, symbols

_GAPS: Mapping[str, Callable[[Dim, Dim], Dim]] = {  # not below 0 where the promise is kept
    "ge": lambda a, b: a - b, "gt": lambda a, b: a - b - 1, "le": lambda a, b: b - a,
    "lt": lambda a, b: b - a - 1, "eq": lambda a, b: a - b}


class Promises:
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
        made = next((n for n in self.builder.nodes if n.op.name == "size"
                     and bare(n.attrs["size"]) == open_[0]), None)
        if made is None:
            return False
        name, room = open_[0].name, gap + symbol_of(open_[0])
        self.most[name] = minimum(self.most[name], room) if name in self.most else room
        return True

    def nodes(self) -> tuple[Node, ...]:
        """The builder's nodes; those that define sizes have their bounds."""
        return tuple(map(self._limited, self.builder.nodes))

    def _limited(self, node: Node) -> Node:
        size = defined(node) if node.op.name == "size" else None
        if size is None or size.name not in self.most:
            return node
        most, given = self.most[size.name], node.attrs.get("most")
        most = most if given is None else minimum(most, given)
        return replace(node, attrs={**node.attrs, "most": most})
