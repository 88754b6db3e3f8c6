"""All schemas by name: those of the reports, and those of what verification reports."""

from __future__ import annotations

from graphtool.report.schemas import TYPES, schema_text
from graphtool.verify.bisect import Bisection
from graphtool.verify.check import CheckReport
from graphtool.verify.pipeline import OptReport


def schemas() -> dict[str, str]:
    """What lies in schemas/: name → text."""
    types = {**TYPES, "opt": OptReport, "check": CheckReport, "bisect": Bisection}
    return {name: schema_text(name, t) for name, t in sorted(types.items())}
