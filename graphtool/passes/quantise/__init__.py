"""quantise: weights of products and tables in fewer bits, as far as no examples are needed for it.

`graphtool quantise` also takes examples: it finds grids for activations, compensates rounding, and
chooses layers.
"""

from __future__ import annotations

from typing import Literal

from graphtool.errors import UsageError
from graphtool.ir.graph import Graph
from graphtool.passes.quantise.layers import Layer, layers, named
from graphtool.passes.quantise.rewrite import LayerChoice, rewritten
from graphtool.passes.quantise.weights import BITS, Form, stored

DataFree = Literal["dynamic", "int8", "int4", "int2", "bfloat16", "float16"]


def quantise(graph: Graph, *, form: DataFree = "dynamic", block: int = 32,
             only: tuple[str, ...] = (), skip: tuple[str, ...] = ()) -> Graph:
    """The graph with its layers in this form, weights rounded to nearest.

    dynamic: int8, activations by their range at run time. int8, int4, int2: weights only, with a
    scale for each `block` inputs. bfloat16, float16: products of such numbers, with sums in
    float32. `only` and `skip` are
    patterns of layers' names. Raises UsageError GT0643 for a block that does not fill whole bytes,
    InputError GT0640 for a pattern that fits no layer.
    """
    check_block(form, block)
    chosen = [LayerChoice(layer, form, stored(layer, form, block))
              for layer in named(layers(graph), only, skip) if not why_not(layer, form)]
    return rewritten(graph, chosen)


def check_block(form: Form, block: int) -> None:
    """Raise UsageError GT0643 unless a block of the form's integers fills whole bytes."""
    if block < 1 or block * BITS.get(form, 8) % 8:
        raise UsageError("GT0643", f"a block of {block} integers does not fill whole bytes",
                         hint="a multiple of 8, such as 32")


def why_not(layer: Layer, form: Form) -> str:
    """Why the layer cannot have the form; empty if it can."""
    kind, attrs = layer.kind, layer.node.attrs
    if kind == "conv" and form in BITS and (
            attrs["groups"] > 1 or any(d != 1 for d in attrs["lhs_dilation"] or ())):
        return "a convolution with groups, or a transposed one, has no blocks: static or dynamic"
    if kind == "activations" and form != "static":
        return "a product of two activations has no weight: static"
    if kind == "table" and form in ("static", "dynamic"):
        return "a table has no activation: int8, bfloat16 or float16"
    return ""
