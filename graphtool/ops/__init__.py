"""The op set. Importing this package fills the registry; its names are the ops: `o.matmul(a, b)`.

No module here may bear an op's name, or it would hide the op.
"""

from __future__ import annotations

from graphtool.ir.op import OPS, Op
from graphtool.ops import (  # noqa: F401  (each fills the registry)
    activation,
    bfloat16_pairs,
    collective,
    composite,
    control,
    convolution,
    data,
    elementwise,
    factor,
    forest,
    images,
    index,
    integer,
    linalg,
    loss,
    normalise,
    order,
    pool,
    random,
    recurrent,
    reduce,
    resample,
    resample_computed,
    running,
    shape,
    sizes,
    spectral,
    spectrum,
    strings,
    taps,
    target,
    target_winograd,
    transformer,
    window,
)


def __getattr__(name: str) -> Op:
    """The op, with `and_` and the like where Python has a keyword."""
    op = OPS.get(name.removesuffix("_"))
    if op is None:
        raise AttributeError(name)
    return op
