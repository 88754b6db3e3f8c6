"""Parses pass calls such as `fold{max_bytes=1MiB},dce`: the annotated keywords of a pass are its
arguments."""

from __future__ import annotations

import inspect
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from graphtool.errors import UsageError, near, one_of

# parameters that the driver provides, not the user
SUPPLIED = frozenset({"journal", "target", "rules", "arena", "notes"})
_ITEM = re.compile(r"\s*([A-Za-z_][\w-]*)\s*(?:\{([^{}]*)\})?\s*(,|$)")
UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3,
          "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


@dataclass(frozen=True)
class PassCall:
    """One pass to run, with its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        inner = ",".join(f"{k}={_shown(v)}" for k, v in self.arguments.items())
        return f"{self.name}{{{inner}}}" if inner else self.name


def _shown(x: Any) -> str:
    if isinstance(x, tuple):
        return "+".join(map(str, x))
    return str(x).lower() if isinstance(x, bool) else str(x)


@dataclass(frozen=True)
class PassArgument:
    """One keyword parameter of a pass. With `any_name`, every name is accepted (`specialize`)."""

    name: str
    annotation: Any
    default: Any
    any_name: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it may have, if these are a few words."""
        return get_args(self.annotation) if get_origin(self.annotation) is Literal else ()

    def __str__(self) -> str:
        if self.any_name:
            return "NAME=SIZE"
        if self.default is inspect.Parameter.empty:
            return f"{self.name}={'|'.join(self.choices)}" if self.choices else self.name
        return f"{self.name}={_shown(self.default)}"


def arguments(function: Callable[..., Any]) -> dict[str, PassArgument]:
    """The arguments of a pass, by name."""
    hints = get_type_hints(function)
    return {p.name: PassArgument(p.name, hints.get(p.name, Any), p.default, p.kind is p.VAR_KEYWORD)
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) and p.name not in SUPPLIED}


def unusable(function: object) -> Iterator[str]:
    """Why a plug-in's function cannot be used as a pass, in words."""
    if not isinstance(function, types.FunctionType):
        yield f"is no function: {function!r}"
        return
    if not any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
               for p in inspect.signature(function).parameters.values()):
        yield "has no parameter for the graph"
    try:
        get_type_hints(function)
    except NameError as error:
        yield f"has annotations that cannot be read: {error}"


def form(function: Callable[..., Any]) -> str:
    """What may stand in the braces of a pass: `dtype=bfloat16|float16,scale=65536.0`."""
    return ",".join(map(str, arguments(function).values()))


def parse(text: str, functions: Mapping[str, Callable[..., Any]],
          kind: str = "pass") -> list[PassCall]:
    """The calls in a list of passes, or of other functions that are written in the same way.

    Raises UsageError GT060x for a name that is not in `functions`, or an argument that the function
    does not have; the message lists the arguments that exist.
    """
    calls, at = [], 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None or (item[3] and item.end() == len(text)):
            raise UsageError("GT0608", f"cannot read the {kind} at {text[at:]!r}",
                             hint="write it like NAME{argument=value}, several with commas")
        given = [pair.partition("=")[::2] for pair in (item[2] or "").split(",") if pair.strip()]
        calls.append(checked(item[1], {k.strip(): v.strip() for k, v in given}, functions,
                             kind))
        at = item.end()
    return calls


def one(kind: str, code: str, text: str, functions: Mapping[str, Callable[..., Any]],
        also: str = "") -> PassCall:
    """The one call in the text; `also` adds to the error message what else is possible.

    Raises UsageError GT060x as `parse` does, and with `code` if there is no such function.
    """
    name = text.partition("{")[0].strip()
    calls = parse(text, functions, kind) if name in functions else []
    if len(calls) != 1:
        raise UsageError(code, f"unknown {kind} {text!r}",
                         hint=one_of(text.partition("{")[0].strip(), functions, also))
    return calls[0]


def checked(name: str, given: Mapping[str, Any],
            functions: Mapping[str, Callable[..., Any]], kind: str = "pass") -> PassCall:
    """The call with its arguments converted to their annotated types; values that are not text
    are not changed."""
    if name not in functions:
        raise UsageError("GT0601", f"unknown {kind} {name!r}",
                         hint=one_of(name, functions))
    known = arguments(functions[name])
    anything = next((a for a in known.values() if a.any_name), None)
    if anything is not None and not given:
        raise UsageError("GT0609", f"the {kind} {name} needs a {anything}",
                         hint=f"{name}{{batch=1}}")
    values = {}
    for key, value in given.items():
        argument = known.get(key, anything)
        if argument is None or (argument.any_name and not key):
            raise UsageError("GT0602", f"the {kind} {name} has no argument {key!r}",
                             hint=near(key, known, f"it has {', '.join(known) or 'none'}"))
        try:
            values[key] = _read(value, argument.annotation) if isinstance(value, str) else value
        except ValueError:
            raise _unreadable(f"{name}: {key} cannot be {value!r}", value, argument) from None
    return PassCall(name, values)


def _unreadable(message: str, text: str, argument: PassArgument) -> UsageError:
    if argument.choices:
        return UsageError("GT0603", message, hint=one_of(text, argument.choices))
    wanted = getattr(argument.annotation, "__name__", str(argument.annotation))
    return UsageError("GT0603", f"{message}, {wanted} expected")


def _read(text: str, annotation: Any) -> Any:
    """A value of the annotated type. Raises ValueError."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal and text not in inner:
        raise ValueError(text)
    if origin in (Union, types.UnionType):
        if text == "none" and type(None) in inner:
            return None
        return _read(text, next(a for a in inner if a is not type(None)))
    if origin is tuple:
        return tuple(_read(part, inner[0]) for part in text.split("+") if part)
    match annotation:
        case _ if annotation is bool:
            if text not in ("true", "false"):
                raise ValueError(text)
            return text == "true"
        case _ if annotation is int:
            number = re.fullmatch(r"(-?\d+)([a-z]*)", text.lower())
            if number is None or number[2] not in UNITS:
                raise ValueError(text)
            return int(number[1]) * UNITS[number[2]]
        case _ if annotation is float:
            value = float(text)
            if not math.isfinite(value):
                raise ValueError(text)
            return value
    return text
