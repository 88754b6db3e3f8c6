"""How sure it is that a rule is right: the tier of its proof.

`proofs.json` has a row for each rule of graphtool that is more than tested, written by
`python -m tests.lab proofs --write`. A row is valid for the source of the rule from which its
digest was made; a test compares them. A plug-in's rule states its own tier.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import msgspec

Tier = Literal["proved", "bounded", "tested"]
TIERS: tuple[Tier, ...] = get_args(Tier)  # each is surer than those after it
MEANING: Mapping[Tier, str] = {
    "proved": "for all numbers of its class and all sizes, with up to four axes",
    "bounded": "for all numbers of its class, and for all shapes and attributes up to a bound",
    "tested": "on examples"}


class Proof(msgspec.Struct):
    """What was shown of a rule: its tier, the number of graphs, the readings of numbers that were
    needed (bits, ieee, real), and the digest of the source it was shown of."""

    tier: Tier
    graphs: int
    by: list[str]
    source: str


@cache
def proofs() -> dict[str, Proof]:
    """The rows of `proofs.json`, by module and name of the rule."""
    text = files("graphtool.assume").joinpath("proofs.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Proof])


def recorded(key: str) -> Tier:
    """The tier of a rule of graphtool by its module and name; tested if nothing more is shown."""
    row = proofs().get(key)
    return "tested" if row is None else row.tier


def reaches(tier: Tier, least: Tier) -> bool:
    """Whether a tier is at least as sure as another."""
    return TIERS.index(tier) <= TIERS.index(least)
