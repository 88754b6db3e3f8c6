"""The journal of rules: which fired and where, and which may."""

from __future__ import annotations

from dataclasses import dataclass

from graphtool.assume import Assumed, Soundness
from graphtool.assume.tiers import Tier


@dataclass(frozen=True)
class Fired:
    """One rule that fired: the values it matched and the value it made, by their hints.

    In a journal with texts, `was` and `became` are the expressions, and `where` is the key of the
    place in the module's table of locations. `why` is the reason for what it needs."""

    rule: str
    needs: tuple[Soundness, ...]
    matched: tuple[str, ...]
    produced: str
    why: str = ""
    where: str = ""
    was: str = ""
    became: str = ""
    tier: Tier = "tested"


class Journal(list[Fired]):
    """The rules that fired, in order. With a `limit`, rules decline once so many have fired; the
    rule and value of `without` decline always. With `texts`, expressions are recorded too. What
    passes without rules assume is in `assumed`, by the function or kernel that assumes it. Rules
    below the tier `proofs` decline too; `left_out` has those that would have fired."""

    def __init__(self, limit: int | None = None, without: tuple[str, str] | None = None,
                 texts: bool = False, proofs: Tier = "tested") -> None:
        super().__init__()
        self.limit, self.without, self.texts, self.proofs = limit, without, texts, proofs
        self.assumed: list[Assumed] = []
        self.left_out: dict[str, None] = {}
