"""The contract of a template: its macros as typed values, its pointers, its hook, and what it does.

A kernel's module states what its C computes, on an `Instance` with arrays, and the areas of memory
that it touches. The verifier, the interpreter and the C printer read the table, which the kernels
fill at import: a macro that is in no row, or is of another kind, is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphtool.dtypes import DType
from graphtool.errors import InputError, InternalError
from graphtool.loops.ir import MacroValue, Template
from graphtool.loops.touches import Area, Numbers, Order, Rows
from graphtool.symbolic import Dim, Poly, evaluate

Touches = Callable[[Numbers], Iterable[Area | Rows]]
Ordered = Callable[[Numbers], Order]
Teams = Callable[[Mapping[str, Any], int], Dim]
Tables = Callable[[Numbers, Mapping[str, np.ndarray[Any, Any]]], Iterable[Area]]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Instance:
    """One use of a template. `areas` is what it touches by its contract, `arguments` has the
    argument names of each pointer; `finish` runs the hook."""

    template: Template
    arrays: Mapping[str, Array]
    env: Mapping[str, Any]
    lanes: int
    defaults: Mapping[str, Any]
    arguments: Mapping[str, tuple[str, ...]]
    areas: Mapping[str, Area]
    finish: Callable[[Array, tuple[int, ...]], None]
    where: str

    def get(self, macro: str) -> Any:
        """The value of a macro, or its default. Raises InputError GT0571 if it has neither."""
        value = dict(self.template.macros).get(macro, self.defaults.get(macro))
        if value is None:
            raise InputError("GT0571", f"{self.template.kernel} is used without {macro}",
                             where=self.where)
        return evaluate(value, self.env) if isinstance(value, Poly) else value

    def sizes(self, macros: str) -> list[Any]:
        """The values of several macros, whose names are separated by blanks."""
        return [self.get(m) for m in macros.split()]

    def has(self, name: str) -> bool:
        """Whether a pointer or macro was given."""
        return any(name == given[0] for given in (*self.template.pointers, *self.template.macros))

    def pointer(self, name: str, *at: int) -> Array:
        """The rest of the buffer, from the element to which the pointer points."""
        _, buffer, offset = next(p for p in self.template.pointers if p[0] == name)
        env = {**self.env, **dict(zip(self.arguments[name], at, strict=True))}
        return self.arrays[buffer][evaluate(offset, env):]

    def read(self, name: str, *at: int) -> Array:
        """A copy of the area of a pointer, for these values of its arguments."""
        area = self.areas[name]
        return self.array(name, area.shape, area.strides, at)

    def write(self, name: str, values: Array, *at: int) -> None:
        """Write to the area of a pointer, for these values of its arguments."""
        self.store(name, values, self.areas[name].strides, at)

    def read_all(self, name: str) -> Array:
        """The areas of a pointer for all values of its arguments, [*arguments, *area]."""
        area = self.areas[name]
        out = np.empty((*area.at, *area.shape), self.pointer_type(name))
        for at in product(*map(range, area.at)):
            out[at] = self.read(name, *at)
        return out

    def pointer_type(self, name: str) -> Any:
        """The element type of the buffer that a pointer leads to."""
        return next(self.arrays[b].dtype for n, b, _ in self.template.pointers if n == name)

    def array(self, name: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None,
              at: tuple[int, ...] = ()) -> Array:
        """A copy of the elements at a pointer; dense unless strides are given.

        Raises InputError GT0570 if the buffer does not hold all of them.
        """
        x = self._spread(name, shape, strides, at)
        return x.copy()

    def store(self, name: str, values: Array, strides: tuple[int, ...] | None = None,
              at: tuple[int, ...] = ()) -> None:
        """Write the elements at a pointer."""
        self._spread(name, values.shape, strides, at)[...] = values

    def _spread(self, name: str, shape: tuple[int, ...], strides: tuple[int, ...] | None,
                at: tuple[int, ...]) -> Array:
        x = self.pointer(name, *at)
        if strides is None:
            strides = tuple(int(np.prod(shape[i + 1:])) for i in range(len(shape)))
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if 0 not in shape and last >= x.size:
            raise InputError("GT0570", f"{name}[{last}] of {x.size} elements", where=self.where)
        return as_strided(x, shape, tuple(s * x.itemsize for s in strides))

    def row(self, sums: Array, *indices: int) -> None:
        """Give a finished row to the hook."""
        self.finish(sums, indices)

    def rows(self, sums: Array, *before: int, first: int = 0) -> None:
        """Give each row of an array to the hook; its indices are those of the array's axes,
        after `first`."""
        for at in product(*map(range, sums.shape[:-1])):
            self.finish(sums[at], (*before, *at, first))


Kind = Literal["size", "literal", "flag", "mark", "number", "type", "word"]
Grain = Literal["whole", "pieces", "shares"]
REQUIRED: Any = object()
HOME = "c"  # the language of all templates
SHARED = "SHARED"  # the macro with the bytes that a launch on a device gives each team, where a
# template has more than its text can declare
HOOK = "epilogue"  # the name of every hook, GT_EPILOGUE in C


@dataclass(frozen=True, slots=True)
class Macro:
    """One macro, GT_NAME in C.

    size: an index polynomial; literal: an integer; flag: 1 or 0; mark: defined or left out;
    number: a float32; type: an element type; word: a key of `words`, whose text is the C.
    """

    name: str
    kind: Kind
    doc: str
    default: Any = REQUIRED  # None: the header has its own default
    words: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def takes(self, value: MacroValue) -> bool:
        """Whether the value is of the macro's kind."""
        match self.kind:
            case "size":
                return isinstance(value, (int, Poly)) and not isinstance(value, bool)
            case "literal":
                return isinstance(value, int) and not isinstance(value, bool)
            case "flag":
                return isinstance(value, bool)
            case "mark":
                return value is True
            case "number":
                return isinstance(value, float) and math.isfinite(value)
            case "type":
                return isinstance(value, DType)
            case "word":
                return isinstance(value, str) and value in self.words


