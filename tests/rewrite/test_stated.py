"""A rule is in use from where it stands: no list has to name it too."""

from __future__ import annotations

import importlib
import pkgutil

from graphtool.extend import _RULES as PASSES
from graphtool.rewrite.engine import Rule


def test_every_rule_belongs_to_a_pass() -> None:
    used = {id(r) for rules in PASSES.values() for r in rules}
    for package in ("graphtool.rewrite", "graphtool.passes"):
        path = importlib.import_module(package).__path__
        for found in pkgutil.walk_packages(path, f"{package}."):
            for rule in vars(importlib.import_module(found.name)).values():
                assert not isinstance(rule, Rule) or id(rule) in used, f"{found.name}: {rule.name}"
    assert len(used) > 80
