"""The rows of `NAME.program.json` as typed records; schemas/program.schema.json is made from them.

They define only the form of rows: serial.py defines what a row means, and verify.py whether it is
sound.
"""

from __future__ import annotations

from typing import Any

import msgspec

from graphtool.assume import Assumed
from graphtool.io.manifest_rows import Choice

DimText = int | str
# ["const", type, value]  ["name", type, name]  ["index", type, dim]  ["load", type, buffer, dim]
# ["ref", row of `shared`]  [function, type, operand, ...]
ExprRow = list[Any]


class ProgramRow(msgspec.Struct, forbid_unknown_fields=True):
    """The base class of all rows."""


class ForRow(ProgramRow, tag_field="do", tag="for"):
    """A loop over `iter` from 0 to `extent`; `reduces` lists its accumulators with their
    functions."""

    iter: str
    extent: DimText
    body: list[StmtRow]
    mode: str = "serial"
    reduces: list[tuple[str, str]] = []


class LetRow(ProgramRow, tag_field="do", tag="let"):
    """The definition of a scalar."""

    name: str
    value: ExprRow


class VarRow(ProgramRow, tag_field="do", tag="var"):
    """A Let that Accumulate may change."""

    name: str
    value: ExprRow


class AccumulateRow(ProgramRow, tag_field="do", tag="accumulate"):
    """An update of a mutable scalar by function `fn`; null assigns the value."""

    name: str
    fn: str | None
    value: ExprRow


class StoreRow(ProgramRow, tag_field="do", tag="store"):
    """A store of `value` to one element of a buffer."""

    buffer: str
    index: DimText
    value: ExprRow


class IfRow(ProgramRow, tag_field="do", tag="if"):
    """A branch on a condition."""

    cond: ExprRow
    then: list[StmtRow]
    orelse: list[StmtRow] = []


class PointerRow(ProgramRow):
    """A pointer of a template: a buffer and an offset in elements."""

    name: str
    buffer: str
    offset: DimText


class HookRow(ProgramRow):
    """Statements that a template runs on each finished row; `acc` is the type of the row."""

    name: str
    indices: list[str]
    body: list[StmtRow]
    acc: str = "f32"


class MacroRow(ProgramRow):
    """A macro of a template, with exactly one value: an index polynomial, a flag, a number, an
    element type, or a word of the kernel's table."""

    name: str
    size: DimText | None = None
    flag: bool | None = None
    number: float | None = None
    type: str | None = None
    word: str | None = None


class TemplateRow(ProgramRow, tag_field="do", tag="template"):
    """A use of a kernel template, with its macros, pointers and hooks, and the buffers it reads and
    writes."""

    kernel: str
    macros: list[MacroRow]
    pointers: list[PointerRow]
    reads: list[str]
    writes: list[str]
    hooks: list[HookRow] = []


StmtRow = ForRow | LetRow | VarRow | AccumulateRow | StoreRow | IfRow | TemplateRow


class SymbolRow(ProgramRow):
    """An integer of a kernel's index polynomials; `extent` says that it is less than that."""

    id: str
    min: int | None = None
    max: int | None = None
    extent: DimText | None = None
    step: int = 1  # its values are offset, offset + step and so on
    offset: int = 0


class ParamRow(ProgramRow):
    """A buffer that a kernel takes; `packed` means that its elements share bytes."""

    id: str
    type: str
    writes: bool = False
    packed: bool = False


class KernelRow(ProgramRow):
    """A kernel: its parameters, its statements and the sizes that it needs."""

    id: str
    params: list[ParamRow]
    body: list[StmtRow]
    serial: bool = False
    symbols: list[SymbolRow] = []
    shared: list[ExprRow] = []


class PortRow(ProgramRow):
    """An input or output of the program; `donates` is the number of the input whose memory an
    output takes over, `below` what integers that are made up for it are less than."""

    name: str
    type: str
    shape: list[DimText]
    donates: int | None = None
    below: list[DimText] = []


class BufferRow(ProgramRow):
    """A buffer of `size` elements in `space`; `offset` is in bytes, `slot` numbers inputs and
    outputs."""

    id: str
    type: str
    size: DimText
    space: str
    offset: DimText = 0
    slot: int = 0
    label: str = ""
    data: str = ""


class RunRow(ProgramRow, tag_field="do", tag="run"):
    """A run of a kernel on buffers; `barrier` means that all threads wait after it."""

    kernel: str
    args: list[str]
    label: str = ""
    where: str = ""
    flops: DimText = 0
    barrier: bool = False
    choice: Choice | None = None


class BranchRow(ProgramRow, tag_field="do", tag="branch"):
    """Steps that depend on the flag in buffer `pred`."""

    pred: str
    then: list[StepRow]
    orelse: list[StepRow]
    label: str = ""


class RepeatRow(ProgramRow, tag_field="do", tag="repeat"):
    """A while loop: `cond` computes the flag in `pred`, and `body` runs as long as it is true."""

    pred: str
    cond: list[StepRow]
    body: list[StepRow]
    label: str = ""


class TimesRow(ProgramRow, tag_field="do", tag="times"):
    """A counted loop of `extent` iterations."""

    counter: SymbolRow
    extent: DimText
    body: list[StepRow]
    label: str = ""


class BindRow(ProgramRow, tag_field="do", tag="bind"):
    """A step that sets a size to an element of a buffer; the size is at most `most`."""

    size: SymbolRow
    buffer: str
    index: DimText
    most: DimText
    label: str = ""


StepRow = RunRow | BranchRow | RepeatRow | TimesRow | BindRow


class ProgramFile(ProgramRow):
    """The file's shape; schemas/program.schema.json is made from it."""

    format: str
    version: int
    since: str
    name: str
    meta: dict[str, str]
    weights: str
    threads: int
    arena: DimText
    dims: list[SymbolRow]
    inputs: list[PortRow]
    outputs: list[PortRow]
    buffers: list[BufferRow]
    kernels: list[KernelRow]
    steps: list[StepRow]
    requires: list[tuple[DimText, DimText]] = []  # pairs of sizes that must be equal
    assumes: list[Assumed] = []  # of values of the graph, by its rewrites
