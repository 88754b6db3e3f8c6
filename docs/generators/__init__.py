"""Writes the pages of docs/reference/ from the records that the tool itself reads."""

from __future__ import annotations

from collections.abc import Callable

from docs.generators import (
    api,
    dtypes,
    errors,
    formats,
    kernels,
    ops,
    packages,
    passes,
    rules,
    speed,
    stablehlo,
    targets,
    verbs,
)

PAGES: dict[str, Callable[[], str]] = {
    "verbs": verbs.page, "api": api.page, "ops": ops.page, "passes": passes.page,
    "rules": rules.page, "errors": errors.page, "formats": formats.page, "kernels": kernels.page,
    "targets": targets.page, "dtypes": dtypes.page, "packages": packages.page,
    "stablehlo": stablehlo.page, "speed": speed.page}
