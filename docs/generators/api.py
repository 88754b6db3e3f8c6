"""The page of the Python API: everything in `graphtool.__all__`, with its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import graphtool
from docs.generators.markdown import prose, whole


def page() -> str:
    """Functions with their signatures, then classes and modules."""
    return whole("Python API", (
        "What `import graphtool` offers. Other modules are private: they may change in any "
        "release."), *(_entry(name) for name in sorted(graphtool.__all__)))


def _entry(name: str) -> str:
    found = getattr(graphtool, name)
    doc = prose(inspect.getdoc(found) or "")
    if inspect.isfunction(found):
        return f"## {name}\n\n```python\n{_signature(name, found)}\n```\n\n{doc}\n"
    kind = "class" if inspect.isclass(found) else "module" if inspect.ismodule(found) else "value"
    return f"## {name}\n\nA {kind}.\n\n{doc}\n"


def _signature(name: str, function: Callable[..., object]) -> str:
    """One parameter a line where they do not fit one line."""
    signature = inspect.signature(function)
    parts: list[str] = []
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        stars = "**" if p.kind is p.VAR_KEYWORD else "*" if p.kind is p.VAR_POSITIONAL else ""
        default = "" if p.default is p.empty else f" = {p.default!r}"
        parts.append(f"{stars}{p.name}: {p.annotation}{default}")
    result = f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(parts)}){result}"
    return line if len(line) <= 88 else "\n".join(
        (f"{name}(", *(f"    {part}," for part in parts), f"){result}"))
