"""A compiler for machine-learning graphs: capture, inspect, optimise, emit C, build, run.

What the command line does, in Python: `import_model`, `optimize`, `build`, `load`. The names are
imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphtool.api import build, evaluate, import_model, load, optimize, read, write
    from graphtool.errors import GraphtoolError
    from graphtool.integrations import onnx_backend

__all__ = ["GraphtoolError", "build", "evaluate", "import_model", "load", "onnx_backend",
           "optimize", "read", "write"]

_HOME = {"GraphtoolError": "graphtool.errors",
         "load": "graphtool.native.runtime",  # needs no package but numpy
         "onnx_backend": "graphtool.integrations.onnx_backend"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'graphtool' has no attribute {name!r}")
    module = import_module(_HOME.get(name, "graphtool.api"))
    return module if name == "onnx_backend" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
