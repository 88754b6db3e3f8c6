"""jvp, vmap: graphs of directional derivatives, and of many examples at once."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from graphtool.cli import options, sources, terminal
from graphtool.errors import UsageError


def jvp(graph: options.Graph, out: options.Out = None,
        wrt: options.Wrt = "inputs",
        bound: Annotated[int | None, typer.Option(
            "--bound", min=0, help="The most turns of each `while` that states none.")] = None
        ) -> None:
    """The derivative along a direction: an input NAME.tangent for each value, an output
    tangent.NAME behind the others. Of a graph of gradients: Hessian times vector."""
    from graphtool.transforms import modules
    names = tuple(n.strip() for n in wrt.split(",") if n.strip())
    given = sources.read(graph)
    result = modules.jvp(given.module, names, bound)
    sources.save(result, out, given.text)
    terminal.note(f"{len(result.graph.nodes)} nodes")


def vmap(graph: options.Graph, out: options.Out = None,
         in_axes: Annotated[str, typer.Option(
             "--in-axes", help="Where the axis of examples stands: x=1,table=none; else 0.")] = "",
         size: Annotated[str, typer.Option(
             "--size", help="How many examples, or the name of an open dim.")] = "examples"
         ) -> None:
    """The graph over many examples at once; every output has their axis first."""
    from graphtool.transforms import modules
    axes: dict[str, int | None] = {}
    for item in filter(None, in_axes.split(",")):
        name, _, value = item.rpartition("=")
        if not name or not re.fullmatch(r"-?\d+|none", value):
            raise UsageError("GT3037", f"--in-axes {item!r} is not NAME=AXIS",
                             hint="as in --in-axes x=1,table=none")
        axes[name] = None if value == "none" else int(value)
    if not re.fullmatch(r"\d+|[A-Za-z_]\w*", size):
        raise UsageError("GT3037", f"--size {size!r} is neither a number nor a name")
    given = sources.read(graph)
    result = modules.vmap(given.module, axes, int(size) if size.isdigit() else size)
    sources.save(result, out, given.text)
    terminal.note(f"{len(result.graph.nodes)} nodes")
