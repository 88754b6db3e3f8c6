"""The rows of `NAME.program.json` as typed records; schemas/program.schema.json is made from them.

Only shapes: what a row means, and whether it is sound, is for serial.py and verify.py to say.
"""

from __future__ import annotations

from typing import Any

import msgspec

from graphtool.plan import Choice

DimText = int | str
# ["const", type, value]  ["name", type, name]  ["index", type, dim]  ["load", type, buffer, dim]
# ["ref", row of `shared`]  [function, type, operand, ...]
ExprRow = list[Any]


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """What all rows have in common."""


class ForRow(Row, tag_field="do", tag="for"):
    iter: str
    extent: DimText
    body: list[StmtRow]
    mode: str = "serial"
    reduces: list[tuple[str, str]] = []


class LetRow(Row, tag_field="do", tag="let"):
    name: str
    value: ExprRow


class VarRow(Row, tag_field="do", tag="var"):
    """A Let that Accumulate may change."""

    name: str
    value: ExprRow


class AccumulateRow(Row, tag_field="do", tag="accumulate"):
    name: str
    fn: str | None
    value: ExprRow


class StoreRow(Row, tag_field="do", tag="store"):
    buffer: str
    index: DimText
    value: ExprRow


class IfRow(Row, tag_field="do", tag="if"):
    cond: ExprRow
    then: list[StmtRow]
    orelse: list[StmtRow] = []


class PointerRow(Row):
    name: str
    buffer: str
    offset: DimText


class HookRow(Row):
    name: str
    indices: list[str]
    body: list[StmtRow]
    acc: str = "f32"


class MacroRow(Row):
    """A macro of a template, with one value: an index polynomial, yes or no, a number, an element
    type, or a word of the kernel's table."""

    name: str
    size: DimText | None = None
    flag: bool | None = None
    number: float | None = None
    type: str | None = None
    word: str | None = None


class TemplateRow(Row, tag_field="do", tag="template"):
    kernel: str
    macros: list[MacroRow]
    pointers: list[PointerRow]
    reads: list[str]
    writes: list[str]
    hooks: list[HookRow] = []


StmtRow = ForRow | LetRow | VarRow | AccumulateRow | StoreRow | IfRow | TemplateRow


class SymbolRow(Row):
    """An integer of a kernel's index polynomials; `extent` says that it is less than that."""

    id: str
    min: int | None = None
    max: int | None = None
    extent: DimText | None = None


class ParamRow(Row):
    id: str
    type: str
    writes: bool = False
    packed: bool = False


class KernelRow(Row):
    id: str
    params: list[ParamRow]
    body: list[StmtRow]
    serial: bool = False
    symbols: list[SymbolRow] = []
    shared: list[ExprRow] = []


class PortRow(Row):
    name: str
    type: str
    shape: list[DimText]
    donates: int | None = None


class BufferRow(Row):
    id: str
    type: str
    size: DimText
    space: str
    offset: DimText = 0
    slot: int = 0
    label: str = ""
    data: str = ""


class RunRow(Row, tag_field="do", tag="run"):
    kernel: str
    args: list[str]
    label: str = ""
    where: str = ""
    flops: DimText = 0
    barrier: bool = False
    choice: Choice | None = None


class BranchRow(Row, tag_field="do", tag="branch"):
    pred: str
    then: list[StepRow]
    orelse: list[StepRow]
    label: str = ""


class RepeatRow(Row, tag_field="do", tag="repeat"):
    pred: str
    cond: list[StepRow]
    body: list[StepRow]
    label: str = ""


class TimesRow(Row, tag_field="do", tag="times"):
    counter: SymbolRow
    extent: DimText
    body: list[StepRow]
    label: str = ""


class BindRow(Row, tag_field="do", tag="bind"):
    size: SymbolRow
    buffer: str
    index: DimText
    most: DimText
    label: str = ""


StepRow = RunRow | BranchRow | RepeatRow | TimesRow | BindRow


class ProgramFile(Row):
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
