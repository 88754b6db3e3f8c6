"""What importers share: `Array`, the value that handlers compute with; assumptions about open
sizes; regions; complex numbers; refusals."""

from graphtool.front.array import REFUSED, Array, Refused
from graphtool.front.builder import FOLD_LIMIT, Front

__all__ = ["FOLD_LIMIT", "REFUSED", "Array", "Front", "Refused"]
