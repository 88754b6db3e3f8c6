"""A lint profile: the requirements on ONNX models that a program can check, as data.

A profile is a JSON file. `sonnx.json` has those that the ONNX working group for a safety-related
profile has written down; a company adds its own by a file of its own.
"""

from __future__ import annotations

from importlib.resources import files as package_files
from pathlib import Path
from typing import Literal

import msgspec

from graphtool.errors import InputError
from graphtool.io import files

BUILT_IN = ("sonnx",)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A requirement: its number `id` in the document that states it, what it `says`, and the check
    of the table CHECKS that decides it, for these `names` (of operators, inputs or attributes)."""

    id: str
    says: str
    check: str
    level: Literal["note", "warning", "error"] = "error"
    names: tuple[str, ...] = ()


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A profile; `source` says which documents, in which version, state its rules."""

    name: str
    title: str
    source: str
    rules: tuple[Rule, ...]


def load(name: str) -> Profile:
    """The built-in profile of this name, or that of a file.

    Raises InputError GT0332 for a file that cannot be read, GT0331 for one that is not JSON, GT1060
    for JSON that is no profile.
    """
    data = _built_in(name) if name in BUILT_IN else files.read_bytes(Path(name))
    raw = files.read_json(data, name)
    try:
        profile = msgspec.convert(raw, Profile)
    except msgspec.ValidationError as error:
        raise InputError("GT1060", f"not a lint profile: {error}", where=name,
                         hint="`graphtool lint --profile sonnx` prints one") from error
    ids = [r.id for r in profile.rules]
    if twice := next((i for i in ids if ids.count(i) > 1), None):
        raise InputError("GT1060", f"the profile has two rules {twice!r}", where=name)
    return profile


def _built_in(name: str) -> bytes:
    return (package_files(__package__) / f"{name}.json").read_bytes()


def text(profile: Profile) -> str:
    """The profile as the text of its file."""
    return msgspec.json.format(msgspec.json.encode(profile), indent=2).decode()
