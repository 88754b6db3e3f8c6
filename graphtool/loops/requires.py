"""The plug-ins that a program needs: those of its templates and scalar functions."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import Apply, Template
from graphtool.loops.program import Program
from graphtool.loops.walk import each, statements, values
from graphtool.plugins import missing, needed
from graphtool.scalars.table import BY_NAME

KEYS = {"kernel": "kernels of plug-ins", "scalar": "functions of plug-ins"}


def meta_with_plugins(program: Program) -> dict[str, str]:
    """The program's metadata with the plug-ins it needs, as `NAME VERSION: name name; …` for
    each kind."""
    body = [s for k in program.kernels for s in statements(k.body)]
    uses = {"kernel": [s.kernel for s in body if isinstance(s, Template)],
            "scalar": [e.fn for e in each(v for s in body for v in values(s))
                       if isinstance(e, Apply)]}
    texts = {KEYS[kind]: "; ".join(f"{name} {row['version']}: {' '.join(row[kind + 's'])}"
                                   for name, row in needed(kind, names).items())
             for kind, names in uses.items()}
    return program.meta | {key: text for key, text in texts.items() if text}


def satisfied(meta: Mapping[str, str], where: str) -> dict[str, str]:
    """The metadata without the plug-ins that are needed. Raises UnsupportedError GT0358 if one
    is not loaded."""
    absent = []
    for kind, known in (("kernel", CONTRACTS.keys()), ("scalar", BY_NAME.keys())):
        for entry in filter(None, meta.get(KEYS[kind], "").split("; ")):
            plugin, _, names = entry.partition(": ")
            name, _, version = plugin.partition(" ")
            absent += [(kind, n, name, version) for n in names.split() if n not in known]
    if absent:
        raise missing("program", absent, where)
    return {k: v for k, v in meta.items() if k not in KEYS.values()}
