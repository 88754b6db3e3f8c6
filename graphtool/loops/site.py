"""A template as its meaning sees it: macros as numbers, pointers as arrays, the hook to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphtool.errors import InputError
from graphtool.io.weights import Array
from graphtool.loops.ir import Template
from graphtool.symbolic import evaluate


class Site:
    """A template where it is used: its macros as numbers, its pointers, its hook."""

    def __init__(self, template: Template, kernel: str, arrays: Mapping[str, Array],
                 env: Mapping[str, Any], lanes: int, epilogue: Callable[..., None]) -> None:
        self.template, self.arrays, self.env, self.lanes = template, arrays, env, lanes
        self.kernel, self.macros = kernel, dict(template.macros)
        self.epilogue = epilogue  # takes a finished row and where it begins

    def number(self, macro: str, default: float | None = None) -> Any:
        """A macro's value: a polynomial, or a literal of C.

        Raises InputError GT0571 where the template leaves out a macro that has no default.
        """
        found = self.macros.get(macro, default)
        if found is None:
            raise InputError("GT0571", f"{self.template.header} is used without {macro}",
                             where=f"kernel {self.kernel}")
        if isinstance(found, str):
            word = found.strip("()")
            return float(word.rstrip("f")) if "." in word or "e" in word else int(word)
        return found if isinstance(found, float) else evaluate(found, self.env)

    def has(self, pointer: str) -> bool:
        return any(k.partition("(")[0] == pointer for k, _, _ in self.template.pointers)

    def pointer(self, name: str, *arguments: int) -> Array:
        """The buffer from where the pointer points on."""
        key, buffer, offset = next(p for p in self.template.pointers
                                   if p[0].partition("(")[0] == name)
        names = [n for n in key.partition("(")[2].rstrip(")").split(", ") if n]
        env = {**self.env, **dict(zip(names, arguments, strict=True))}
        return self.arrays[buffer][evaluate(offset, env):]
