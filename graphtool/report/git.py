"""The reports of `graphtool git`, as data: integrations/git makes them."""

from __future__ import annotations

import msgspec

from graphtool.report.diff import Diff


class DriverSetting(msgspec.Struct):
    """One thing that the drivers need: where it stands, whether it is there as it should be."""

    place: str
    name: str
    value: str
    ok: bool


class GitStatus(msgspec.Struct):
    """`git status --json`; schemas/git-status.schema.json is made from it."""

    repository: str
    ok: bool
    settings: list[DriverSetting]


class Checked(msgspec.Struct):
    """One graph file: whether it may be committed, and else why not."""

    path: str
    ok: bool
    message: str


class HookReport(msgspec.Struct):
    """`git check --json`; schemas/git-check.schema.json is made from it."""

    ok: bool
    files: list[Checked]


class Reviewed(msgspec.Struct):
    """One graph file: `diff` is null if only one side has the file, or it cannot be read."""

    path: str
    state: str  # equal | changed | added | removed | broken
    message: str
    diff: Diff | None


class Review(msgspec.Struct):
    """`git review --json`; schemas/review.schema.json is made from it."""

    base: str
    ok: bool
    graphs: list[Reviewed]
