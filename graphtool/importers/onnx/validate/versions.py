"""The versions that a model declares: of the file format, and of each domain of operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
from onnx import helper

from graphtool.errors import InputError

_NEWEST = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": helper.VERSION_TABLE[-1][3]}


def plain_domain(domain: str) -> str:
    """The domain's name; `ai.onnx` and the empty name are one domain."""
    return "" if domain == "ai.onnx" else domain


def check_ir_version(model: Any, where: str) -> None:
    """Check the version of the file format. Raises InputError GT1003 for an unknown one."""
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        given = model.ir_version if model.HasField("ir_version") else "none"
        raise InputError("GT1003", f"the model's ir_version is {given}, known are 1 to "
                                   f"{onnx.IR_VERSION}", where=where,
                         hint="export the model again, or install a newer `onnx`")


def opsets(rows: Iterable[Any], where: str) -> dict[str, int]:
    """The opset version by domain.

    Raises InputError GT1003 if there is none, for a domain with two versions, and for a version
    that does not exist.
    """
    table: dict[str, int] = {}
    for row in rows:
        domain, shown = plain_domain(row.domain), row.domain or "ai.onnx"
        if table.get(domain, row.version) != row.version:
            raise InputError("GT1003", f"{shown} has two opset versions, {table[domain]} and "
                                       f"{row.version}", where=where)
        if row.version < 1 or row.version > _NEWEST.get(domain, row.version):
            raise InputError(
                "GT1003", f"the model uses opset {row.version} of {shown}, known are 1 to "
                          f"{_NEWEST.get(domain, 'any')}", where=where,
                hint="a newer `onnx` package may know it" if row.version > 0 else "")
        table[domain] = row.version
    if not table:
        raise InputError("GT1003", "the model does not say which opset it uses", where=where,
                         hint="add opset_import to the model; the meaning of operators needs it")
    return table
