"""A compiler for machine-learning graphs: capture, inspect, optimise, emit C, build, run.

What the command line does, in Python: `import_model`, `optimize`, `build`, `load`. The names are
imported when they are first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphtool import onnx_backend
    from graphtool.api import build, evaluate, import_model, load, optimize, read, write
    from graphtool.errors import GraphtoolError

__all__ = ["GraphtoolError", "build", "evaluate", "import_model", "load", "onnx_backend",
           "optimize", "read", "write"]

_HOME = {"GraphtoolError": "graphtool.errors", "onnx_backend": "graphtool.onnx_backend"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'graphtool' has no attribute {name!r}")
    module = import_module(_HOME.get(name, "graphtool.api"))
    return module if name == "onnx_backend" else getattr(module, name)


class _Package(ModuleType):
    """`graphtool.build` is the function, also once the submodule of that name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "build" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
