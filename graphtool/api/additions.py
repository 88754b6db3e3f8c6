"""What plug-ins add to the command line: verbs, forms of import, reports. `extend` exports it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from graphtool.api.arguments import Array
from graphtool.errors import UsageError, one_of
from graphtool.importers.kinds import what
from graphtool.importers.record import IMPORTERS, Importer
from graphtool.importers.record import register as register_importer
from graphtool.package.record import FORMS, PackageForm
from graphtool.plugins import added, guarded, guarded_fields, taken
from graphtool.report.added import REPORTS, Report
from graphtool.verbs import FAMILIES, GROUPS, VERBS, Verb

Run = Callable[[Mapping[str, Array]], dict[str, Array]]


def add_verb(row: Verb) -> Verb:
    """Add a verb to the command line, the help and the completions.

    Raises UsageError GT3107 for a name, a group or a function that cannot be used.
    """
    if row.name in VERBS or row.name in FAMILIES:
        raise taken("verb", row.name)
    first, _, second = row.name.partition(" ")
    if not re.fullmatch(r"[a-z][a-z0-9-]*( [a-z][a-z0-9-]*)?", row.name) or (
            second and first not in FAMILIES):
        raise UsageError("GT3107", f"{row.name!r} cannot name a verb", hint="a word in lower case; "
                         f"two only where the first is one of {', '.join(FAMILIES)}")
    if row.group not in GROUPS:
        raise UsageError("GT3107", f"there is no group of verbs {row.group!r}",
                         hint=one_of(row.group, GROUPS))
    if not inspect.getdoc(row.run):
        raise UsageError("GT3107", f"the verb {row.name} has no help",
                         hint="give its function a docstring")
    VERBS[row.name] = replace(row, run=guarded(f"the verb {row.name}", row.run))
    added("verb", row.name, partial(VERBS.pop, row.name))
    return row


def add_importer(row: Importer, oracle: Callable[[str], Run] | None = None) -> Importer:
    """Add a form of models that `import` and all other verbs read.

    `oracle(source)` gives a function that runs the model itself on arrays by the names of the
    graph's inputs; `import` and `check` compare the graph with it. Raises UsageError GT3107 if the
    row reads nothing, or if its suffixes are those of other files.
    """
    if row.name in IMPORTERS:
        raise taken("importer", row.name)
    if row.read is None or not (row.suffixes or row.accepts):
        raise UsageError("GT3107", f"the importer {row.name} has no `read`, or nothing that says "
                                   "which sources are its own", hint="suffixes=(…), read=…")
    for suffix in row.suffixes:
        if (other := what(f"x{suffix}")).name not in ("missing", row.name):
            raise UsageError("GT3107", f"{suffix} is the suffix of {other.title}",
                             hint="choose another one")
    row = guarded_fields(row, f"the importer {row.name}")
    if oracle is not None:
        row = replace(row, oracle=row.name)
        _add_oracle(row.name, guarded(f"the oracle of {row.name}", oracle))
    register_importer(row)
    added("importer", row.name, partial(IMPORTERS.pop, row.name))
    return row


def _add_oracle(name: str, make: Callable[[str], Run]) -> None:
    from graphtool.verify.sides import ORACLES, Oracle, of_model
    ORACLES[name] = Oracle(lambda source, module, specs, limits: of_model(
        name, source, module, specs, make(source)))
    added("oracle", name, partial(ORACLES.pop, name))


def add_package_form(row: PackageForm) -> PackageForm:
    """Add a form of packages: `graphtool package BUILD --as NAME`."""
    import graphtool.package.forms  # noqa: F401  (adds its own to the table)
    if row.name in FORMS:
        raise taken("package form", row.name)
    FORMS[row.name] = guarded_fields(row, f"the package form {row.name}")
    added("package form", row.name, partial(FORMS.pop, row.name))
    return row


def add_report(row: Report) -> Report:
    """Add a report on a graph: `show --report NAME`, with --json, and `schema NAME`."""
    import graphtool.verify.schemas  # noqa: F401  (adds its own to the table)
    from graphtool.report.schemas import TYPES
    if row.name in TYPES or row.name in REPORTS:
        raise taken("report", row.name)
    REPORTS[row.name] = guarded_fields(row, f"the report {row.name}")
    TYPES[row.name] = row.type
    added("report", row.name, partial(REPORTS.pop, row.name))
    added("schema", row.name, partial(TYPES.pop, row.name))
    return row
