"""Imports one torch model in every way: by torch.fx, torch.export, and torch's export to ONNX."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.importers.onnx import import_onnx
from graphtool.importers.python_source import root_of
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.capture import quiet
from graphtool.importers.torch.driver.live import array
from graphtool.importers.torch.driver.source import Loaded, load
from graphtool.importers.torch.driver.user_lines import failure
from graphtool.io.weights import Array
from graphtool.ir.graph import Module

WAYS = ("fx", "export", "onnx")


def captures(source: str, specs: Sequence[str] = ()) -> tuple[
        dict[str, Module | GraphtoolError], list[Array]]:
    """({way: module, or the error that prevented it}, sample inputs).

    Raises the errors of `load` for a source that cannot be loaded.
    """
    made = load(source, specs)
    rest: dict[str, Any] = {"names": made.names, "kwargs": made.kwargs}
    takes: dict[str, Callable[[], Module]] = {
        "fx": lambda: import_torch(made.model, made.args, capture="fx", **rest),
        "export": lambda: import_torch(made.model, made.args, **rest),
        "onnx": lambda: _by_onnx(made)}
    arrays = [array(x) for x in pytree.tree_leaves((made.args, made.kwargs))
              if isinstance(x, torch.Tensor)]
    return {way: _tried(takes[way]) for way in WAYS}, arrays


def _tried(take: Callable[[], Module]) -> Module | GraphtoolError:
    try:
        return take()
    except GraphtoolError as error:
        return error


def _by_onnx(made: Loaded) -> Module:
    with tempfile.TemporaryDirectory(prefix="graphtool-captures-") as folder:
        path = Path(folder) / "model.onnx"
        try:
            with quiet(), torch.no_grad():
                torch.onnx.export(made.model, made.args, str(path), kwargs=made.kwargs,
                                  dynamo=True, verbose=False)
        except ImportError as error:
            raise UnsupportedError("GT1121", f"torch cannot write ONNX: {error}",
                                   hint="pip install onnxscript") from error
        except Exception as error:  # whatever the user's model raises is reported with its line
            raise failure(error, "torch.onnx", root_of(torch.__file__)) from error
        return import_onnx(path)
