"""All rules of `simplify`, in the order in which they are tried at a node."""

from __future__ import annotations

from graphtool.rewrite.rules.algebra import ALGEBRA
from graphtool.rewrite.rules.movement import SHAPE

RULES = [*ALGEBRA, *SHAPE]
