"""All JSON schemas by name: those of graphtool.report, and those of the verification reports."""

from __future__ import annotations

from graphtool.report.schemas import TYPES, schema_text
from graphtool.verify.bisect import Bisection
from graphtool.verify.check import CheckReport
from graphtool.verify.pipeline import OptReport


def schemas() -> dict[str, str]:
    """The text of each file of schemas/, by name."""
    types = {**TYPES, "opt": OptReport, "check": CheckReport, "bisect": Bisection}
    return {name: schema_text(name, t) for name, t in sorted(types.items())}
