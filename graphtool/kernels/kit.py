"""What kernels are made of: one import, `from graphtool.kernels.kit import (…)`, for many.

A contract with its macros, areas and instances; the op and its plans; costs; uses and their
lowering. The module defines nothing.
"""

from __future__ import annotations

from graphtool.assume import Assumption
from graphtool.dtypes import DType
from graphtool.errors import UnsupportedError
from graphtool.ir.graph import Node, TensorType, Value
from graphtool.ir.plan import Form, Parameter, Plan
from graphtool.kernels import images
from graphtool.kernels.choice import blocks, packed, rounding
from graphtool.kernels.choice.alternatives import Alternative, Chosen, if_zeros, never
from graphtool.kernels.choice.contractions import (
    all_bfloat16, best_split, panel_bytes, product_cost, product_widths, widths)
from graphtool.kernels.choice.machine import block_cycles, ceil, fetched, longest, overlapped
from graphtool.kernels.choice.operands import narrowed
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Conv, Packed, Product
from graphtool.kernels.packing import nbits
from graphtool.kernels.packing.integers import exact, group_of, wrapped
from graphtool.kernels.packing.panels import unpacked
from graphtool.kernels.record import Record, anywhere, register, rows_of_neighbours, target_op
from graphtool.kernels.tiles import (
    HALF, HALVES, TILE, Lines, all_rows, by_rows, half_macros, lowered_product, number,
    panel_vectors, products, round_up, rows_of_tile, start, summed, sums, vectors_of, work_of)
from graphtool.kernels.use import Lowered, Macros, Use
from graphtool.loops.contract import (
    Array, Contract, Instance, Macro, Pointer, flags, literals, mark, sizes, word)
from graphtool.loops.ir import MacroValue
from graphtool.loops.pull import View
from graphtool.loops.touches import Area, Numbers, Order, Rows, Sizes
from graphtool.ops.common import broadcast_shapes, need
from graphtool.ops.costs import NV, elements, rows_by_columns
from graphtool.ops.indexing import unflatten_index
from graphtool.ops.packed import by_weights
from graphtool.symbolic import Dim, Symbol, bounds, ceildiv, product, symbol_of
from graphtool.target import Target, tile_rows

__all__ = [
    "HALF", "HALVES", "NV", "TILE", "Alternative", "Area", "Array", "Assumption", "Chosen",
    "Contract", "Conv", "DType", "Dim", "Form", "Instance", "Lines", "Lowered", "Macro",
    "MacroValue", "Macros", "Node", "Numbers", "Order", "Packed", "Parameter", "Plan", "Pointer",
    "Product", "Record", "Rows", "Rules", "Sizes", "Symbol", "Target", "TensorType",
    "UnsupportedError", "Use", "Value", "View", "all_bfloat16", "all_rows", "anywhere",
    "best_split", "block_cycles", "blocks", "bounds", "broadcast_shapes", "by_rows", "by_weights",
    "ceil", "ceildiv", "elements", "exact", "fetched", "flags", "group_of", "half_macros",
    "if_zeros", "images", "literals", "longest", "lowered_product", "mark", "narrowed", "nbits",
    "need", "never", "number", "overlapped", "packed", "panel_bytes", "panel_vectors", "product",
    "product_cost", "product_widths", "products", "register", "round_up", "rounding",
    "rows_by_columns", "rows_of_neighbours", "rows_of_tile", "sizes", "start", "summed", "sums",
    "symbol_of", "target_op", "tile_rows", "unflatten_index", "unpacked", "vectors_of", "widths",
    "word", "work_of", "wrapped"]
