"""Soundness as a value: what a rewrite assumes of its inputs, and how far it may change its
outputs.

A rewrite returns `Assumes(value, "finite", why)`. Who applies it asks whether the class is in the
set that `allowed` gives, which is the one filter, and adds an `Assumed` to the record of its pass.
The driver of the passes keeps the records in the module, and derives them again to check them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from graphtool.errors import UsageError, one_of

T = TypeVar("T")

Numerics = Literal["exact", "reassociated", "approximate"]
Assumption = Literal["nothing", "finite", "normal"]
Soundness = Literal["exact", "reassociated", "approximate", "finite", "normal"]
Needs = Soundness | tuple[Soundness, ...]  # none: the rewrite is exact

# in both lists each word allows what those before it allow
NUMERICS: tuple[Numerics, ...] = ("exact", "reassociated", "approximate")
ASSUMPTIONS: tuple[Assumption, ...] = ("nothing", "finite", "normal")
MEANING: Mapping[Soundness, str] = {
    "exact": "the same bits", "reassociated": "floats may round in another order",
    "approximate": "values may differ by more than rounding",
    "finite": "no NaN and no infinity comes in: one that does may move, spread or be lost",
    "normal": "subnormal numbers count as 0"}


@dataclass(frozen=True, slots=True)
class Assumes(Generic[T]):
    """The result of a rewrite that is right only under an assumption of this class."""

    value: T
    needs: Soundness
    why: str


@dataclass(frozen=True, slots=True)
class Assumed:
    """What was assumed as values were rewritten: the class, the pass with its rule or kernel, the
    reason, and the names of the values."""

    needs: Soundness
    by: str
    why: str
    values: tuple[str, ...]


def joined(rows: Iterable[Assumed]) -> tuple[Assumed, ...]:
    """The rows with one for each class, origin and reason; each name once, in order."""
    values_of: dict[tuple[Soundness, str, str], dict[str, None]] = {}
    for r in rows:
        values_of.setdefault((r.needs, r.by, r.why), {}).update(dict.fromkeys(r.values))
    return tuple(Assumed(*key, tuple(values)) for key, values in values_of.items())


def allowed(numerics: Numerics = "approximate", assume: Assumption = "finite",
            ) -> frozenset[Soundness]:
    """The classes of the rewrites that may be made: up to a class of numerics, and up to what may
    be assumed of the numbers that come in."""
    most = ASSUMPTIONS.index(assume)
    return frozenset(NUMERICS[:NUMERICS.index(numerics) + 1]) | frozenset(
        name for name in ASSUMPTIONS[1:most + 1] if name != "nothing")


EXACT = allowed("exact")  # no result changes, and finite numbers may be assumed


def several(needs: Needs) -> tuple[Soundness, ...]:
    """The classes that one word or several name."""
    return needs if isinstance(needs, tuple) else (needs,)


def numerics_of(needs: Iterable[Soundness]) -> Soundness:
    """How far a rewrite with these needs may change results."""
    return next((n for n in needs if n in NUMERICS), "exact")


def numerics_class(text: str, where: str) -> Numerics:
    """The class of numerics named by `text`. Raises UsageError GT0605 for an unknown name."""
    for known in NUMERICS:
        if known == text:
            return known
    raise UsageError("GT0605", f"{where}: unknown numerics class {text!r}",
                     hint=one_of(text, NUMERICS))


def of_numbers(rows: Iterable[Assumed]) -> Iterable[Assumption]:
    """What rows assume of the numbers that come in; how far results may change is left out."""
    return (name for r in rows for name in ASSUMPTIONS if name == r.needs)


def strongest(assumptions: Iterable[Assumption]) -> Assumption:
    """What is assumed if all of these are: the last of them in `ASSUMPTIONS`."""
    return max(assumptions, key=ASSUMPTIONS.index, default="nothing")
