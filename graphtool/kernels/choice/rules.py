"""The rules that limit the choice: the classes of numerics, libraries, and the measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from graphtool.assume import ASSUMPTIONS, Assumption, Soundness, allowed, numerics_class
from graphtool.errors import UsageError, one_of
from graphtool.kernels.choice.tuning import Tuning
from graphtool.assume.tiers import TIERS, Tier
from graphtool.target import Target

Activations = Literal["asked", "q8", "exact"]
Objective = Literal["usual", "size", "ram", "speed"]


@dataclass(frozen=True)
class Rules:
    """What may be chosen. `winograd` is the largest output tile, 0 for none.

    `precision` is the name of the class of numerics; `rules_of` has the classes. `assume` says what
    a kernel may assume of the numbers: a kernel that assumes finite numbers can spread a NaN or an
    infinity to places where the model has none, or lose it; `normal` lets the CPU take subnormal
    numbers for 0 too. `activations` says in which products with packed weights the left operand is
    rounded to 8 bits: `asked` where the model says so, `q8` in all, `exact` in none.
    `objective`: kernels of few bytes (size) or of little time (speed) are preferred; ram: as size,
    and rows are streamed; usual: size on a target without an operating system, else speed.
    `proofs` is the least tier of the rules and passes that may change the graph.
    """

    precision: str = "default"
    winograd: int = 4
    bf16: bool = False
    kernels: str = "generated"  # generated | blas | auto
    tuning: Tuning = field(default_factory=Tuning)
    assume: Assumption = "finite"
    activations: Activations = "asked"
    objective: Objective = "usual"
    proofs: Tier = "tested"

    def small(self, target: Target) -> bool:
        """Whether of two kernels the one with fewer bytes is taken."""
        return self.objective in ("size", "ram") or (
            self.objective == "usual" and target.freestanding)

    @property
    def in_order(self) -> bool:
        """Whether sums must be added up in the order of their terms, on every machine."""
        return self.precision == "strict"

    @property
    def parts(self) -> int:
        """The bfloat16 parts of a float32 that a matrix unit multiplies; three hold all digits."""
        return 3 if self.precision == "default" else 2

    @property
    def marks(self) -> dict[str, str]:
        """What of them is not as usual and counts beyond the choice of kernels, for `meta`."""
        return ({} if self.precision == "default" else {"precision": self.precision}) | (
            {"assume": self.assume} if self.assume == "normal" else {})

    @property
    def allowed(self) -> frozenset[Soundness]:
        """The classes of the rewrites that may be made."""
        return allowed(assume=self.assume)

    def allows(self, assumption: Assumption) -> bool:
        """Whether something that makes this assumption may be chosen."""
        return assumption == "nothing" or assumption in self.allowed


def permitted(rules: Rules | None, numerics: str, where: str) -> frozenset[Soundness]:
    """The classes of the rewrites that a pass may make, for its argument `numerics`; without rules,
    numbers may be assumed to be finite. Raises UsageError GT0605 for an unknown class."""
    return allowed(numerics_class(numerics, where), (rules or Rules()).assume)


PRECISIONS = {  # class: (largest Winograd tile, bfloat16 products)
    "strict": (2, False), "default": (4, False), "high": (4, False), "fast": (4, True)}
KERNELS = ("generated", "blas", "auto")
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def rules_of(precision: str = "default", kernels: str = "generated",
             tuning: Tuning | None = None, assume: str = "finite",
             objective: str = "usual", proofs: str = "tested") -> Rules:
    """The rules of a class of numerics; in `strict` nothing is assumed, whatever `assume` says.

    Raises UsageError GT0633, GT0634, GT0635, GT0637, GT0638 for unknown names.
    """
    for code, what, name, known in (("GT0633", "precision", precision, PRECISIONS),
                                    ("GT0634", "kernels", kernels, KERNELS),
                                    ("GT0635", "assumption", assume, ASSUMPTIONS),
                                    ("GT0637", "objective", objective, OBJECTIVES),
                                    ("GT0638", "tier of proofs", proofs, TIERS)):
        if name not in known:
            raise UsageError(code, f"unknown {what} {name!r}", hint=one_of(name, known))
    winograd, bf16 = PRECISIONS[precision]
    return Rules(precision, winograd, bf16, kernels, tuning or Tuning(),
                 "nothing" if precision == "strict" else cast(Assumption, assume),
                 "q8" if precision == "fast" else "asked", cast(Objective, objective),
                 cast(Tier, proofs))
