"""All JSON schemas by name: those of graphtool.report, and those of the verification reports."""

from __future__ import annotations

from graphtool.errors import UsageError, one_of
from graphtool.report.schemas import TYPES, schema_text
from graphtool.verify.bisect import Bisection
from graphtool.verify.bounding import BoundReport
from graphtool.verify.check import CheckReport
from graphtool.verify.pipeline import OptReport
from graphtool.verify.repro import Repro

TYPES |= {"opt": OptReport, "check": CheckReport, "bisect": Bisection, "repro": Repro,
          "bound": BoundReport}


def schemas() -> dict[str, str]:
    """The text of each file of schemas/, by name."""
    return {name: schema_text(name, t) for name, t in sorted(TYPES.items())}


def schema_of(name: str) -> str:
    """The text of one schema; that of graphs has the ops that are there now, those of plug-ins
    included. Raises UsageError GT3026 for an unknown name."""
    if name not in TYPES:
        raise UsageError("GT3026", f"there is no schema {name!r}",
                         hint=one_of(name, sorted(TYPES)))
    return schema_text(name, TYPES[name])
