"""The table of importers: a row for each form of models, the only place that tells them apart.

What a row needs is imported when it is used: torch and onnx take longer to import than `show`.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from graphtool.errors import GraphtoolError, Unsupported, UsageError
from graphtool.importers.record import SAVED, Importer, Request, register
from graphtool.ir.graph import Module

if TYPE_CHECKING:
    from graphtool.importers.onnx.lint import Violation
    from graphtool.importers.onnx.lint.profile import Profile


def _onnx(source: str, how: Request) -> Module:
    from graphtool.importers.onnx import import_onnx
    from graphtool.importers.onnx.driver.inputs import read_parts
    return import_onnx(Path(source), dynamic=how.dynamic or {}, made_of=read_parts(how.inputs),
                       limits=how.limits)


def _onnx_support(path: Path) -> list[Unsupported]:
    from graphtool.importers.onnx import support
    return support(path)


def _onnx_lint(path: Path, profile: Profile) -> list[list[Violation]]:
    from graphtool.importers.onnx.lint import violations
    return violations(path, profile)


def _pt2(source: str, how: Request) -> Module:
    from graphtool.importers.torch import read_pt2
    return read_pt2(Path(source))


def _is_pt2(source: str) -> bool:
    """Whether a file is an archive of torch.export; a file that torch saved as `.pt` may be."""
    if not source.endswith(SAVED):
        return source.endswith(".pt2")
    from graphtool.importers.torch.torchscript.archive import kind_of
    try:
        return kind_of(Path(source)) == "pt2"
    except GraphtoolError:  # the reader of TorchScript raises it again
        return False


def _torch(source: str, how: Request) -> Module:
    from graphtool.importers.torch import import_torch, need_torch
    if source.endswith(SAVED):
        from graphtool.importers.torch.torchscript.archive import kind_of
        kind_of(Path(source))
    need_torch()
    from graphtool.importers.torch.driver.source import load
    loaded = load(source, how.inputs)
    return import_torch(loaded.model, loaded.args, capture=how.capture, dynamic=how.dynamic,
                        names=loaded.names, kwargs=loaded.kwargs)


def _stablehlo(source: str, how: Request) -> Module:
    from graphtool.importers.stablehlo import import_stablehlo
    file, function = program_and_function(source)
    return import_stablehlo(Path(file), dynamic=how.dynamic or {}, limits=how.limits,
                            inputs=how.inputs, function=function)


def _stablehlo_support(path: Path) -> list[Unsupported]:
    from graphtool.importers.stablehlo import support
    return support(path)


def program_and_function(source: str) -> tuple[str, str]:
    """`FILE.mlir:NAME` as the file and the function; without a name the function is ""."""
    file, colon, function = source.rpartition(":")
    return (file, function.removeprefix("@")) if colon and file.endswith(".mlir") else (source, "")


def _jax(source: str, how: Request) -> Module:
    if find_spec("jax") is None:
        from graphtool.io import release
        raise UsageError("GT1117", "this needs jax, which is not installed",
                         hint=release.install("jax"))
    from graphtool.importers.stablehlo.capture import import_function
    return import_function(source, how.inputs, dynamic=how.dynamic, limits=how.limits)


def is_python(source: str) -> bool:
    """Whether a source is `FILE.py:NAME` or `PACKAGE.MODULE:NAME`."""
    file, colon, attribute = source.rpartition(":")
    return bool(colon and file) and not file.endswith(".mlir") and all(
        part.isidentifier() for part in attribute.split("."))


# the version of the format, then one of the next fields of a model, by protobuf's tags
_PROTOBUF = re.compile(rb"\x08[\x01-\x14][\x12\x1a\x22\x28\x32\x3a\x42]", re.DOTALL)
_ARCHIVE = "an archive is read, never run"
register(Importer(
    "onnx", "an ONNX model", (".onnx",), _PROTOBUF, read=_onnx, written="MODEL.onnx",
    support=_onnx_support, lint=_onnx_lint, oracle="onnxruntime"))
register(Importer(
    "pt2", "an archive of torch.export", (".pt2",), read=_pt2, written="MODEL.pt2",
    accepts=_is_pt2, takes=(), unchecked=_ARCHIVE))
register(Importer(
    "torchscript", "a TorchScript archive", SAVED, read=_torch, written="MODEL.pt",
    oracle="torch", samples=False))
register(Importer(
    "stablehlo", "a StableHLO program", (".mlir",), re.compile(rb"\s*(module|func\.func|#loc)\b"),
    read=_stablehlo, written="MODEL.mlir",
    accepts=lambda source: program_and_function(source)[0].endswith(".mlir"),
    support=_stablehlo_support, unchecked="a program's text is read, never run"))
register(Importer(
    "torch", "a torch model in Python", read=_torch, written="FILE.py:NAME", accepts=is_python,
    captures=("export", "fx"), oracle="torch"))
register(Importer(
    "jax", "a function of JAX in Python", read=_jax, written="PACKAGE.MODULE:NAME",
    accepts=is_python, captures=("jax",), oracle="jax"))
