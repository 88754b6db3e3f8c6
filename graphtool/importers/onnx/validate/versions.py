"""The versions that a model declares: of the file format, and of each domain of operators."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import onnx
from onnx import helper

from graphtool.errors import InputError
from graphtool.importers.onnx.driver.schemas import operator, plain_domain
from graphtool.importers.strictness import Strictness

Used = tuple[str, str]  # the domain and the name of an operator

_NEWEST = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": helper.VERSION_TABLE[-1][3]}


def check_ir_version(model: Any, where: str, strictness: Strictness) -> None:
    """Check the version of the file format. Raises InputError GT1003 for an unknown one, where
    `strictness` does not take it."""
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        given = model.ir_version if model.HasField("ir_version") else "none"
        strictness.guessed(InputError(
            "GT1003", f"the model's ir_version is {given}, known are 1 to {onnx.IR_VERSION}",
            where=where, hint="export the model again, or install a newer `onnx`"),
            f"read as {onnx.IR_VERSION}")


def opsets(rows: Iterable[Any], used: Collection[Used], where: str,
           strictness: Strictness) -> dict[str, int]:
    """The opset version by domain, of which the operators in `used` are read.

    Raises InputError GT1003 if there is none, and, where `strictness` does not take it, for a
    domain with two versions and for a version that does not exist.
    """
    table: dict[str, int] = {}
    for row in rows:
        domain, shown = plain_domain(row.domain), row.domain or "ai.onnx"
        if table.get(domain, row.version) != row.version:
            error = InputError("GT1003", f"{shown} has two opset versions, {table[domain]} and "
                                         f"{row.version}", where=where)
            if all(operator(*use, table[domain]) == operator(*use, row.version)
                   for use in used if use[0] == domain):
                strictness.clear(error, "no operator of the model differs between them")
            else:
                strictness.guessed(error, "the last one counts")
        newest = _NEWEST.get(domain, row.version)
        unknown = InputError(
            "GT1003", f"the model uses opset {row.version} of {shown}, known are 1 to "
                      f"{_NEWEST.get(domain, 'any')}", where=where,
            hint="a newer `onnx` package may know it" if row.version > 0 else "")
        if row.version < 1:
            raise unknown
        if row.version > newest:
            strictness.guessed(unknown, f"read as opset {newest}")
        table[domain] = min(row.version, newest)
    if not table:
        raise InputError("GT1003", "the model does not say which opset it uses", where=where,
                         hint="add opset_import to the model; the meaning of operators needs it")
    return table
