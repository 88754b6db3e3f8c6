"""jvp, vjp, jacobian: derivatives of a graph as further outputs of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphtool.cli import options, saving, sources, terminal

if TYPE_CHECKING:
    from graphtool.ir.graph import Module

_Bound = Annotated[int | None, typer.Option(
    "--bound", min=0, help="An upper bound for the trip count of each `while` loop that states "
    "none.")]
_Of = Annotated[str, typer.Option(
    "--of", help="The outputs to differentiate, separated by commas. By default all of floats.")]


def jvp(graph: options.Graph, out: options.Out = None, wrt: options.Wrt = "inputs",
        bound: _Bound = None, capture: options.Capture = None) -> None:
    """Add the derivative along a direction to a graph (forward mode).

    Each value to differentiate by gets an input NAME.tangent, each output a second output
    tangent.NAME. Applied to a graph of gradients, this is the product of Hessian and vector."""
    from graphtool.transforms import modules
    _derive("jvp", graph, out, capture, lambda m: modules.jvp(m, _listed(wrt), bound))


def vjp(graph: options.Graph, out: options.Out = None, wrt: options.Wrt = "inputs",
        of: _Of = "", bound: _Bound = None, capture: options.Capture = None) -> None:
    """Add the derivatives of a weighted sum of the outputs to a graph (reverse mode).

    Each output gets an input OUTPUT.cotangent, its weights, and each value to differentiate by an
    output cotangent.NAME."""
    from graphtool.transforms import modules
    _derive("vjp", graph, out, capture, lambda m: modules.vjp(m, _listed(wrt), _listed(of), bound))


def jacobian(graph: options.Graph, out: options.Out = None, wrt: options.Wrt = "inputs",
             of: _Of = "", bound: _Bound = None, capture: options.Capture = None) -> None:
    """Add the derivatives of all outputs by all inputs to a graph.

    Each output gets outputs jacobian.OUTPUT.NAME, whose shape is that of the output, then that of
    the value. Applied to a graph of gradients or to a vjp, this is the Hessian."""
    from graphtool.transforms import modules
    _derive("jacobian", graph, out, capture,
            lambda m: modules.jacobian(m, _listed(wrt), _listed(of), bound))


def _listed(names: str) -> tuple[str, ...]:
    return tuple(n.strip() for n in names.split(",") if n.strip())


def _derive(verb: str, graph: str, out: Path | None, capture: str | None,
            derive: Callable[[Module], Module]) -> None:
    """Read, derive, write."""
    given = sources.read(graph, sources.captured(capture))
    result = derive(given.module)
    saving.save(result, out, graph, verb, given.text)
    terminal.note(f"{len(result.graph.nodes)} nodes")
