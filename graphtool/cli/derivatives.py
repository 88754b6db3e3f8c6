"""jvp, vmap: graphs of directional derivatives, and of many examples at once."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from graphtool.cli import options, saving, sources, terminal
from graphtool.errors import UsageError


def jvp(graph: options.Graph, out: options.Out = None,
        wrt: options.Wrt = "inputs",
        bound: Annotated[int | None, typer.Option(
            "--bound", min=0, help="An upper bound for the trip count of each `while` loop "
            "that states none.")] = None,
        capture: options.Capture = None) -> None:
    """Add the derivative along a direction to a graph (forward mode).

    Each value to differentiate by gets an input NAME.tangent, each output a second output
    tangent.NAME. Applied to a graph of gradients, this is the product of Hessian and vector."""
    from graphtool.transforms import modules
    names = tuple(n.strip() for n in wrt.split(",") if n.strip())
    given = sources.read(graph, sources.captured(capture))
    result = modules.jvp(given.module, names, bound)
    saving.save(result, out, graph, "jvp", given.text)
    terminal.note(f"{len(result.graph.nodes)} nodes")


def vmap(graph: options.Graph, out: options.Out = None,
         in_axes: Annotated[str, typer.Option(
             "--in-axes", help="The axis of examples in each input, as in x=1,table=none. "
             "By default axis 0.")] = "",
         size: Annotated[str, typer.Option(
             "--size", help="The number of examples, or the name of an open dim.")] = "examples",
         capture: options.Capture = None) -> None:
    """Turn a graph for one example into a graph for many.

    Every output gets the axis of examples as its first one."""
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
    given = sources.read(graph, sources.captured(capture))
    result = modules.vmap(given.module, axes, int(size) if size.isdigit() else size)
    saving.save(result, out, graph, "vmap", given.text)
    terminal.note(f"{len(result.graph.nodes)} nodes")
