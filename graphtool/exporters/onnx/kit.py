"""What most forms of ONNX use, in one import; it has no code of its own."""

from graphtool import dtypes
from graphtool import ops as o
from graphtool.exporters.forms import Ref, takes
from graphtool.exporters.onnx.registry import form
from graphtool.exporters.onnx.writer import Writer
from graphtool.ir.graph import Node

__all__ = ["Node", "Ref", "Writer", "dtypes", "form", "o", "takes"]
