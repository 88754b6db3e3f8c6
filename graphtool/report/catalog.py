"""Reports of the ops and of the passes, made from their declarations."""

from __future__ import annotations

import enum
import inspect
import re
from typing import Any

import msgspec

from graphtool.ir.op import OPS, Op, named
from graphtool.ir.text import attr_text
from graphtool.passes import PASSES, functions
from graphtool.passes.arguments import form
from graphtool.plugins import owner_of
from graphtool.report.table import Column
from graphtool.scalars.table import BY_NAME


class AttrRow(msgspec.Struct):
    """One attribute of an op, with its default as text."""

    name: str
    type: str
    required: bool
    default: str


class OpEntry(msgspec.Struct):
    """One op. `has` says which of eval, vjp, lower and decompose it declares."""

    name: str
    category: str
    signature: str
    operands: list[str]
    attrs: list[AttrRow]
    has: list[str]
    traits: list[str]
    lowering: str
    movement: list[str]
    precision: str
    doc: str
    plugin: str = ""  # the one that added it


OPS_COLUMNS: tuple[Column[OpEntry], ...] = (
    Column("op", "name"), Column("category"), Column("has", lambda r: " ".join(r.has)),
    Column("signature"))


class Ops(msgspec.Struct):
    """`ops --json`; schemas/ops.schema.json is made from it."""

    ops: list[OpEntry]


class PassEntry(msgspec.Struct):
    """One pass, with its arguments as text and the reason for its place in the pipeline."""

    name: str
    arguments: str
    default: bool
    doc: str
    reason: str
    plugin: str = ""  # the one that added it


PASSES_COLUMNS: tuple[Column[PassEntry], ...] = (
    Column("pass", lambda r: r.name + (f"{{{r.arguments}}}" if r.arguments else "")),
    Column("default", lambda r: "yes" if r.default else ""), Column("what it does", "doc"),
    Column("why here", "reason"))


class Passes(msgspec.Struct):
    """`passes --json`; schemas/passes.schema.json is made from it."""

    passes: list[PassEntry]


def ops_report(name: str | None = None) -> Ops:
    """All ops by name, or one. Raises InputError GT0401 for an unknown one."""
    import graphtool.kernels  # noqa: F401  (fills the registry)
    chosen = [named(name)] if name else [OPS[n] for n in sorted(OPS)]
    return Ops([_entry(op) for op in chosen])


def passes_report() -> Passes:
    """One row for each pass of the pipeline, in order, with the reason for its place."""
    known = functions()
    return Passes([PassEntry(
        p.name, form(known[p.name]), p.default,
        summary(p.function), p.reason, _plugin("pass", p.name)) for p in PASSES])


def _plugin(kind: str, name: str) -> str:
    owner = owner_of(kind, name)
    return f"{owner.name} {owner.version}".rstrip() if owner else ""


def summary(documented: object) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph, maxsplit=1)[0]


def _entry(op: Op) -> OpEntry:
    operands = [_operand(p) for p in op.operands]
    if op.name in BY_NAME:
        operands = ["x"] if BY_NAME[op.name].arity == 1 else ["a", "b"]
    attrs = [AttrRow(a.name, type_text(a.annotation), a.required,
                     "" if a.required else attr_text(a.default)) for a in op.schema.values()]
    has = [facet for facet in ("eval", "vjp", "lower", "decompose")
           if getattr(op, facet) is not None]
    return OpEntry(op.name, op.category, f"({', '.join(operands + _shown(attrs))})", operands,
                   attrs, has, _flags(op.traits), op.lowering.value, _flags(op.movement),
                   op.precision.value, op.doc, _plugin("op", op.name))


def _flags(facet: enum.Flag) -> list[str]:
    return sorted(flag.name.lower() for flag in facet if flag.name)


def _shown(attrs: list[AttrRow]) -> list[str]:
    return [a.name if a.required else f"{a.name}={a.default}" for a in attrs]


def _operand(p: inspect.Parameter) -> str:
    if p.kind is p.VAR_POSITIONAL:
        return f"*{p.name}"
    return p.name if p.default is p.empty else f"{p.name}?"


def type_text(annotation: Any) -> str:
    """A type annotation as text, such as `tuple[int, ...] | None`."""
    text = annotation.__name__ if isinstance(annotation, type) and not hasattr(
        annotation, "__origin__") else str(annotation)
    text = re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", text)  # a class without its module
    for old, new in (("Union[int, Poly]", "Dim"), ("int | Poly", "Dim"), ("NoneType", "None")):
        text = text.replace(old, new)
    return text


def op_lines(op: OpEntry) -> list[str]:
    """One op as lines of text."""
    out = [f"{op.name}{op.signature}", *(f"  {line}" for line in op.doc.splitlines()),
           f"  category  {op.category}", f"  has       {' '.join(op.has)}",
           f"  lowering  {op.lowering}"]
    if op.plugin:
        out.append(f"  plug-in   {op.plugin}")
    out.append(f"  precision {op.precision}")
    out += [f"  {name:<9} {' '.join(flags)}" for name, flags in (
        ("movement", op.movement), ("traits", op.traits)) if flags]
    return out + [f"  {a.name}: {a.type}" + ("" if a.required else f" = {a.default}")
                  for a in op.attrs]
