"""What shells complete: the known words of options and arguments, read when a script is made."""

from __future__ import annotations

from collections.abc import Iterable

from graphtool.compile.options import Build, Importing, options_of, targets
from graphtool.verbs import Words, families


def ops() -> Iterable[str]:
    """The names of ops."""
    from graphtool.report.catalog import ops_report
    return (row.name for row in ops_report(None).ops)


def schemas() -> Iterable[str]:
    """What has a schema."""
    from graphtool.report.schemas import TYPES
    return TYPES


def codes() -> Iterable[str]:
    """The codes of errors."""
    from graphtool.explain import CODES
    return sorted(CODES)


def categories() -> Iterable[str]:
    """The categories of ops."""
    from graphtool.ir.op import CATEGORIES
    return CATEGORIES


def losses() -> Iterable[str]:
    """The losses of `grad`."""
    from graphtool.transforms.training.recipe import LOSSES
    return LOSSES


def optimizers() -> Iterable[str]:
    """The optimizers of `grad`."""
    from graphtool.transforms.training.optimizers import OPTIMIZERS
    return OPTIMIZERS


def schedules() -> Iterable[str]:
    """The schedules of `train`."""
    from graphtool.train.schedule import SCHEDULES
    return SCHEDULES


def languages() -> Iterable[str]:
    """The languages of `show`."""
    from graphtool.report.texts import TEXTS
    return (*TEXTS, "fx")


def formats() -> Iterable[str]:
    """The forms of a report."""
    from graphtool.report.findings import FORMATS
    return FORMATS


def targets_and_fat() -> Iterable[str]:
    """The targets of `build`."""
    return (*targets(), "fat")


def pictures() -> Iterable[str]:
    """The formats of `draw`."""
    return ("dot", "mermaid", "svg")


def exports() -> Iterable[str]:
    """The formats of `export`."""
    return ("onnx", "stablehlo")


def placings() -> Iterable[str]:
    """Where `export` leaves the weights."""
    return ("constants", "arguments")


def reports() -> Iterable[str]:
    """The reports that plug-ins have added."""
    from graphtool.report.added import REPORTS
    return REPORTS


def shells() -> Iterable[str]:
    """The shells for which there are scripts."""
    return ("bash", "zsh", "fish")


def verbs() -> Iterable[str]:
    """The first words of all verbs."""
    return families()


COMMON: dict[str, Words] = {"--format": formats} | {
    name: found.words for record in (Build, Importing) for _, _, found in options_of(record)
    if found.words for name in found.names}
"""Words of options that several verbs have."""
