"""Why families of torch's ops are not imported, by the names they have."""

from __future__ import annotations

import re

_WHY = (
    (r"aten\.(_linalg_eigh|_linalg_eigvals|linalg_eig|_linalg_svd|linalg_svd|svd|symeig)",
     "decompositions into eigenvectors or singular vectors are not built"),
    (r"aten\.(_linalg|linalg|_?lstsq)", "this part of linear algebra is not built"),
    (r"aten\.(_?to_sparse|_?sparse|_coo|_nested)", "sparse and nested tensors are not supported"),
    (r"aten\.special_", "this special function is not built"),
    (r"aten\.frexp\b", "this special function is not built"),
    (r"(quantized|mkldnn|onednn|_quantized|fbgemm)", "it belongs to one kernel library of torch"),
    (r"aten\._?histogram",
     "histograms with edges of their own are not built; torch.histc counts in equal steps"),
)


def why(target: str) -> str:
    """The reason for an op without a handler."""
    return next((reason for pattern, reason in _WHY if re.match(pattern, target)),
                "there is no handler for it")
