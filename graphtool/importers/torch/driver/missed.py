"""What of a program cannot be imported, collected so that one error lists all of it; and why
families of torch's ops are not imported, by the names they have."""

from __future__ import annotations

import re

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.importers.torch.driver import provenance
from graphtool.importers.torch.driver.captured import OpCall


class Missed:
    """(name, reason) → source places; true if it is not empty."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, str], list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.places)

    def add(self, call: OpCall, reason: str, name: str = "") -> None:
        """Adds a call, under `name` or the name of its target."""
        self.places.setdefault((name or call.target, reason), []).append(
            provenance.describe(call.place))

    def at_boundary(self, name: str, reason: str) -> None:
        """Adds an input or an output, which has no source place."""
        self.places[name, reason] = [""]

    def take(self, inner: Missed) -> None:
        """Adds everything that an inner graph has collected."""
        for key, places in inner.places.items():
            self.places.setdefault(key, []).extend(places)

    def check(self) -> None:
        """Raises UnsupportedError GT1101 with all items if there are any."""
        if not self:
            return
        items = tuple(Unsupported(name, reason, tuple(places))
                      for (name, reason), places in self.places.items())
        count = sum(len(i.places) for i in items)
        raise UnsupportedError("GT1101", f"{count} call{'s' * (count > 1)} cannot be imported "
                                         "from torch", items,
                               hint="write them with other torch functions, or leave this part "
                                    "of the model out of the export")


# ---- reasons by family --------------------------------------------------------------------------

_WHY = (
    (r"aten\.(_linalg_eigvals|linalg_eig)\b",
     "eigenvalues of general matrices are not built; those of symmetric ones are (eigh)"),
    (r"aten\.(_linalg|linalg|_?lstsq)", "this part of linear algebra is not built"),
    (r"aten\.(_?to_sparse|_?sparse|_coo|_nested)", "sparse and nested tensors are not supported"),
    (r"aten\.special_", "this special function is not built"),
    (r"aten\.frexp\b", "this special function is not built"),
    (r"(quantized|mkldnn|onednn|_quantized|fbgemm)", "it belongs to one kernel library of torch"),
    (r"aten\._?histogram",
     "histograms with edges of their own are not built; torch.histc counts in equal steps"),
)


def why(target: str, else_: str = "there is no handler for it") -> str:
    """Why an op has no handler: the reason of its family, else `else_`."""
    return next((reason for pattern, reason in _WHY if re.match(pattern, target)), else_)
