"""Fills the table of forms."""

from __future__ import annotations

from graphtool.package import cargo, casadi, go, installed, npm, single, wheel  # noqa: F401
from graphtool.package.record import FORMS, package

__all__ = ["FORMS", "package"]
