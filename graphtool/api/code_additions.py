"""What plug-ins add to the making of code: kernels, sites, selectors, languages, targets. `extend`
exports it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from graphtool.emit.language import LANGUAGES, Language
from graphtool.emit.language import register as register_language
from graphtool.errors import UsageError
from graphtool.ir.graph import Module
from graphtool.ir.op import named
from graphtool.kernels import headers
from graphtool.kernels.choice.sites import SITES, OwnSite
from graphtool.kernels.record import KERNELS, Record, unregister
from graphtool.kernels.record import register as register_kernel
from graphtool.passes.select import SELECTORS, Selector
from graphtool.plugins import added, guarded, taken
from graphtool.target import TABLE as TARGETS
from graphtool.target import Target
from graphtool.target import register as register_target


def add_kernel(record: Record, header: Path) -> Record:
    """Add a kernel: its record, and the C header NAME.h that it describes, which builds copy.

    The op that it computes must be added before, with `lowering=Lowering.TEMPLATE`. Raises
    UsageError GT3106 if the header does not exist, or does not have the kernel's name.
    """
    if record.name in KERNELS or record.contract.header in headers.names():
        raise taken("kernel", record.name)
    if header.name != record.contract.header or not header.is_file():
        raise UsageError("GT3106", f"the header of {record.name} is not {header.name}",
                         hint=f"put {record.contract.header} next to the plug-in")
    _add_header(header, record.name)
    register_kernel(record)
    added("kernel", record.name, partial(unregister, record))
    return record


def add_site(kind: str, site: type[OwnSite],
             model: Callable[[Any], Module] | None = None) -> None:
    """Add a class of sites for which kernels are chosen: a frozen dataclass of ints and bools.

    The alternatives for it are in the records of the kernels. `model(site)` gives a module of this
    operation alone, all dims closed, which `tune` builds by each alternative and measures; without
    it, `tune` leaves such sites as their costs say.
    """
    from graphtool.tune.measure import MODELS

    if kind in SITES:
        raise taken("site", kind)
    SITES[kind] = site
    added("site", kind, partial(SITES.pop, kind))
    if model is not None:
        MODELS[site] = model
        added("model", kind, partial(MODELS.pop, site))


def add_selector(op: str, selector: Selector) -> None:
    """Add a function with which `select` rewrites an op.

    `selector(goal, node, operands)` returns the node's results, or None to leave the node
    unchanged. `goal.best` returns the result of the best kernel for a site. Raises InputError
    GT0401 if there is no op of that name.
    """
    row = named(op)
    if row in SELECTORS:
        raise taken("selector", op)
    SELECTORS[row] = guarded(f"the selector of {op}", selector)
    added("selector", op, partial(SELECTORS.pop, row))


def add_language(row: Language, *texts: Path) -> Language:
    """Add a language in which kernels are emitted: its record, and the headers that builds copy.

    A target names it: `Target(…, language=row.name)`. A kernel has a text in it if its Contract
    says so in `languages`; one that has none is emitted as the definition of its op. Raises
    UsageError GT3106 if a header does not exist.
    """
    if row.name in LANGUAGES:
        raise taken("language", row.name)
    for text in texts:
        _add_header(text, row.title)
    register_language(row)
    added("language", row.name, partial(LANGUAGES.pop, row.name))
    return row


def _add_header(text: Path, whose: str) -> None:
    if text.name in headers.names():
        raise taken("header", text.name)
    if not text.is_file():
        raise UsageError("GT3106", f"there is no {text.name} for {whose}",
                         hint=f"put {text.name} next to the plug-in")
    headers.ADDED[text.name] = text.read_text("utf-8")
    added("header", text.name, partial(headers.ADDED.pop, text.name))


def add_target(row: Target) -> Target:
    """Add a machine for which C can be emitted, by `--march NAME`."""
    if row.name in TARGETS:
        raise taken("target", row.name)
    register_target(row)
    added("target", row.name, partial(TARGETS.pop, row.name))
    return row
