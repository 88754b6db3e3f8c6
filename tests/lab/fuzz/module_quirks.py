"""Where torch's eager results are no judge: known differences, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

from tests.lab.fuzz.module_gradients import ONLY_NAN, OUR_NAN
from tests.lab.fuzz.modules import ModuleCase


@dataclass(frozen=True)
class Quirk:
    """A difference of this kind that is expected of modules where `when` holds, and with a line
    of these rows, if there are some."""

    kind: str  # a regular expression
    reason: str
    when: Callable[[ModuleCase], bool]
    rows: tuple[str, ...] = ()


def _nan(made: ModuleCase) -> bool:
    """Whether the module computes a NaN."""
    return any(bool(t.isnan().any()) for t in made.values.values() if t.is_floating_point())


def _expanded(made: ModuleCase) -> bool:
    """Whether a line makes elements that share memory."""
    return bool({"expand", "as_strided"} & set(made.ops))


def _sorts_mixed(made: ModuleCase) -> bool:
    """Whether torch may sort numbers of two types, one of 16 bits, to find equal ones."""
    return any("torch.isin" in line.text for line in made.lines) and any(
        t.dtype in (torch.float16, torch.bfloat16) for t in made.values.values())


QUIRKS = (
    Quirk("value", "torch's isin of many numbers finds one that equals its neighbour in 16 bits",
          _sorts_mixed),
    Quirk("value", "torch's median and kthvalue of an expanded tensor sort memory that elements "
          "share", _expanded, ("median", "nanmedian", "kthvalue")),
    Quirk("gradient: .* off", "at NaN torch's kernels pass the gradient on or not, and those of "
          "vectors otherwise than those of the rest", _nan,
          ("F.hardshrink", "F.hardtanh", "kthvalue", "logcumsumexp")),
    Quirk(f"gradient: .*{ONLY_NAN}", "a function whose value is NaN has no gradient: torch's is "
          "NaN, ours may be that of the operand chosen", _nan),
    Quirk(f"gradient: .*{OUR_NAN}", "torch takes 0 times the logarithm of a negative number for 0 "
          "in a gradient; ours is NaN, as 0 times NaN is", _nan, ("xlogy",)),
    Quirk("gradient: .* off", "torch.export writes softshrink of NaN as 0 times NaN, whose "
          "gradient is 0; eager passes the gradient on", _nan, ("F.softshrink",)))


def quirk(made: ModuleCase, kind: str) -> str:
    """The reason why a difference says nothing; empty if it does."""
    return next((q.reason for q in QUIRKS if re.search(q.kind, kind)
                 and (not q.rows or set(q.rows) & set(made.ops)) and q.when(made)), "")
