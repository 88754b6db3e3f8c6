"""What importers share: `Array`, the value that handlers compute with; assumptions about open
sizes; regions; complex numbers; refusals."""

from graphtool.front.array import REFUSED, Array, Refused
from graphtool.front.builder import Front
from graphtool.front.known import FOLD_LIMIT

__all__ = ["FOLD_LIMIT", "REFUSED", "Array", "Front", "Refused"]
