"""What most forms of StableHLO use, in one import; it has no code of its own."""

from graphtool import dtypes
from graphtool import ops as o
from graphtool.exporters.forms import Ref, takes
from graphtool.exporters.stablehlo.registry import body, definition, form
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Node

__all__ = ["Node", "Ref", "Writer", "body", "definition", "dtypes", "form", "o", "takes"]
