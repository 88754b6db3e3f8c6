"""The ways to compile a graph. Each seed has one of them, so that all take their turn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from graphtool import passes
from graphtool.api.arguments import Precision, rules
from graphtool.assume import Assumption
from graphtool.ir.graph import Module
from graphtool.lower.arena import arena_of
from graphtool.target import detect, named


@dataclass(frozen=True)
class Variant:
    """One target and class of numbers, and what is assumed of them.

    What assumes finite numbers may move a NaN anywhere (docs/numerics.md), so a case that computes
    one is compiled without that assumption.
    """

    name: str
    march: str
    precision: Precision
    assume: Assumption = "finite"


VARIANTS = (Variant("native", "native", "default"), Variant("x86-64-v3", "x86-64-v3", "default"),
            Variant("strict", "native", "strict"))


@cache
def variants() -> tuple[Variant, ...]:
    """Those whose code this machine runs."""
    return tuple(v for v in VARIANTS if named(v.march).lanes <= detect().lanes)


def variant_of(seed: int) -> Variant:
    """The variant of a seed."""
    return variants()[seed % len(variants())]


def optimised(module: Module, variant: Variant) -> Module:
    """The module after the default passes for the variant. Raises GraphtoolError."""
    target, allowed = named(variant.march), rules(variant.precision, "generated", None,
                                                variant.assume)
    how: dict[str, Any] = {"target": target, "rules": allowed, "arena": arena_of(target, allowed)}
    return passes.run(module, supply=how)
