"""Graphs as StableHLO text, which XLA, IREE and JAX read.

An op that StableHLO has is one operation. Any other is a composite of our op's name, whose function
defines it: other tools run the function, and `graphtool import` reads the op again.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import graphtool.ops  # noqa: F401  (fills the table of ops)
from graphtool.errors import UnsupportedError
from graphtool.escaping import mlir_string
from graphtool.exporters.forms import Ref
from graphtool.exporters.stablehlo import (  # noqa: F401  (each fills the registry)
    control,
    elementwise,
    movement,
    products,
    reduce,
    special,
)
from graphtool.exporters.stablehlo.function import (
    INDENT,
    FunctionState,
    braced,
    told_of,
    with_arguments,
)
from graphtool.exporters.stablehlo.nodes import nodes
from graphtool.exporters.stablehlo.registry import BODIES, DEFINITIONS, FORMS
from graphtool.exporters.stablehlo.text import LocationAliases, attribute, dense, identifier, tensor
from graphtool.exporters.stablehlo.writer import PARAMETER, Shared, Writer
from graphtool.io import files, pairs
from graphtool.io.weights import save_named
from graphtool.ir.graph import Module, Value
from graphtool.ir.text import value_names
from graphtool.symbolic import text

INITIAL = "graphtool.initial"  # the first contents of a donated input
REQUIRES = "graphtool.requires"  # pairs of sizes that must be equal
WEIGHTS = "graphtool.weights"  # the name of the file that holds the parameters
__all__ = ["BODIES", "DEFINITIONS", "FORMS", "export_stablehlo", "stablehlo_of"]


def export_stablehlo(module: Module, path: Path, *, composites: bool = True,
                     aliases: bool = True, arguments: bool = False) -> None:
    """Write `path`; with `arguments`, the parameters are arguments behind the inputs, and
    `path`.safetensors has them under the arguments' names.

    Raises UnsupportedError GT1050 with a list of all that cannot be written.
    """
    opened, weights = with_arguments(module) if arguments else (module, {})
    text = stablehlo_of(opened, composites=composites, aliases=aliases, parameters=weights)
    if not weights:
        files.write_bytes(path, text.encode())
        return
    first, _, rest = text.partition(" {\n")
    name, _, more = first.partition(" attributes {")
    side = path.with_name(f"{path.name}.safetensors")
    pairs.replace(path, side, lambda held: (
        f"{name} attributes {{{WEIGHTS} = {mlir_string(held)}{', ' * (len(more) > 1)}{more[:-1]}"
        f"}} {{\n{rest}").encode(),
        lambda file: save_named(weights, file))


def stablehlo_of(module: Module, *, elide: bool = False, composites: bool = True,
                 aliases: bool = True, parameters: Collection[str] = ()) -> str:
    """The text of a module.

    With `elide`, large constants are left out, so that the text can be read, but not run. Without
    `composites`, what defines an op stands in its place. Without `aliases`, the text does not say
    which output takes the memory of a donated input. `parameters` names the inputs that are
    parameters of the model. Raises UnsupportedError GT1050.
    """
    shared = Shared(LocationAliases(module.locations), elide, composites)
    main = FunctionState("main", public=True)
    w = Writer(shared, main)
    names = {v: n.removeprefix("@") for v, n in value_names(module.graph).items()}
    env: dict[Value, Ref] = {}
    donated = {i: out for out, i in module.donations if aliases}
    for i, v in enumerate(module.graph.inputs):
        env[v] = w.argument(v.type, names[v])
        attributes = told_of(v.type)
        if i in donated:
            attributes["tf.aliasing_output"] = f"{donated[i]} : i32"
        if i in module.initial:
            attributes[INITIAL] = f"{dense(module.initial[i], elide)} : {tensor(v.type)}"
        if names[v] in parameters:
            attributes[PARAMETER] = mlir_string(names[v])
        main.argument(env[v], braced(attributes), names[v])
    nodes(w, module.graph, env, names)
    if shared.refused:
        items = shared.unsupported()
        count = sum(len(i.places) for i in items)
        raise UnsupportedError("GT1050", f"StableHLO cannot express {count} node"
                               f"{'s' * (count > 1)}", items,
                               hint="compile the graph instead, or do this part outside of it")
    outputs = [env[v] for v in module.graph.outputs]
    info = [f" {{jax.result_info = {mlir_string(n)}}}" for n in module.output_names]
    functions = [main.text(w.lines, outputs, info), *filter(None, shared.functions)]
    name = identifier(str(module.meta.get("name") or "graphtool"))
    rules = [[text(e.left), text(e.right)] for e in module.requires]
    more = f" attributes {{{REQUIRES} = {attribute(rules)}}}" if rules else ""
    lines = [f"module @{name}{more} {{", *(INDENT + s for f in functions for s in f.split("\n")),
             "}", *shared.places.definitions()]
    return "\n".join(lines) + "\n"

