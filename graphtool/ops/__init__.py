"""The op set. Importing this package fills the registry; its names are the ops, callable.

No module here may bear an op's name, or it would hide the op.
"""

from __future__ import annotations

from typing import Any

from graphtool.ir.op import OPS
from graphtool.ops import (  # noqa: F401  (each fills the registry)
    activation,
    composite,
    elementwise,
    index,
    linalg,
    loss,
    normalise,
    order,
    pool,
    random,
    recurrent,
    reduce,
    resample,
    shape,
    target,
    transformer,
    window,
)

_KEYWORDS = {f"{name}_": name for name in ("and", "or", "not")}


def __getattr__(name: str) -> Any:
    op = OPS.get(_KEYWORDS.get(name, name))
    if op is None:
        raise AttributeError(name)
    return op
