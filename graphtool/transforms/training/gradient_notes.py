"""Notes on a module's gradients that depend on its origin: some captures see less than the
author wrote."""

from __future__ import annotations

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.ir.graph import Module

DECOMPOSED = ("torch decomposed this program before it was saved: parts under no_grad cannot be "
              "recognised in it, and gradients flow through them")


def check_hooks(module: Module) -> None:
    """Raise UnsupportedError GT0612 if the model has hooks that change its gradients."""
    if hooks := module.meta.get("hooks"):
        raise UnsupportedError("GT0612", "a gradient that capture could not see", tuple(
            Unsupported(name, "it has a backward hook, which capture does not see")
            for name in hooks), hint="import the model without its hooks")


def gradient_note(module: Module) -> str:
    """A sentence on the gradients that this module lacks; empty if it lacks none."""
    return DECOMPOSED if module.meta.get("decomposed") else ""
