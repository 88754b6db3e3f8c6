"""What most handlers of ATen ops use, in one import; it has no code of its own."""

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context, axis_of, pairs
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import Dim, product

__all__ = [
    "Array", "Context", "Dim", "Refused", "TensorType", "aten", "axis_of", "broadcast_shapes",
    "dtypes", "o", "pairs", "product", "trace",
]
