"""How `NAME.program.json` writes the IR, from the fields of its dataclasses: each class is a row,
and the annotation of a field says how its values are written. FORMS has the exceptions.

The rows are types of msgspec, so that schemas/program.schema.json is made from the same fields.
They define only the form of a file: decode.py defines what a row means, verify.py whether it is
sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from graphtool.assume import Assumed
from graphtool.dtypes import DType
from graphtool.io.manifest_rows import Choice
from graphtool.loops import ir, program
from graphtool.symbolic import Dim, Symbol

DimText = int | str


class ProgramSymbolRow(msgspec.Struct, forbid_unknown_fields=True):
    """An integer of a kernel's index polynomials; `extent` says that it is less than that."""

    id: str
    min: int | None = None
    max: int | None = None
    extent: DimText | None = None
    step: int = 1  # its values are offset, offset + step and so on
    offset: int = 0


class PointerRow(msgspec.Struct, forbid_unknown_fields=True):
    """A pointer of a template: a buffer and an offset in elements."""

    name: str
    buffer: str
    offset: DimText


class MacroRow(msgspec.Struct, forbid_unknown_fields=True):
    """A macro of a template, with exactly one value: an index polynomial, a flag, a number, an
    element type, or a word of the kernel's table."""

    name: str
    size: DimText | None = None
    flag: bool | None = None
    number: float | None = None
    type: str | None = None
    word: str | None = None


@dataclass(frozen=True, slots=True)
class FieldKind:
    """A kind of values: the type of their JSON, and the method of the writer and of the reader
    that convert one; without a method the value is JSON already."""

    row: Any
    method: str = ""
    many: bool = False  # a tuple of such values, a list in the file
    words: tuple[str, ...] = ()  # the texts that are allowed

    def list(self) -> FieldKind:
        """The kind of tuples of these values."""
        return FieldKind(GenericAlias(list, (self.row,)), self.method, True)


DECLARED = FieldKind(ProgramSymbolRow, "declared")
_KINDS: dict[Any, FieldKind] = {
    Dim: FieldKind(DimText, "dim"), DType: FieldKind(str, "dtype"),
    ir.Expr: FieldKind(list[Any], "expr"),
    ir.Stmt: FieldKind("StmtRow", "stmt"), ir.Hook: FieldKind("HookRow", "hook"),
    program.Step: FieldKind("StepRow", "row"), program.Param: FieldKind("ParamRow", "row"),
    ir.Name: FieldKind("NameRow", "row"),
    int | float | bool: FieldKind(int | float | str, "number"),
    Choice | None: FieldKind(Choice | None, "choice"), Symbol: FieldKind(str, "named")}


def kind_of(annotation: Any) -> FieldKind:
    """The kind of the values of a field with this annotation."""
    if annotation in _KINDS:
        return _KINDS[annotation]
    args = get_args(annotation)
    if get_origin(annotation) is Literal:
        return FieldKind(str, "word", words=args)
    if get_origin(annotation) is tuple and args[1:] == (...,):
        return kind_of(args[0]).list()
    return FieldKind(annotation)


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The row of a dataclass: its tag (the value of `do`), and where it differs from the fields.

    `fixed`: fields that the tag gives; `always`: fields that are written also if they have their
    default; `more`: keys of the file that are no fields of the class.
    """

    of: type
    tag: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, FieldKind] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    more: tuple[tuple[str, Any, Any], ...] = ()
    doc: str = ""


_ID = {"name": "id"}
FORMS = (
    RecordForm(ir.For, "for", defaults={"mode": "serial"}),
    RecordForm(ir.Let, "let", fixed={"mutable": False}),
    RecordForm(ir.Let, "var", fixed={"mutable": True}, doc="A scalar that Accumulate may change."),
    RecordForm(ir.Accumulate, "accumulate",
               doc="name = fn(name, value); without `fn`, name = value."),
    RecordForm(ir.Store, "store"),
    RecordForm(ir.If, "if"),
    RecordForm(ir.Template, "template", doc="A use of a kernel's header, with its macros, pointers "
               "and hooks, and the buffers that it reads and writes.", kinds={
                   "macros": FieldKind(MacroRow, "macro").list(),
                   "pointers": FieldKind(PointerRow, "pointer").list()}),
    RecordForm(ir.Hook, keys={"dtype": "acc"}),
    RecordForm(program.Run, "run", defaults={"barrier": False}),
    RecordForm(program.Branch, "branch"),
    RecordForm(program.Repeat, "repeat"),
    RecordForm(program.Times, "times", kinds={"counter": DECLARED}),
    RecordForm(program.Bind, "bind", kinds={"size": DECLARED}),
    RecordForm(program.Param, keys={**_ID, "const": "writes"},
               kinds={"const": FieldKind(bool, "opposite")}, defaults={"const": True}),
    RecordForm(ir.Name, keys=_ID, doc="A number that a run passes by value, and its type."),
    RecordForm(program.Kernel, keys=_ID, doc="A C function that every thread runs on its share; "
               "`serial`: only thread 0 runs it. Expressions refer to the rows of `shared`.",
               more=(("symbols", list[ProgramSymbolRow], []), ("shared", list[list[Any]], []))),
    RecordForm(program.Port, doc="An input or output of the program. `donates` is the number of "
               "the input whose memory an output takes over; made-up integers are less than "
               "`below`.",
               more=(("donates", int | None, None),)),
    RecordForm(program.Buffer, keys=_ID, always=("offset", "slot"), more=(("data", str, ""),)))


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a class, and its key and default in the file."""

    field: str
    key: str
    kind: FieldKind
    default: Any
    written: bool  # also if the value is the default

    def row(self) -> tuple[Any, ...]:
        """The key, its type and its default, if it has one, as JSON has them."""
        match self.default:
            case DType(short=short):
                return self.key, self.kind.row, short
            case ():
                return self.key, self.kind.row, []
        if self.default is MISSING:
            return self.key, self.kind.row
        opposite = self.kind.method == "opposite"
        return self.key, self.kind.row, not self.default if opposite else self.default


