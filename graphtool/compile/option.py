"""What an option is: a field of a record, with its flag and its help. The command line, the API and
the refusals read records of options by this."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

First = TypeVar("First")
Second = TypeVar("Second")
Record = TypeVar("Record")
Result = TypeVar("Result")
Options = ParamSpec("Options")


@dataclass(frozen=True, slots=True)
class Option:
    """How a field is given on the command line: `kind` is the type of one value, `least` its
    minimum, `several`: it may be repeated. `refused` has the kinds of units that the option does
    not go with, and for each what to do instead; `words` are the values that shells complete."""

    names: tuple[str, ...]
    help: str
    kind: type = str
    metavar: str | None = None
    least: int | None = None
    several: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    words: Callable[[], Iterable[str]] | None = None


def option(default: Any, *names: str, help: str, kind: type = str, metavar: str | None = None,
           least: int | None = None, several: bool = False,
           refused: Mapping[str, str] | None = None,
           words: Callable[[], Iterable[str]] | None = None) -> Any:
    """A field of a record with this default, and its option."""
    return field(default=default, metadata={"option": Option(
        names, help, kind, metavar, least, several, refused or {}, words)})


def options_of(record: type) -> Iterator[tuple[str, Any, Option]]:
    """The name, the default and the option of each field that has one."""
    for f in fields(record):
        if (option := f.metadata.get("option")) is not None:
            yield f.name, None if f.default is MISSING else f.default, option


def given(how: Any) -> Iterator[tuple[str, Option]]:
    """The options whose values are not the defaults, each as it is written on a command line."""
    for name, default, option in options_of(type(how)):
        value = getattr(how, name)
        if value is not default and value != default:
            long = next(n for n in option.names if n.startswith("--"))
            on, _, off = long.partition("/")
            yield (off if off and value is False else on), option


def takes(record: Callable[Options, Record]) -> Callable[
        [Callable[[First, Second, Record], Result]],
        Callable[Concatenate[First, Second, Options], Result]]:
    """A decorator: the third parameter, a record of options, becomes its fields as keywords."""
    def flat(function: Callable[[First, Second, Record], Result]
             ) -> Callable[Concatenate[First, Second, Options], Result]:
        @wraps(function)
        def call(first: First, second: Second, *args: Options.args, **options: Options.kwargs
                 ) -> Result:
            return function(first, second, record(*args, **options))
        signature = inspect.signature(function)
        kept = list(signature.parameters.values())[:2]
        taken = {f.name: f for f in fields(record)}  # type: ignore[arg-type]
        rows = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default,
                                  annotation=taken[name].type)
                for name, default, _ in options_of(record)]  # type: ignore[arg-type]
        vars(call)["__signature__"] = signature.replace(parameters=[*kept, *rows])
        return cast(Callable[Concatenate[First, Second, Options], Result], call)
    return flat
