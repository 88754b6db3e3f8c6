"""A compiler for machine-learning graphs: capture, inspect, optimise, emit C, build, run.

What the command line does, in Python. A name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from graphtool.api.by_hand import Graph
    from graphtool.api.changing import grad, jacobian, jvp, quantise, vjp, vmap
    from graphtool.api.compiling import build, emit_c, lower_model, train_model
    from graphtool.api.language import (
        generate,
        read_tokenizer,
        train_tokenizer,
        write_tokenizer,
    )
    from graphtool.api.measuring import bench, bound, check, diff, profile, tune_model
    from graphtool.api.models import (
        draw,
        evaluate,
        export,
        import_model,
        optimize,
        read,
        show,
        write,
    )
    from graphtool.api.viewing import view
    from graphtool.errors import (
        CompilerError,
        GraphtoolError,
        InputError,
        InternalError,
        TypeMismatch,
        UnsupportedError,
        UsageError,
    )
    from graphtool.integrations import onnx_backend, torch_backend
    from graphtool.ir.graph import Module
    from graphtool.language.tokenizer import Tokenizer
    from graphtool.loops.program import Program
    from graphtool.native.runtime import Model, load
    from graphtool.plugins import load_plugin
    from graphtool.train.loop import Plan
    from graphtool.transforms.quantising import Quantisation
    from graphtool.transforms.training.recipe import Recipe

__all__ = [
    "CompilerError", "Graph", "GraphtoolError", "InputError", "InternalError", "Model", "Module",
    "Plan", "Program", "Quantisation", "Recipe", "Tokenizer", "TypeMismatch", "UnsupportedError",
    "UsageError", "bench", "bound", "build", "check", "diff", "draw", "emit_c", "evaluate",
    "export", "generate", "grad", "import_model", "jacobian", "jvp", "load", "load_plugin",
    "lower_model", "onnx_backend", "optimize", "profile", "quantise", "read", "read_tokenizer",
    "show", "torch_backend", "train_model", "train_tokenizer", "tune_model", "view", "vjp", "vmap",
    "write", "write_tokenizer"]

if not TYPE_CHECKING:  # a type checker sees the imports above, and knows of no other name
    _HOMES = {
        "api.by_hand": ("Graph",),
        "api.changing": ("grad", "jacobian", "jvp", "quantise", "vjp", "vmap"),
        "api.compiling": ("build", "emit_c", "lower_model", "train_model"),
        "api.language": ("generate", "read_tokenizer", "train_tokenizer", "write_tokenizer"),
        "api.measuring": ("bench", "bound", "check", "diff", "profile", "tune_model"),
        "api.models": ("draw", "evaluate", "export", "import_model", "optimize", "read", "show",
                       "write"),
        "api.viewing": ("view",),
        "errors": ("CompilerError", "GraphtoolError", "InputError", "InternalError",
                   "TypeMismatch", "UnsupportedError", "UsageError"),
        "integrations": ("onnx_backend", "torch_backend"),
        "ir.graph": ("Module",),
        "language.tokenizer": ("Tokenizer",),
        "loops.program": ("Program",),
        "native.runtime": ("Model", "load"),  # needs no package but numpy
        "plugins": ("load_plugin",),
        "train.loop": ("Plan",),
        "transforms.quantising": ("Quantisation",),
        "transforms.training.recipe": ("Recipe",),
    }
    _HOME = {name: home for home, names in _HOMES.items() for name in names}

    def __getattr__(name):
        if name == "__version__":
            from graphtool.io.release import release
            return release().version
        if name not in _HOME:
            raise AttributeError(f"module 'graphtool' has no attribute {name!r}")
        import sys
        from importlib import import_module
        from importlib.util import find_spec
        if "IPython" in sys.modules and find_spec("msgspec"):  # a notebook, which shows results
            import_module("graphtool.api.display")
        if name in _HOMES["integrations"]:
            return import_module(f"graphtool.integrations.{name}")
        return getattr(import_module(f"graphtool.{_HOME[name]}"), name)

    def __dir__():
        return list(__all__)
