"""What most handlers of StableHLO's operations use, in one import; it has no code of its own."""

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.front.array import concat
from graphtool.front.complex import Complex
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import stablehlo
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.importers.stablehlo.text.tree import Region
from graphtool.ops.matrices import swap_last_axes
from graphtool.symbolic import Dim, product

__all__ = [
    "Array", "Complex", "Context", "Dense", "Dim", "Refused", "Region", "concat", "dtypes", "o",
    "product", "stablehlo", "swap_last_axes",
]
