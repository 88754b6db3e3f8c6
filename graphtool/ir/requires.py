"""What a module expects of those who run it: plug-ins, and outputs that must be true.

A file's meta names the plug-ins that its graph needs, and is checked before the file is read.
Nothing is loaded because of it: a person names the plug-ins to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.errors import InputError
from graphtool.ir.graph import Module
from graphtool.ir.op import OPS
from graphtool.ir.run_sizes import all_nodes
from graphtool.plugins import missing, needed

KEY = "plugins"


def meta_with_plugins(module: Module) -> dict[str, Any]:
    """The module's meta with the plug-ins it needs:
    `{"plugins": {NAME: {"version": …, "ops": […]}}}`."""
    plugins_ = needed("op", (n.op.name for n in all_nodes(module.graph)))
    return {**module.meta, KEY: plugins_} if plugins_ else dict(module.meta)


def satisfied(meta: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The meta without the entry for plug-ins, which is computed again for the next file.

    Raises UnsupportedError GT0358 with every op of a plug-in that is not loaded, InputError GT0342
    if the entry is malformed.
    """
    try:
        absent = [("op", str(op), name, str(row["version"])) for name, row in meta.get(
            KEY, {}).items() for op in row["ops"] if op not in OPS]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError("GT0342", "malformed graph: meta.plugins does not name plug-ins",
                         where=where) from error
    if absent:
        raise missing("graph", absent, where)
    return {k: v for k, v in meta.items() if k != KEY}


EXPECTED = "expect."


def unmet(results: Mapping[str, Any]) -> list[str]:
    """The names of the expectations among the outputs that do not hold."""
    return [n for n, x in results.items()
            if n.startswith(EXPECTED) and x.dtype == bool and not x.all()]
