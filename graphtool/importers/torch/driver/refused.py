"""Why families of torch's ops are not imported, by the names they have."""

from __future__ import annotations

import re

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
