"""The report of what in an ONNX model violates a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from graphtool.report.findings import Finding, Level, Outcome, outcome

if TYPE_CHECKING:  # the checks need onnx, a report does not
    from graphtool.importers.onnx.lint import Violation
    from graphtool.importers.onnx.lint.profile import Profile

_SHOWN = 5  # places of each rule in the text; JSON and the formats have all


class LintFinding(msgspec.Struct):
    """A node or value that violates a rule, and the graph or function that it is in."""

    name: str
    message: str
    at: str


class LintRule(msgspec.Struct):
    """A rule of the profile with what violates it."""

    id: str
    says: str
    level: Level
    findings: list[LintFinding]


class Lint(msgspec.Struct):
    """`lint --json`; schemas/lint.schema.json is made from it. `ok`: no error was found."""

    profile: str
    source: str
    ok: bool
    rules: list[LintRule]


def lint_report(profile: Profile, found: Sequence[Sequence[Violation]]) -> Lint:
    """The report of these violations, a list for each rule of the profile."""
    rules = [LintRule(r.id, r.says, r.level, [LintFinding(v.name, v.message, v.at) for v in rows])
             for r, rows in zip(profile.rules, found, strict=True)]
    ok = not any(r.findings for r in rules if r.level == "error")
    return Lint(profile.name, profile.source, ok, rules)


def lint_lines(report: Lint) -> list[str]:
    """The report as lines of text."""
    return [*_broken(report), _held(report), _summary(report)]


def _broken(report: Lint) -> Iterator[str]:
    for rule in report.rules:
        if not rule.findings:
            continue
        yield f"{rule.id} ({rule.level}, {len(rule.findings)} ×): {rule.says}"
        for f in rule.findings[:_SHOWN]:
            yield f"    {f.name}: {f.message}" + (f", in {f.at}" if f.at else "")
        if len(rule.findings) > _SHOWN:
            yield f"    and {len(rule.findings) - _SHOWN} more; --json has all"


def _held(report: Lint) -> str:
    return f"kept: {', '.join(r.id for r in report.rules if not r.findings) or 'none'}"


def _summary(report: Lint) -> str:
    broken = sum(bool(r.findings) for r in report.rules)
    count = sum(len(r.findings) for r in report.rules)
    return f"{report.profile}: " + (
        f"{count} findings against {broken} of {len(report.rules)} rules" if broken else
        f"all {len(report.rules)} rules are kept")


def lint_outcome(report: Lint, model: str) -> Outcome:
    """A finding for each node or value that violates a rule."""
    findings = [Finding(f"lint/{r.id}", f.name, r.level, f"{f.message} ({r.says})", f.at, model)
                for r in report.rules for f in r.findings]
    return outcome("lint", model, _summary(report), findings, lint_lines(report))
