"""Records of options as typer takes them: a parameter for each field."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Annotated, Any

import typer

from graphtool.compile.option import Option, options_of

Verb = Callable[..., object]


def flag(record: type, name: str) -> Any:
    """The option of one field of a record, for a verb that takes no other of them."""
    return _option(next(o for n, _, o in options_of(record) if n == name))


def flat(verb: Verb) -> Verb:
    """The verb with a parameter for each option of its records, in their place."""
    signature = inspect.signature(verb, eval_str=True)
    records: dict[str, Any] = {n: p.annotation for n, p in signature.parameters.items()
               if is_dataclass(p.annotation)}
    if not records:
        return verb

    def call(**values: Any) -> object:
        made = {name: record(**{
            field: tuple(value or ()) if found.several else value
            for field, _, found in options_of(record) for value in [values.pop(field)]})
            for name, record in records.items()}
        return verb(**values, **made)
    parameters = [q for name, p in signature.parameters.items()
                  for q in (_parameters(records[name]) if name in records else
                            [p.replace(kind=p.KEYWORD_ONLY)])]
    vars(call).update(__signature__=signature.replace(parameters=parameters),
                      __annotations__={p.name: p.annotation for p in parameters})
    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


def _parameters(record: Any) -> list[inspect.Parameter]:
    return [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY,
                              default=None if found.several else default,
                              annotation=Annotated[_type(default, found), _option(found)])
            for name, default, found in options_of(record)]


def _type(default: Any, found: Option) -> Any:
    if found.several:
        return list[found.kind] | None  # type: ignore[name-defined]
    return found.kind | None if default is None else found.kind


def _option(found: Option) -> Any:
    return typer.Option(*found.names, help=found.help, metavar=found.metavar, min=found.least)
