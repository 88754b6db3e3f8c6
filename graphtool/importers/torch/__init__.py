"""Models from torch: live modules by torch.export or torch.fx, and `.pt2` archives.

Importing this package fills the table of handlers and loads no torch; only capture.py, exported.py,
live.py, lines.py and source.py do, when they are called for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from graphtool.errors import UsageError
from graphtool.front.assumptions import Bounds
from graphtool.importers.torch.driver.pt2 import read_pt2
from graphtool.importers.torch.driver.settled import to_module
from graphtool.importers.torch.driver.table import HANDLERS, aten
from graphtool.importers.torch.families import (  # noqa: F401  (each fills the table)
    attention,
    complex_numbers,
    control,
    create,
    elementwise,
    factor,
    gradients,
    images,
    index,
    linalg,
    losses,
    norm,
    order,
    partial_writes,
    pool,
    quantized,
    random,
    recurrent,
    reduce,
    sampling,
    shape,
    sized,
    special,
    spectral,
)
from graphtool.io import release
from graphtool.ir.graph import Module

__all__ = ["HANDLERS", "aten", "import_torch", "need_torch", "read_pt2"]


def need_torch() -> None:
    """Raises UsageError GT1100 where torch is not installed."""
    if find_spec("torch") is None:
        raise UsageError("GT1100", "this needs torch, which is not installed",
                         hint=release.install("torch"))


def import_torch(model: Any, args: tuple[Any, ...], *, capture: str = "export",
                 dynamic: Mapping[str, Bounds] | None = None,
                 names: Sequence[str] = (), kwargs: Mapping[str, Any] | None = None) -> Module:
    """The module that computes `model(*args, **kwargs)`, an nn.Module in the mode that it is in,
    or a program of torch.export, which needs no inputs.

    `dynamic` maps a symbol to its bounds: `batch` makes dim 0 of every input symbolic,
    `seq@ids.1,mask.1` the named dims. `names` replaces the inputs' names in order.
    Raises UnsupportedError GT1101 (ops), GT1102 (capture fails), UsageError GT1104 for arguments.
    """
    need_torch()
    from graphtool.importers.torch.driver import capture as captures
    program = captures.program(model, args, capture, dynamic or {}, names, kwargs or {})
    return to_module(program)
