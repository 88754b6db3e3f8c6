"""Single values of a graph file: the elements of constants, attributes, and the dims of a type."""

from __future__ import annotations

import re
from typing import Any, get_origin

import numpy as np

from graphtool.dtypes import DType, as_strings, string
from graphtool.io import weights
from graphtool.io.values import SPECIAL
from graphtool.ir.plan import Plan
from graphtool.symbolic import Poly
from graphtool.symbolic.parse import STRING

_MARK = re.compile(rf"{STRING}|[(),]")


def values_of(row: list[Any], dtype: DType) -> weights.Array:
    """A row of JSON values as an array; among numbers, text stands for NaN and infinities."""
    if dtype is string:
        return as_strings(np.array(row, object))
    with np.errstate(over="raise"):  # a number too large for the type must not become infinity
        return np.array([float(x) if isinstance(x, str) else x for x in row], dtype.numpy)


def plan_of(x: dict[str, Any]) -> Plan:
    """A plan from its kind and parameters. Raises ValueError for anything else."""
    kind, parameters = x.get("kind"), tuple((k, v) for k, v in x.items() if k != "kind")
    if type(kind) is not str or not all(type(v) is int for _, v in parameters):
        raise ValueError(x)
    return Plan(kind, parameters)


def fits(x: Any, annotation: Any) -> bool:
    """Whether a JSON value may be an attribute of this type."""
    origin = get_origin(annotation) or annotation
    if annotation is DType or annotation is Poly:
        return isinstance(x, str)
    if annotation is Plan:
        return isinstance(x, dict)
    if annotation is float:
        return isinstance(x, (int, float)) or x in SPECIAL
    if isinstance(x, list):
        return origin is tuple
    return isinstance(origin, type) and isinstance(x, origin)


def split_dims(source: str) -> list[str]:
    """The parts of a text between those commas that are not inside parentheses or quotes."""
    parts, depth, start = [], 0, 0
    for mark in _MARK.finditer(source):
        depth += (mark[0] == "(") - (mark[0] == ")")
        if mark[0] == "," and depth == 0:
            parts.append(source[start:mark.start()])
            start = mark.end()
    return [*parts, source[start:]]
