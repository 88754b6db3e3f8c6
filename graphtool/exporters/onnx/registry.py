"""The table of forms: how an op of ours is said in ONNX.

A form gets the writer, the node, and its operands as names with types (literals and None as they
are), and returns the names of the results. What it cannot say it declines; the op's decomposition
is written instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphtool.ir.graph import TensorType
from graphtool.symbolic import Dim


@dataclass(frozen=True)
class Ref:
    """A value of ours under its ONNX name."""

    name: str
    type: TensorType

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.type.shape


class Declined(Exception):
    """Raised by a form for operands or attributes that the ONNX operator does not take."""


Form = Callable[..., Any]
FORMS: dict[str, Form] = {}


def form(*names: str) -> Callable[[Form], Form]:
    """Register a function as the form of the ops `names`."""
    def declare(fn: Form) -> Form:
        for name in names:
            FORMS[name] = fn
        return fn
    return declare


def takes(condition: bool) -> None:
    """Decline unless the condition holds."""
    if not condition:
        raise Declined
