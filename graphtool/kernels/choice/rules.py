"""The rules that limit the choice: the classes of numerics, libraries, and the measurements."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphtool.errors import UsageError
from graphtool.kernels.choice.tuning import Tuning


@dataclass(frozen=True)
class Rules:
    """What may be chosen. `winograd` is the largest output tile, 0 for none.

    `precision` is the name of the class of numerics; `rules_of` has the classes.
    """

    precision: str = "default"
    winograd: int = 4
    bf16: bool = False
    kernels: str = "generated"  # generated | blas | auto
    tuning: Tuning = field(default_factory=Tuning)


PRECISIONS = {  # class: (largest Winograd tile, bfloat16 products)
    "strict": (2, False), "default": (4, False), "fast": (4, True)}
KERNELS = ("generated", "blas", "auto")


def rules_of(precision: str = "default", kernels: str = "generated",
             tuning: Tuning | None = None) -> Rules:
    """The rules of a class of numerics. Raises UsageError GT0633, GT0634 for unknown names."""
    if precision not in PRECISIONS:
        raise UsageError("GT0633", f"unknown precision {precision!r}", hint=", ".join(PRECISIONS))
    if kernels not in KERNELS:
        raise UsageError("GT0634", f"unknown kernels {kernels!r}", hint=", ".join(KERNELS))
    winograd, bf16 = PRECISIONS[precision]
    return Rules(precision, winograd, bf16, kernels, tuning or Tuning())
