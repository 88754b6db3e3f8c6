"""The op set. Importing this package fills the registry; its names are the ops: `o.matmul(a, b)`.

The ops that stand for a kernel are declared in its module: `import graphtool.kernels` adds them.

No module here may have an op's name: the module would hide the op.
"""

from __future__ import annotations

from keyword import iskeyword

from graphtool.ir.op import OPS, Op
from graphtool.ops import (  # noqa: F401  (each fills the registry)
    activation,
    collective,
    control,
    convolution,
    data,
    elementwise,
    factor,
    forest,
    index,
    linalg,
    loss,
    normalise,
    order,
    packed,
    random,
    recurrent,
    reduce,
    resample,
    shape,
    sizes,
    spectral,
    spectrum,
    strings,
    taps,
    transformer,
    window,
)

globals().update({f"{n}_" if iskeyword(n) else n: op for n, op in OPS.items()})


def __getattr__(name: str) -> Op:
    """Find an op that is not yet an attribute: a plug-in added it later, or this package is
    still being imported."""
    op = OPS.get(name.removesuffix("_"))
    if op is None:
        raise AttributeError(f"there is no op {name!r}; `graphtool ops` lists them")
    return op
