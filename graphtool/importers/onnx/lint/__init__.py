"""Checks an ONNX model against a profile: requirements on the file, apart from whether it can be
compiled."""

from __future__ import annotations

from pathlib import Path

from graphtool.errors import InputError, one_of
from graphtool.importers.onnx.driver.reader import read_model
from graphtool.importers.onnx.lint.checks import CHECKS, Violation, subject
from graphtool.importers.onnx.lint.profile import Profile

__all__ = ["Violation", "violations"]


def violations(path: Path, profile: Profile) -> list[list[Violation]]:
    """What of the model in a `.onnx` file violates each rule of the profile.

    Raises InputError GT1001 and GT1002 for a file that is not a model, GT1060 for a rule whose
    check does not exist.
    """
    for rule in profile.rules:
        if rule.check not in CHECKS:
            raise InputError("GT1060", f"the rule {rule.id!r} names the unknown check "
                                       f"{rule.check!r}", where=profile.name,
                             hint=one_of(rule.check, CHECKS))
    model = subject(read_model(path))
    return [list(CHECKS[rule.check](model, rule)) for rule in profile.rules]
