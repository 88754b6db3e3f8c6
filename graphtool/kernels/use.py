"""The interface between lowering and a kernel: one use of an op that the kernel computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.graph import Node, Value
from graphtool.loops.ir import Hook, MacroValue, Stmt
from graphtool.loops.pull import View
from graphtool.symbolic import Dim, Symbol
from graphtool.target import Target

ENDLESS = 1 << 30  # so much work that all threads are always used
Macros = Mapping[str, MacroValue]
Pointers = Mapping[str, tuple[str, Dim]]  # buffer and offset


@dataclass(frozen=True)
class Lowered:
    """The statements of a kernel, its nominal flops, and its work for the choice of threads (0:
    one thread)."""

    body: tuple[Stmt, ...]
    flops: Dim
    work: int = ENDLESS


class Use(Protocol):
    """One use of an op: its node, the nodes that run on its rows, and the views of all values."""

    @property
    def node(self) -> Node:
        """The node that the kernel computes."""

    @property
    def target(self) -> Target:
        """The target for which code is generated."""

    @property
    def plan(self) -> Mapping[str, int]:
        """The parameters of the kernel that were chosen, by name."""

    @property
    def out(self) -> Value:
        """The node's first result."""

    def view(self, operand: int) -> View:
        """The view of an operand."""

    def given(self) -> list[View | None]:
        """The views of all operands; None for an operand that is left out."""

    def result(self, output: int = 0) -> View | None:
        """The view of a result; None if nothing reads it."""

    def touched(self) -> Iterable[View]:
        """The views of all values that the kernel reads and writes."""

    def shares_bytes(self, view: View) -> bool:
        """Whether a byte of the view's buffer holds several elements."""

    def constant(self, view: View) -> bool:
        """Whether the view is of a constant's data."""

    def summed_rows(self) -> tuple[View, View] | None:
        """The views of the rows that the kernel also sums, and of their sums."""

    def epilogue(self, indices: tuple[Symbol, ...], idx: tuple[Dim, ...],
                 row: Dim | None = None) -> Hook:
        """The hook that finishes a row: `idx` is the element of lane 0 in terms of `indices`.

        With `row`, the leading axes are walked as one, and `row` is their row-major position.
        """

    def scratch(self, size: Dim, dtype: DType = dtypes.float32) -> str:
        """A buffer of `size` elements for this kernel only. If a pointer of its template is
        `by_thread`, it is the first thread's, and the others have as much elsewhere."""

    def template(self, kernel: str, macros: Macros, pointers: Pointers, hook: Hook | None = None,
                 also: Iterable[View] = (), written: Iterable[str] = ()) -> tuple[Stmt, ...]:
        """The use of a template. `also` are views that are read without a pointer; `written` are
        pointers that are written in addition to those in the contract."""
