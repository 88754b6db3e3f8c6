"""The values that a list such as `params,inputs,fc1.weight,!head.*` selects, and notes on gradients
where a capture sees less than the author wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from graphtool.errors import InputError, Unsupported, UnsupportedError, near
from graphtool.ir.graph import Graph, Module, Value, is_constant

DECOMPOSED = ("torch decomposed this program before it was saved: parts under no_grad cannot be "
              "recognised in it, and gradients flow through them")


def selected(graph: Graph, names: Mapping[Value, str], wrt: Sequence[str]) -> list[Value]:
    """Float values of the graph, each once, in the order of the list.

    `params` are the trained parameters, `inputs` the float inputs; any other entry is a value's own
    name or a pattern of names (`*` any letters, `?` one, `[ab]` one of these). `!` before a pattern
    excludes the values that it matches; a list with only such entries starts from `params`. Raises
    InputError GT0611 for an entry that matches nothing, and if nothing is left.
    """
    constants = [n for n in graph.nodes if is_constant(n)]
    groups = {"params": [n.outputs[0] for n in constants
                         if n.attrs["param"] and n.outputs[0].type.dtype.is_float],
              "inputs": [v for v in graph.inputs if v.type.dtype.is_float]}
    values = (*(n.outputs[0] for n in constants), *graph.inputs)
    by_name = {names[v].lstrip("@"): v for v in values}
    floats = {n: v for n, v in by_name.items() if v.type.dtype.is_float}
    wanted = [n for n in wrt if not n.startswith("!")]
    out: dict[Value, None] = {}
    for name in wanted or ["params"]:
        group = groups.get(name) or ([by_name[name]] if name in by_name else
                                     _matching(floats, name))
        if not group:
            raise _nothing(name, by_name)
        out.update(dict.fromkeys(group))
    for name in (n for n in wrt if n.startswith("!")):
        group = groups.get(name[1:]) or _matching(by_name, name[1:])
        if not group:
            raise _nothing(name, by_name)
        out = {v: None for v in out if v not in group}
    if not out:
        raise _nothing(",".join(wrt), by_name)
    return list(out)


def _matching(by_name: Mapping[str, Value], pattern: str) -> list[Value]:
    return [v for n, v in by_name.items() if fnmatchcase(n, pattern)]


def _nothing(name: str, by_name: Mapping[str, Value]) -> InputError:
    some = ", ".join(list(by_name)[:12]) + (" …" if len(by_name) > 12 else "")
    return InputError("GT0611", f"nothing to differentiate by: {name!r}",
                      hint=near(name, by_name, "params (those with requires_grad), inputs, "
                                               f"or one of {some}"))


def check_hooks(module: Module) -> None:
    """Raise UnsupportedError GT0612 if the model has hooks that change its gradients."""
    if hooks := module.meta.get("hooks"):
        raise UnsupportedError("GT0612", "a gradient that capture could not see", tuple(
            Unsupported(name, "it has a backward hook, which capture does not see")
            for name in hooks), hint="import the model without its hooks")


def gradient_note(module: Module) -> str:
    """A sentence on the gradients that this module lacks; empty if it lacks none."""
    return DECOMPOSED if module.meta.get("decomposed") else ""
