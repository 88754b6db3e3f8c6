"""What a build is made from: a graph, or a program and its weights, from memory or from a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphtool.compile.option import given as options_given
from graphtool.compile.options import Importing
from graphtool.errors import InputError, UsageError

if TYPE_CHECKING:
    from graphtool.front.assumptions import Bounds
    from graphtool.io.weights import Weight
    from graphtool.ir.graph import Module
    from graphtool.loops.program import Program

# H=32..1024 step 32, and W=H
_RANGE = re.compile(r"(?P<name>[^=]+)(=(?P<low>\d+)\.\.(?P<high>\d*)(\s+step\s+(?P<step>\d+))?)?")
_EQUAL = re.compile(r"(?P<name>[^=]+)=\s*(?P<size>[^=.]+)")
STABLEHLO = (".mlir", ".stablehlo")  # endings of its texts
AS_IS = Importing()
"""No option of an import is given."""


@dataclass(frozen=True, slots=True)
class Source:
    """A graph, or a program with the weights that it may use.

    `where` is its file. `imported`: it has just been a model, so that passes are to run over it.
    `side` is the weights file of a graph, `text`: it came as a listing.
    """

    module: Module | None = None
    program: Program | None = None
    store: Mapping[str, Weight] = field(default_factory=dict)
    where: str = ""
    imported: bool = False
    side: Path | None = None
    text: bool = False

    @property
    def training(self) -> bool:
        """Whether it is a graph that `grad --optimizer` made: it becomes several programs."""
        return self.module is not None and isinstance(self.module.meta.get("training"), dict)


def source_of(given: Any, how: Importing = AS_IS) -> Source:
    """The source that is a module, a program, the path of one or of a model, or a torch module.

    Raises UsageError GT3020, GT3021, GT3024 or GT3029 for options of an import, and what the
    readers and the importers raise.
    """
    from graphtool.ir.graph import Module
    from graphtool.loops.program import Program
    match given:
        case Source():
            return given
        case Module():
            return Source(given)
        case Program():
            return Source(program=given)
        case str() | PathLike():
            path = str(given)
            return read_program(path, how) if is_program(path) else read_graph(path, how)
    from graphtool.importers.torch import import_torch
    return Source(import_torch(given, ()), imported=True)


def read_graph(path: str, how: Importing = AS_IS, without: bool = False) -> Source:
    """A graph file, `-` (stdin), or a model, which is imported as `how` says.

    From stdin a graph, an ONNX model or StableHLO is read. The weights of a graph from stdin are in
    its text, or in a file of the current folder; of the folder DIR where the path is `DIR/-`.
    `without` reads a graph whose weights file is not there.
    """
    from graphtool.importers.kinds import STDIN, not_a_graph, what
    from graphtool.importers.record import IMPORTERS
    check_importing(path, how)
    kind = what(path)
    if kind is STDIN:
        data = sys.stdin.buffer.read()
        model = next((r for r in IMPORTERS.values() if r.suffixes and r.begun(data[:4096])), None)
        if model is not None:
            from tempfile import TemporaryDirectory
            with TemporaryDirectory() as folder:
                (file := Path(folder, f"model{model.suffixes[0]}")).write_bytes(data)
                return Source(_model(str(file), how), where=path, imported=True)
        return _with_kernels(lambda: _of_stdin(path, data))
    if is_model(path):
        return Source(_model(path, how), where=path, imported=True)
    if (error := not_a_graph(path, kind)) is not None:
        raise error
    return _with_kernels(lambda: _of_file(path, without))


def read_program(path: str, how: Importing = AS_IS) -> Source:
    """The program of a file, and its weights."""
    check_importing(path, how)
    import graphtool.kernels  # noqa: F401  (fills the table that the reader uses)
    from graphtool.loops import serial
    program, store = serial.load(Path(path))
    return Source(program=program, store=store, where=path)


def check_importing(path: str, how: Importing) -> None:
    """Raises UsageError GT3024 if options of an import are given, and the path is no model."""
    from graphtool.importers import Importer, refuse_options, what
    if not isinstance(kind := what(path), Importer):
        refuse_options(path, kind, [name for name, _ in options_given(how)])


def _model(path: str, how: Importing) -> Module:
    from graphtool import importers
    from graphtool.importers.limits import read_limits
    return importers.import_source(path, inputs=how.inputs, capture=how.capture or "export",
                                   dynamic=bounds(how.dynamic),
                                   limits=read_limits(how.limit, how.strict))


def _of_stdin(path: str, data: bytes) -> Source:
    from graphtool.ir import serial
    return Source(serial.loads(data, folder=Path(path).parent), where=path,
                  text=serial.is_listing(data))


def _of_file(path: str, without: bool) -> Source:
    from graphtool.ir import serial
    module, side = serial.load_pair(Path(path), without=without)
    return Source(module, where=path, side=side, text=path.endswith(serial.SUFFIX))


def _with_kernels(reader: Callable[[], Source]) -> Source:
    """What `reader` reads; the ops of kernels, a third of the time to start, are loaded only for a
    graph that has some."""
    import graphtool.ops
    try:
        return reader()
    except InputError as error:
        if error.code != "GT0401" or "graphtool.kernels" in sys.modules:
            raise
    import graphtool.kernels  # noqa: F401  (adds the ops of kernels)
    return reader()


def is_stdin(path: str) -> bool:
    """Whether a graph comes from stdin: `-`, or `DIR/-` with its weights in DIR."""
    return path == "-" or path.endswith("/-")


def is_program(path: str) -> bool:
    """Whether a path is that of a program."""
    from graphtool.importers.kinds import PROGRAM, what
    return what(path) is PROGRAM


def is_model(path: str) -> bool:
    """Whether a path is to be imported rather than read."""
    from graphtool.importers import Importer, what
    return isinstance(what(path), Importer)


def bounds(dims: Sequence[str]) -> dict[str, Bounds]:
    """`--dynamic batch=1..64` as a mapping; a bare name is 1 or more. `H=32..1024 step 32` has a
    third number, `W=H` and `M=2*N` are texts. Raises UsageError GT3020."""
    out: dict[str, Bounds] = {}
    for text in dims:
        match, equal = _RANGE.fullmatch(text), _EQUAL.fullmatch(text)
        if match is None and equal is None:
            raise UsageError("GT3020", f"--dynamic {text!r} is not NAME=LOW..HIGH",
                             hint="as in --dynamic batch=1..64, seq=2.., batch, "
                                  "'H=32..1024 step 32', W=H or N=1")
        if match is None:
            assert equal is not None
            size = equal["size"].strip()
            out[equal["name"]] = (int(size), int(size)) if size.isdecimal() else size
            continue
        low, high = int(match["low"] or 1), int(match["high"]) if match["high"] else None
        if high is not None and high < low:
            raise UsageError("GT3020", f"--dynamic {text!r}: {high} is less than {low}")
        if match["step"] == "0":
            raise UsageError("GT3020", f"--dynamic {text!r}: a step is 1 or more")
        out[match["name"]] = (low, high, int(match["step"])) if match["step"] else (low, high)
    return out
