"""What a kernel's lowering is given and gives: one use of an op that it serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.graph import Node, Value
from graphtool.loops.ir import Hook, MacroValue, Stmt
from graphtool.loops.view import View
from graphtool.symbolic import Dim, Symbol
from graphtool.target import Target

ENDLESS = 1 << 30  # work that is always worth all threads
Macros = Mapping[str, MacroValue]
Pointers = Mapping[str, tuple[str, Dim]]  # buffer and offset


@dataclass(frozen=True)
class Lowered:
    """The statements of a kernel, nominal flops, and work as it counts for threads (0: one)."""

    body: tuple[Stmt, ...]
    flops: Dim
    work: int = ENDLESS


class Site(Protocol):
    """One use of an op: its node, the nodes that run on its rows, and where everything lies."""

    @property
    def node(self) -> Node:
        """The node that the kernel computes."""

    @property
    def target(self) -> Target:
        """What the code is for."""

    @property
    def plan(self) -> Mapping[str, int]:
        """The kernel's parameters as they were chosen, by name."""

    @property
    def out(self) -> Value:
        """The node's first result."""

    def view(self, operand: int) -> View:
        """Where an operand lies."""

    def given(self) -> list[View | None]:
        """Where all operands lie; None for one that is left out."""

    def result(self, output: int = 0) -> View | None:
        """Where a result goes; None where nobody reads it."""

    def touched(self) -> Iterable[View]:
        """Everything that the kernel reads and writes."""

    def shares_bytes(self, view: View) -> bool:
        """Whether several elements of its buffer are in one byte."""

    def summed_rows(self) -> tuple[View, View] | None:
        """Where rows lie that the kernel sums besides, and where their sums go."""

    def epilogue(self, indices: tuple[Symbol, ...], idx: tuple[Dim, ...],
                 row: Dim | None = None) -> Hook:
        """The hook that finishes a row: `idx` is the element of lane 0 in terms of `indices`.

        With `row`, the leading axes are walked as one: `row` is their row-major position.
        """

    def scratch(self, share: Dim, shares: int | None = None,
                dtype: DType = dtypes.float32) -> str:
        """A buffer for this kernel only, with one share for each thread, or so many."""

    def template(self, kernel: str, macros: Macros, pointers: Pointers, hook: Hook | None = None,
                 also: Iterable[View] = (), written: Iterable[str] = ()) -> tuple[Stmt, ...]:
        """The use of a template. Views in `also` are read without a pointer; pointers `written`
        are written besides those that the contract says are."""
