"""Indexing by data: gather and scatter.

They are composites, since our indices are within range; StableHLO clamps those of a gather, and
leaves out updates beyond the edge.
"""

from __future__ import annotations

from graphtool.exporters.stablehlo.movement import is_open
from graphtool.exporters.stablehlo.registry import Ref, body
from graphtool.exporters.stablehlo.sizes import vector
from graphtool.exporters.stablehlo.text import array, ints
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Node, TensorType


@body("gather")
def gather(w: Writer, node: Node, x: Ref, indices: Ref) -> Ref:
    """Our gather; what it reads has size 1 on the indexed and batch axes, the whole of others."""
    axes, batch, to = node.attrs["axes"], node.attrs["batch"], node.outputs[0].type
    lead = len(indices.shape) - 1
    taken = [d if a >= batch and a not in axes else 1 for a, d in enumerate(x.shape)]
    numbers = (f"dimension_numbers = #stablehlo.gather<"
               f"offset_dims = {ints(range(lead, len(to.shape)))}, "
               f"collapsed_slice_dims = {ints(sorted(axes))}, "
               f"operand_batching_dims = {ints(range(batch))}, "
               f"start_indices_batching_dims = {ints(range(batch))}, "
               f"start_index_map = {ints(axes)}, index_vector_dim = {lead}>, "
               f"indices_are_sorted = false")
    if is_open(taken):
        return w.generic("dynamic_gather", [x, indices, vector(w, taken)], [to], numbers)[0]
    return w.generic("gather", [x, indices], [to], f"{numbers}, slice_sizes = {array(taken)}")[0]


_BODY = {"add": "add", "mul": "multiply", "min": "minimum", "max": "maximum"}


@body("scatter")
def scatter(w: Writer, node: Node, x: Ref, indices: Ref, updates: Ref) -> Ref:
    """Our scatter: each update is joined with what is there, or replaces it."""
    axes, batch, kind = (node.attrs[k] for k in ("axes", "batch", "kind"))
    lead = len(indices.shape) - 1
    one = TensorType(x.dtype, ())
    inner = w.region()
    a, b = (inner.argument(one, n) for n in "ab")
    region = inner.block([a, b], [b if kind == "set" else inner(_BODY[kind], a, b, to=one)])
    numbers = (f"indices_are_sorted = false, "
               f"scatter_dimension_numbers = #stablehlo.scatter<"
               f"update_window_dims = {ints(range(lead, len(updates.shape)))}, "
               f"inserted_window_dims = {ints(sorted(axes))}, "
               f"input_batching_dims = {ints(range(batch))}, "
               f"scatter_indices_batching_dims = {ints(range(batch))}, "
               f"scatter_dims_to_operand_dims = {ints(axes)}, index_vector_dim = {lead}>, "
               f"unique_indices = false")
    return w.generic("scatter", [x, indices, updates], [x.type], numbers, [region])[0]