@dataclass(frozen=True, slots=True)
class Pointer:
    """One pointer, GT_NAME or GT_NAME(arguments) in C."""

    name: str
    doc: str
    arguments: tuple[str, ...] = ()
    required: bool = True
    writes: bool = False

    @property
    def by_thread(self) -> bool:
        """Whether each thread has memory of its own here, for the work that it does at a time."""
        return self.arguments == ("t",)


@dataclass(frozen=True)
class Contract:
    """A template: NAME.h, and what it is called in other languages.

    `hook` names the indices that its epilogue gets; it is empty if there is no epilogue. `row` is
    the most elements that a call of it takes, 0 where that depends on the use. `meaning`
    computes the same as the C, on the arrays of the interpreter. `touches` gives all that the C
    touches, for macros that are numbers; the reader of programs refuses a template without one.
    `tables` gives what constant operands lead to, by their data. `order` says when it touches its
    operand and its results, so that these can share memory; one thread does all of its work.
    `grain`: the work of a thread is taken whole; or in pieces, any number of which the C can be
    asked for; or in pieces whose number in a thread's share, GT_PIECES, the C also wants to know.
    `phases`: the work has phases: threads take the shares of each by GT_PHASE, and wait for its end
    by GT_WAIT; always, or where this mark is set. Then GT_COMMON is the first thread's memory
    of a pointer that is `by_thread`, for all threads; with a mark they use no other.
    `languages`: the languages in which it has a text, and how the names of these files end; in
    others it is its op's definition. `teams` gives, for its macros and the lanes, how many teams of
    workers have work, where such a language has them.
    """

    name: str
    doc: str
    macros: tuple[Macro, ...]
    pointers: tuple[Pointer, ...]
    meaning: Callable[[Instance], None]
    hook: tuple[str, ...] = ()
    touches: Touches | None = None
    tables: Tables | None = None
    grain: Grain = "whole"
    phases: bool | str = False
    languages: Mapping[str, str] = field(default_factory=lambda: {HOME: ".h"})
    teams: Teams | None = None
    row: int = 0
    order: Ordered | None = None

    @property
    def header(self) -> str:
        """The file name of its text in C."""
        return self.text(HOME)

    def text(self, language: str) -> str:
        """The file name of its text in a language. Raises InputError GT0572 if it has none."""
        if language not in self.languages:
            raise InputError("GT0572", f"the kernel {self.name} has no text in {language}",
                             hint="lower the graph again for this target: its passes then use what "
                                  "the kernel means")
        return f"{self.name}{self.languages[language]}"

    def macro(self, name: str) -> Macro | None:
        """The row of a macro; None if there is none."""
        return next((m for m in self.macros if m.name == name), None)

    def pointer(self, name: str) -> Pointer | None:
        """The row of a pointer; None if there is none."""
        return next((p for p in self.pointers if p.name == name), None)


