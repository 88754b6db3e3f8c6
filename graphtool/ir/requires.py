"""Which plug-ins a graph needs: written into its file's meta, and asked for before it is read.

A file only names a plug-in. Nothing is loaded because of it: a person gives the plug-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.errors import InputError, Unsupported, UnsupportedError
from graphtool.ir.graph import Graph, Module
from graphtool.ir.op import OPS
from graphtool.ir.run_sizes import all_nodes
from graphtool.plugins import LOADED, owner_of

KEY = "plugins"


def told(module: Module) -> dict[str, Any]:
    """The module's meta with what it needs: `{"plugins": {NAME: {"version": …, "ops": […]}}}`."""
    found = needs(module.graph) if LOADED else {}
    return {**module.meta, KEY: found} if found else dict(module.meta)


def needs(graph: Graph) -> dict[str, dict[str, Any]]:
    """The plug-ins whose ops stand in the graph, by name, with their versions and these ops."""
    names: dict[str, set[str]] = {}
    versions: dict[str, str] = {}
    for op in {n.op.name for n in all_nodes(graph)}:
        if (owner := owner_of("op", op)) is not None:
            names.setdefault(owner.name, set()).add(op)
            versions[owner.name] = owner.version
    return {name: {"version": versions[name], "ops": sorted(names[name])} for name in sorted(names)}


def satisfied(meta: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The meta without what the file needs, which the next file states anew.

    Raises UnsupportedError GT0358 with every op of a plug-in that is not loaded, InputError GT0342
    where the entry is none.
    """
    try:
        missing = [(name, str(row["version"]), str(op)) for name, row in meta.get(KEY, {}).items()
                   for op in row["ops"] if op not in OPS]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError("GT0342", "malformed graph: meta.plugins names no plug-ins",
                         where=where) from error
    if missing:
        names = dict.fromkeys(name for name, _, _ in missing)
        raise UnsupportedError(
            "GT0358", f"the graph needs the plug-in {', '.join(names)}",
            tuple(Unsupported(op, f"an op of the plug-in {name} {version}".rstrip())
                  for name, version, op in missing), where=where,
            hint="give the file of each: " + " ".join(f"--plugin {name}.py" for name in names))
    return {k: v for k, v in meta.items() if k != KEY}
