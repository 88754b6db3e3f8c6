"""The files that graphtool writes, their versions, and how an older file becomes a current one.

The policy, which holds from release 1.0.0 on:

* Every file says which version of its format it has, and `since` names the release that first wrote
  that version. Files of 0.1.0 have version 1; the formats of 1.0.0 are frozen as version 2.
* A reader takes every version that was ever released. `upgrades` leads from each version to the
  next by one pure function on the plain document; what reads the rows knows the newest alone.
* A change that an older reader cannot take, or would misread, is a new version: a field renamed,
  removed, retyped or added, or a changed meaning. A new op, attribute or kernel is not: an older
  reader names it as unknown, which is an error, because nothing in a file is ever skipped.
* A file of a newer version is refused, and the error names the release that reads it.
* Files of each released version lie in tests/io/golden and are read for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from graphtool import release
from graphtool.errors import InputError
from graphtool.io.upgrades import Document, Upgrade


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file.

    `since[i]` is the release that first wrote version i + 1, `upgrades[i]` makes version i + 2 of
    it. A tuning file or a checkpoint without a head has version 1: these two had none then.
    `alien` and `malformed` are the codes of errors for another file and for a damaged one.
    """

    name: str
    file: str
    since: tuple[str, ...]
    alien: str
    malformed: str
    hint: str = ""  # how to get such a file

    @property
    def upgrades(self) -> tuple[Upgrade, ...]:
        """UPGRADES of io/upgrades/KIND.py, imported at first use: few files are old."""
        module = import_module(f"graphtool.io.upgrades.{self.name.partition('/')[2]}")
        chain: tuple[Upgrade, ...] = module.UPGRADES
        return chain

    @property
    def version(self) -> int:
        """The version that is written."""
        return len(self.since)

    @property
    def head(self) -> Document:
        """The first fields of a file of the current version."""
        return {"format": self.name, "version": self.version, "since": self.since[-1]}


_RELEASES = ("0.1.0", "1.0.0", "1.1.0")  # those that changed a format, up to the coming one

FORMATS = (
    GRAPH := Format("graphtool/graph", "NAME.graph.json", _RELEASES, "GT0340", "GT0342"),
    PROGRAM := Format("graphtool/program", "NAME.program.json", _RELEASES, "GT0360",
                      "GT0362", "`graphtool lower` makes one from a graph"),
    BUILD := Format("graphtool/build", "build.json", _RELEASES, "GT2201", "GT2201"),
    TUNING := Format("graphtool/tuning", "NAME.jsonl", _RELEASES, "GT0632", "GT0632"),
    CHECKPOINT := Format("graphtool/checkpoint", "checkpoint.safetensors", _RELEASES[:2],
                         "GT3077", "GT3077"),
)


def current(form: Format, document: Any, where: str) -> Document:
    """The document in the current version of its format; what came in is not changed.

    Raises InputError `form.alien` for another kind of file, GT0334 for a newer version,
    `form.malformed` where the version is none or an upgrade does not find what it needs.
    """
    version = check(form, document, where)
    if version == form.version:
        return dict(document)
    try:
        for upgrade in form.upgrades[version - 1:]:
            document = upgrade(document)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(form.malformed, f"malformed {form.name} of version {version}: {error!r}",
                         where=where) from error
    return {**document, **form.head}


def check(form: Format, document: Any, where: str) -> int:
    """The version of a document that `current` can read; raises as that does."""
    found = document.get("format") if isinstance(document, dict) else None
    if found != form.name:
        raise InputError(form.alien, f"expected a {form.name} artifact, got "
                                     f"{found or 'something else'}", where=where, hint=form.hint)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise InputError(form.malformed, f"{version!r} is no version of {form.name}", where=where)
    if version > form.version:
        raise _newer(form, version, document.get("since"), where)
    return version


def _newer(form: Format, version: int, since: object, where: str) -> InputError:
    """The error for a file of a version that is not known here; `since` is what the file says."""
    known = isinstance(since, str) and since.replace(".", "").isalnum()
    needed = f"graphtool {since} or newer" if known else "a newer graphtool"
    return InputError("GT0334", f"{form.name} version {version} needs {needed}; this one reads "
                                f"versions 1 to {form.version}", where=where,
                      hint=release.install(least=str(since) if known else ""))
