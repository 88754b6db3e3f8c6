"""The record of an importer, and that of any other kind of file: one row each, added at import."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtool.errors import Unsupported
    from graphtool.front.assumptions import Bounds
    from graphtool.importers.limits import Limits
    from graphtool.importers.onnx.lint import Violation
    from graphtool.importers.onnx.lint.profile import Profile
    from graphtool.ir.graph import Module


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its `title` with an article, the `suffixes` of its names, the pattern of what
    one `begins` with, and the `use` of one, a hint in which {path} stands for its name."""

    name: str
    title: str
    suffixes: tuple[str, ...] = ()
    begins: re.Pattern[bytes] | None = None
    use: str = ""

    def begun(self, head: bytes) -> bool:
        """Whether a file of this kind can begin so."""
        return self.begins is not None and self.begins.match(head) is not None


@dataclass(frozen=True, slots=True)
class Request:
    """What an import is told: specs of inputs, how to capture, which dims are open, and how much
    it may do."""

    inputs: Sequence[str] = ()
    capture: str = "export"
    dynamic: Mapping[str, Bounds] | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class Importer(FileKind):
    """A form of models. `read` gives the module of a source.

    `written` is how a source is given; `accepts` says whether a text names one, by default by its
    suffix. Several importers of one form are told apart by `captures`, the words of --capture.
    `takes` are the fields of Request that it heeds; `support` lists what a file has that is not
    supported, `lint` what of it violates each rule of a profile. `oracle` names what the graph is
    checked against: a key of `verify.sides.ORACLES`; `unchecked` says why there is none. `samples`:
    a source has inputs to try it on, or says of what types they are.
    """

    read: Callable[[str, Request], Module] | None = None
    written: str = ""
    accepts: Callable[[str], bool] | None = None
    captures: tuple[str, ...] = ()
    takes: tuple[str, ...] = ("inputs", "dynamic")
    support: Callable[[Path], list[Unsupported]] | None = None
    lint: Callable[[Path, Profile], list[list[Violation]]] | None = None
    oracle: str = ""
    unchecked: str = ""
    samples: bool = True

    def fits(self, source: str) -> bool:
        """Whether a source is given in this importer's form."""
        return self.accepts(source) if self.accepts else source.endswith(self.suffixes)


IMPORTERS: dict[str, Importer] = {}


def register(row: Importer) -> Importer:
    """Add an importer to the table."""
    IMPORTERS[row.name] = row
    return row


# what torch saves under these suffixes, only the file's bytes say
SAVED = (".pt", ".pth", ".ts", ".jit", ".torchscript")
