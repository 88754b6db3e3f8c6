"""What most handlers of ONNX operators use, in one import; it has no code of its own."""

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.front import Refused
from graphtool.importers.onnx.driver.claims import agreed_entries
from graphtool.importers.onnx.driver.computed import bind, fresh, known_element
from graphtool.importers.onnx.driver.reader import element_type
from graphtool.importers.onnx.driver.registry import add, onnx_op
from graphtool.importers.onnx.driver.values import (
    array_of,
    axes_of,
    axis_of,
    count_of,
    dim_tensor,
    dim_value,
    dims,
    ints,
)
from graphtool.ir.op import OPS
from graphtool.ir.trace import Tracer, trace
from graphtool.symbolic import Dim, known, maximum, product

__all__ = [
    "OPS", "DType", "Dim", "Refused", "Tracer", "add", "agreed_entries", "array_of", "axes_of",
    "axis_of", "bind", "count_of", "dim_tensor", "dim_value", "dims", "dtypes", "element_type",
    "fresh", "ints", "known", "known_element", "maximum", "o", "onnx_op", "product", "trace",
]