CONTRACTS: dict[str, Contract] = {}


def register(contract: Contract) -> Contract:
    """Add a template to the table. Called at import only."""
    names = [m.name for m in contract.macros] + [p.name for p in contract.pointers]
    if contract.name in CONTRACTS or len(set(names)) < len(names):
        raise InternalError("GT7001", f"the template {contract.name} is declared twice, or one of "
                                      "its macros is")
    CONTRACTS[contract.name] = contract
    return contract


def misfits(c: Contract, t: Template) -> Iterator[str]:
    """The ways in which a use of the template breaks its contract, one on each line."""
    for name, value in t.macros:
        row = c.macro(name)
        if row is None:
            yield f"{c.name} has no macro {name[:40]!r}"
        elif not row.takes(value):
            yield f"the macro {name} of {c.name} cannot be {str(value)[:40]!r}: it is a {row.kind}"
    for name, *_ in t.pointers:
        if c.pointer(name) is None:
            yield f"{c.name} has no pointer {name[:40]!r}"
    given = [n for n, _ in t.macros] + [n for n, *_ in t.pointers]
    needed = [m.name for m in c.macros if m.default is REQUIRED]
    needed += [p.name for p in c.pointers if p.required]
    yield from (f"{c.name} needs {n}" for n in needed if n not in given)
    yield from (f"{n} of {c.name} is given twice" for n in sorted({
        n for n in given if given.count(n) > 1}))
    if [len(h.indices) for h in t.hooks] != ([len(c.hook)] if c.hook else []):
        yield f"{c.name} needs {f'a hook of {len(c.hook)} indices' if c.hook else 'no hook'}"
    yield from (f"the hook of {c.name} is {HOOK}, not {h.name[:40]!r}" for h in t.hooks
                if h.name != HOOK)


# ---- short forms of rows -----------------------------------------------------------------------

def sizes(**docs: str) -> tuple[Macro, ...]:
    """Required index polynomials, by name."""
    return tuple(Macro(name, "size", doc) for name, doc in docs.items())


def literals(**docs: str) -> tuple[Macro, ...]:
    """Required integers, by name."""
    return tuple(Macro(name, "literal", doc) for name, doc in docs.items())


def flags(**docs: str) -> tuple[Macro, ...]:
    """Required flags (true or false), by name."""
    return tuple(Macro(name, "flag", doc) for name, doc in docs.items())


def mark(name: str, doc: str) -> Macro:
    """A macro that is either defined or left out."""
    return Macro(name, "mark", doc, False)


def word(name: str, doc: str, words: Mapping[str, str], arguments: tuple[str, ...] = (),
         default: Any = REQUIRED) -> Macro:
    """A macro that is one of a closed set of C texts, chosen by its name."""
    return Macro(name, "word", doc, default, words, arguments)
