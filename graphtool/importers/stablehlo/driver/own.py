"""What our own exporter says in attributes: names, bounds and steps of open sizes, what is required
of them, and the first contents of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from graphtool.errors import InputError
from graphtool.importers.stablehlo.driver.values import array_of, element_type
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.importers.stablehlo.text.tree import Argument, Function
from graphtool.io.weights import Weight, weight
from graphtool.ir.decode_values import split_dims
from graphtool.symbolic import Dim, Equation
from graphtool.symbolic.parse import parse

T = TypeVar("T")
P = ParamSpec("P")


def _read(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator: a value that does not fit is an error with the name of the attribute."""
    def around(fn: Callable[P, T]) -> Callable[P, T]:
        @wraps(fn)
        def read(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return fn(*args, **kwargs)
            except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
                raise InputError("GT1306", f"the attribute {name} cannot be read: {error}"
                                 ) from error
        return read
    return around


def written(main: Function) -> list[list[str]]:
    """The sizes of each argument, as `["batch", "3"]`; empty if the text does not say them."""
    rows = [sizes(a) for a in main.arguments]
    return rows if any(rows) else []


def sizes(argument: Argument) -> list[str]:
    """The sizes of an argument; empty if the text does not say them."""
    row = str(argument.attrs.get("graphtool.sizes") or "")
    return [d.strip() for d in split_dims(row)] if row else []


def size(argument: Argument) -> str:
    """The name of the open size that an argument of a function is; "" for most."""
    return str(argument.attrs.get("graphtool.size") or "")


@_read("graphtool.bounds")
def bounds(main: Function) -> dict[str, tuple[int, int | None]]:
    """The bounds of open sizes: `{batch = [1, 64]}`, without the upper one where there is none."""
    rows = [r for a in main.arguments for r in (a.attrs.get("graphtool.bounds") or {}).items()]
    return {name: (int(row[0]), int(row[1]) if len(row) > 1 else None) for name, row in rows}


@_read("graphtool.steps")
def steps(main: Function) -> dict[str, tuple[int, int]]:
    """The steps and offsets of open sizes: `{H = [32, 0]}`."""
    rows_ = {name: (int(row[0]), int(row[1])) for a in main.arguments
             for name, row in (a.attrs.get("graphtool.steps") or {}).items()}
    if not all(0 <= offset < step for step, offset in rows_.values()):
        raise ValueError("an offset is not below its step")
    return rows_


@_read("graphtool.initial")
def initial(main: Function) -> dict[int, Weight]:
    """The first contents of inputs."""
    weights_ = {i: a.attrs.get("graphtool.initial") for i, a in enumerate(main.arguments)}
    return {i: weight(np.array(array_of(x, element_type(x.kind), tuple(
        d or 0 for d in x.kind.shape or ())))) for i, x in weights_.items()
        if isinstance(x, Dense) and x.kind}


@_read("graphtool.requires")
def requires(attrs: Mapping[str, Any], table: Mapping[str, Dim]) -> tuple[Equation, ...]:
    """What our own exporter says that must be equal of the open sizes."""
    return tuple(Equation(parse(str(a), table), parse(str(b), table))
                 for a, b in attrs.get("graphtool.requires") or ())
