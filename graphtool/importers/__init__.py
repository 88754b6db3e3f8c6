"""Models from outside: which importer a source goes to, by the form of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from graphtool import release
from graphtool.errors import UsageError, listed
from graphtool.front.assumptions import Bounds
from graphtool.importers.limits import Limits
from graphtool.importers.suffixes import SAVED
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.naming import uniquely_named

FORMS = ("MODEL.onnx, MODEL.pt2, MODEL.pt, MODEL.mlir, MODEL.graph.json, FILE.py:NAME or "
         "PACKAGE.MODULE:NAME")
Dynamic = Mapping[str, Bounds]


def import_source(source: str, *, inputs: Sequence[str] = (), capture: str = "export",
                  dynamic: Dynamic | None = None, limits: Limits | None = None) -> Module:
    """The module of a model file, or of a torch module or a function of JAX in Python source.

    `inputs` are `NAME:f32[1,3,224,224]` specs, which take the place of the sample inputs that
    the Python file offers; of an ONNX model they say what its sequences and optionals are made
    of, as `NAME:(f32[4],f32[5])`. `limits` bounds what the import of an ONNX model
    may do. Naming Python source runs it. Raises UsageError GT1110 for a source of no known form,
    GT3024 for options that a graph has no use for, and whatever the importers raise.
    """
    return uniquely_named(_imported(source, inputs, capture, dynamic, limits))


def _imported(source: str, inputs: Sequence[str], capture: str, dynamic: Dynamic | None,
              limits: Limits | None) -> Module:
    match form(source):
        case "onnx":
            from graphtool.importers.onnx import import_onnx
            from graphtool.importers.onnx.driver.compound_inputs import read_parts
            return import_onnx(Path(source), dynamic=dynamic or {}, made_of=read_parts(inputs),
                               limits=limits)
        case "pt2":
            from graphtool.importers.torch import read_pt2
            return read_pt2(Path(source))
        case "saved" if is_exported(source):
            from graphtool.importers.torch import read_pt2
            return read_pt2(Path(source))
        case "stablehlo":
            from graphtool.importers.stablehlo import import_stablehlo
            file, function = program_and_function(source)
            return import_stablehlo(Path(file), dynamic=dynamic or {}, limits=limits,
                                    inputs=inputs, function=function)
        case "graph":
            refuse_options(source, [n for n, v in (("inputs", inputs), ("dynamic", dynamic)) if v])
            return serial.load(Path(source))
        case "python" if capture == "jax":
            need_jax()
            from graphtool.importers.stablehlo.capture import import_function
            return import_function(source, inputs, dynamic=dynamic, limits=limits)
        case _:
            from graphtool.importers.torch import import_torch, need_torch
            need_torch()
            from graphtool.importers.torch.driver.source import load
            made = load(source, inputs)
            return import_torch(made.model, made.args, capture=capture, dynamic=dynamic,
                                names=made.names, kwargs=made.kwargs)


def is_exported(source: str) -> bool:
    """Whether a file that torch saved as `.pt` is an archive of torch.export. Raises InputError
    GT1211 or GT1212 where it is no archive of a model."""
    from graphtool.importers.torch.torchscript.archive import kind_of
    return source.endswith(SAVED) and kind_of(Path(source)) == "pt2"


def need_jax() -> None:
    """Raises UsageError GT1117 where jax is not installed."""
    if find_spec("jax") is None:
        raise UsageError("GT1117", "this needs jax, which is not installed",
                         hint=release.install("jax"))


def refuse_options(source: str, given: Sequence[str]) -> None:
    """Raises UsageError GT3024 if options of an import are given with what is imported already."""
    if given:
        kind = "program" if source.endswith(".program.json") else "graph"
        verb = "is" if len(given) == 1 else "are"
        raise UsageError("GT3024", f"{', '.join(given)} {verb} for models, this is a {kind}",
                         where=source, hint="its inputs and sizes were settled when the model was "
                                            "imported: give the option to `graphtool import`")


def program_and_function(source: str) -> tuple[str, str]:
    """`FILE.mlir:NAME` as the file and the function; without a name the function is ""."""
    file, colon, function = source.rpartition(":")
    return (file, function.removeprefix("@")) if colon and file.endswith(".mlir") else (source, "")


def form(source: str) -> str:
    """`onnx`, `pt2`, `saved` (by torch, as `.pt`), `stablehlo`, `graph` or `python`. Raises
    UsageError GT1110 otherwise."""
    for suffix, name in ((".onnx", "onnx"), (".pt2", "pt2"), (".mlir", "stablehlo"),
                         (".graph.json", "graph"), (".gt", "graph"),
                         *((ending, "saved") for ending in SAVED)):
        if source.endswith(suffix):
            return name
    if source.endswith(".json") and not source.endswith(".program.json") and (
            Path(source).is_file()):
        return "graph"  # the reader says what else it is
    if Path(source).is_dir():
        raise _directory(Path(source))
    file, colon, attribute = source.rpartition(":")
    if colon and file.endswith(".mlir"):
        return "stablehlo"
    if colon and file and all(part.isidentifier() for part in attribute.split(".")):
        return "python"
    hint = f"{source}:NAME, with the name of a module or of a function that makes one" if (
        source.endswith(".py")) else f"expected {FORMS}"
    raise UsageError("GT1110", f"cannot tell what {source!r} is", hint=hint)


def _directory(path: Path) -> UsageError:
    """The error for a directory in place of a model: what it is, or which models it contains."""
    if (path / "build.json").is_file():
        return UsageError("GT1110", f"{str(path)!r} is a build, not a model",
                          hint=f"`graphtool show {path}` reads it, `graphtool run {path} --random` "
                               "runs it")
    models = sorted(str(p) for p in path.iterdir() if p.is_file() and p.name.endswith(
        (".onnx", ".pt2", *SAVED, ".mlir", ".graph.json", ".gt")))
    return UsageError("GT1110", f"{str(path)!r} is a directory, not a model",
                      hint=f"it contains {listed(models)}" if models else f"expected {FORMS}")
