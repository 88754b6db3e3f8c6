"""Names of outputs from the structure that a model returns."""

from __future__ import annotations


def output_name(path: tuple[str | int, ...]) -> str:
    """`output`, `output_0`, a dict's key or a field's name; deeper ones are joined by dots."""
    if not path:
        return "output"
    first, *rest = path
    head = f"output_{first}" if isinstance(first, int) else first
    return ".".join([head, *map(str, rest)])
