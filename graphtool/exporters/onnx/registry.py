"""The table of forms: how one of our ops is written in ONNX.

A form is a function of the writer, the node and its operands: a Ref for each tensor, literals and
None unchanged. It returns the names of the results. If it raises Declined, the writer writes the
op's decomposition instead.
"""

from __future__ import annotations

from collections.abc import Callable

from graphtool.dtypes import DType
from graphtool.exporters.forms import Declined, F, Form, into
from graphtool.front.names import Word, word

FORMS: dict[str, Form] = {}


def form(*names: str) -> Callable[[F], F]:
    """Register a function as the form of the ops `names`."""
    return into(FORMS, names)


def named(op: str, dtype: DType) -> Word:
    """The operator that the table of names has for an op. Declines without one."""
    name = word(op, "onnx", dtype)
    if name is None:
        raise Declined
    return name
