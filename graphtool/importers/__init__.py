"""Models from outside: what a file is, and which importer reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphtool.errors import UsageError
from graphtool.importers.kinds import GRAPH, JSON, not_a_model, what
from graphtool.importers.record import IMPORTERS, FileKind, Importer, Request
from graphtool.ir import serial
from graphtool.ir.bind import uniquely_named
from graphtool.ir.graph import Module

if TYPE_CHECKING:
    from graphtool.front.assumptions import Bounds
    from graphtool.importers.limits import Limits

__all__ = [
    "IMPORTERS",
    "FileKind",
    "Importer",
    "Request",
    "capture_words",
    "import_source",
    "refuse_options",
    "what",
]


def import_source(source: str, *, inputs: Sequence[str] = (), capture: str = "export",
                  dynamic: Mapping[str, Bounds] | None = None, limits: Limits | None = None
                  ) -> Module:
    """The module of a model file, or of a torch module or a function of JAX in Python source.

    `inputs` are `NAME:f32[1,3,224,224]` specs, which take the place of the sample inputs that
    the Python file offers; of an ONNX model they say what its sequences and optionals are made
    of, as `NAME:(f32[4],f32[5])`. `limits` bounds what the import of an ONNX model
    may do. Naming Python source runs it. Raises UsageError GT1110 for what is no model, GT3021 for
    an unknown capture, GT3024 for options that a source has no use for, and whatever the importers
    raise.
    """
    if capture not in capture_words():
        raise UsageError("GT3021", f"unknown capture {capture!r}", hint=", ".join(capture_words()))
    kind, asked = what(source, capture), Request(inputs, capture, dynamic, limits)
    if kind in (GRAPH, JSON) and Path(source).exists():
        refuse_options(source, kind, _given(asked))
        return uniquely_named(serial.load(Path(source)))
    if not isinstance(kind, Importer) or kind.read is None:
        raise not_a_model(source, kind)
    refuse_options(source, kind, [n for n in _given(asked) if n not in kind.takes])
    return uniquely_named(kind.read(source, asked))


def capture_words() -> list[str]:
    """The words of `--capture`."""
    return [word for row in IMPORTERS.values() for word in row.captures]


def _given(asked: Request) -> list[str]:
    return [name for name in ("inputs", "dynamic") if getattr(asked, name)]


def refuse_options(source: str, kind: FileKind, given: Sequence[str]) -> None:
    """Raises UsageError GT3024 if options of an import are given that such a file has no use for.
    """
    if given:
        verb = "is" if len(given) == 1 else "are"
        settled = "exported" if isinstance(kind, Importer) else "imported"
        raise UsageError("GT3024", f"{', '.join(given)} {verb} not for {kind.title}", where=source,
                         hint=f"its inputs and sizes were settled when the model was {settled}: "
                              "give the option then")
