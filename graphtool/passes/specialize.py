"""Replaces symbolic sizes by numbers, in the graph and in the module's table of symbols."""

from __future__ import annotations

import dataclasses

from graphtool.errors import UsageError, near
from graphtool.ir.bind import bind
from graphtool.ir.graph import Module
from graphtool.symbolic import check_bounds, check_required


def specialize(module: Module, **sizes: int) -> Module:
    """The module with numbers for the named symbols, which must be within their bounds."""
    for name, size in sizes.items():
        if name not in module.symbols:
            raise UsageError("GT0607", f"specialize: the module has no symbol {name!r}",
                             hint=near(name, module.symbols,
                                       f"it has {', '.join(module.symbols) or 'none'}"))
        check_bounds(module.symbols[name], size)
    if not sizes:
        return module
    check_required(module.requires, sizes)
    symbols = {n: s for n, s in module.symbols.items() if n not in sizes}
    requires = [e.under(sizes) for e in module.requires]
    return dataclasses.replace(module, graph=bind(module.graph, sizes), symbols=symbols,
                               requires=tuple(e for e in requires if e.holds is not True))
