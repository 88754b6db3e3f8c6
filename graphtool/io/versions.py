"""The files that graphtool writes, and the versions of their formats.

The policy, which holds from release 1.1.0 on, the first that is public:

* Every file says which version of its format it has, and `since` names the release that first wrote
  that version. The formats of 1.1.0 are frozen as version 1.
* A reader takes every version that was ever released.
* A change that an older reader cannot take, or would misread, is a new version: a field renamed,
  removed, retyped or added, or a changed meaning. A new op, attribute or kernel is not: an older
  reader names it as unknown, which is an error, because nothing in a file is ever skipped.
* A file of a newer version is refused, and the error names the release that reads it.
* Files of each released version lie in tests/io/golden and are read for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphtool.errors import InputError
from graphtool.io import release

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file: `version` is the version that is written; the release `since` wrote it
    first.

    `alien` and `malformed` are the codes of errors for another file and for a damaged one.
    """

    name: str
    file: str
    alien: str
    malformed: str
    hint: str = ""  # how to get such a file
    version: int = 1
    since: str = "1.1.0"

    @property
    def head(self) -> Document:
        """The first fields of a file of the current version."""
        return {"format": self.name, "version": self.version, "since": self.since}


FORMATS = (
    GRAPH := Format("graphtool/graph", "NAME.graph.json", "GT0340", "GT0342"),
    PROGRAM := Format("graphtool/program", "NAME.program.json", "GT0360", "GT0362",
                      "`graphtool lower` makes one from a graph"),
    BUILD := Format("graphtool/build", "build.json", "GT2201", "GT2201"),
    TUNING := Format("graphtool/tuning", "NAME.jsonl", "GT0632", "GT0632"),
    CHECKPOINT := Format("graphtool/checkpoint", "checkpoint.safetensors", "GT3077", "GT3077"),
)


def checked(form: Format, document: Any, where: str) -> Document:
    """The document, if this release reads its version.

    Raises InputError `form.alien` for another kind of file, GT0334 for a newer version,
    `form.malformed` where the version is none.
    """
    format_ = document.get("format") if isinstance(document, dict) else None
    if format_ != form.name:
        raise InputError(form.alien, f"expected a {form.name} artifact, got "
                                     f"{format_ or 'something else'}", where=where, hint=form.hint)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise InputError(form.malformed, f"{version!r} is no version of {form.name}", where=where)
    if version > form.version:
        raise _newer(form, version, document.get("since"), where)
    return {**form.head, **document}  # `since` may be left out by hand


def _newer(form: Format, version: int, since: object, where: str) -> InputError:
    """The error for a file of a version that is not known here; `since` is what the file says."""
    known = isinstance(since, str) and since.replace(".", "").isalnum()
    needed = f"graphtool {since} or newer" if known else "a newer graphtool"
    return InputError("GT0334", f"{form.name} version {version} needs {needed}; this one reads "
                                f"version {form.version}", where=where,
                      hint=release.install(least=str(since) if known else ""))
