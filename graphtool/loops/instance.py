"""One use of a template, as the interpreter sees it: numbers for macros, arrays for pointers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphtool.errors import InputError
from graphtool.loops.areas import Area
from graphtool.loops.ir import Template
from graphtool.symbolic import Poly, evaluate

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
        found = dict(self.template.macros).get(macro, self.defaults.get(macro))
        if found is None:
            raise InputError("GT0571", f"{self.template.kernel} is used without {macro}",
                             where=self.where)
        return evaluate(found, self.env) if isinstance(found, Poly) else found

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
