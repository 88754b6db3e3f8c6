"""Which values a list like `params,inputs,fc1.weight` means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Value, is_constant


def selected(graph: Graph, names: Mapping[Value, str], wrt: Sequence[str]) -> list[Value]:
    """`params`, `inputs` and single names as float values, each once. Raises InputError GT0611."""
    constants = [n for n in graph.nodes if is_constant(n)]
    groups = {"params": [n.outputs[0] for n in constants
                         if n.attrs["param"] and n.outputs[0].type.dtype.is_float],
              "inputs": [v for v in graph.inputs if v.type.dtype.is_float]}
    values = (*(n.outputs[0] for n in constants), *graph.inputs)
    by_name = {names[v].lstrip("@"): v for v in values}
    out: dict[Value, None] = {}
    for name in wrt:
        found = groups.get(name) or ([by_name[name]] if name in by_name else [])
        if not found:
            raise InputError("GT0611", f"nothing to differentiate by: {name!r}",
                             hint=f"params, inputs, or one of {_some(by_name)}")
        out.update(dict.fromkeys(found))
    return list(out)


def _some(names: Mapping[str, Any]) -> str:
    return ", ".join(list(names)[:12]) + (" …" if len(names) > 12 else "")
