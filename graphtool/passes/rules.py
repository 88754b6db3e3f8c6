"""All rules of `simplify`, in the order in which they are tried at a node."""

from __future__ import annotations

from graphtool.passes.rewrite import Rule
from graphtool.passes.rules_algebra import ALGEBRA
from graphtool.passes.rules_shape import SHAPE

RULES: tuple[Rule, ...] = (*ALGEBRA, *SHAPE)