def _columns(form: RecordForm) -> tuple[RecordField, ...]:
    hints = get_type_hints(form.of)
    usual = {"dtype": "type"} | dict(form.keys)
    return tuple(RecordField(f.name, usual.get(f.name, f.name),
                             form.kinds.get(f.name) or kind_of(hints[f.name]),
                             form.defaults.get(f.name, f.default), f.name in form.always)
                 for f in fields(form.of) if f.name not in form.fixed)


def _row(form: RecordForm, columns: Iterable[RecordField]) -> Any:
    return msgspec.defstruct(
        f"{form.tag.capitalize() or form.of.__name__}Row",
        [*(c.row() for c in columns), *form.more], module=__name__, kw_only=True,
        forbid_unknown_fields=True, namespace={"__doc__": form.doc or form.of.__doc__},
        tag_field="do" if form.tag else None, tag=form.tag or None)


def _union(of: Any) -> Any:
    return reduce(or_, [row for row, (form, _) in READING.items() if form.of in get_args(of)])


WRITING: dict[type, list[tuple[RecordForm, tuple[RecordField, ...]]]] = {}  # by class
READING: dict[type, tuple[RecordForm, tuple[RecordField, ...]]] = {}  # by row
for form in FORMS:
    columns = _columns(form)
    WRITING.setdefault(form.of, []).append((form, columns))
    READING[_row(form, columns)] = form, columns

# rows refer to each other by these names
globals().update({row.__name__: row for row in READING})
StmtRow, StepRow = _union(ir.Stmt), _union(program.Step)

LEAVES = {"const": ir.Const, "name": ir.Name, "index": ir.Index, "load": ir.Load}
"""The expressions without operands: [word, type, value of each other field]. `["ref", n]` is row n
of the kernel's `shared`; every other row is an Apply: [function, type, operand, ...]."""
LEAF_KINDS = {word: {name: kind_of(hint) for name, hint in get_type_hints(leaf).items()
                     if name != "dtype"} for word, leaf in LEAVES.items()}

ProgramFile: Any = msgspec.defstruct(
    "ProgramFile", [
        ("format", str), ("version", int), ("since", str), ("name", str), ("meta", dict[str, str]),
        ("weights", str), ("threads", int), ("arena", DimText), ("dims", list[ProgramSymbolRow]),
        ("inputs", "list[PortRow]"), ("outputs", "list[PortRow]"), ("buffers", "list[BufferRow]"),
        ("kernels", "list[KernelRow]"), ("steps", "list[StepRow]"),
        ("requires", list[tuple[DimText, DimText]], []), ("assumes", list[Assumed], [])],
    module=__name__, forbid_unknown_fields=True, namespace={"__doc__": """
    The whole file. `requires` has pairs of sizes that must be equal; `assumes` is what the rewrites
    of the graph assumed of its values."""})
