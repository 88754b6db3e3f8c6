"""The tiers of proof: current for the source of each rule, shown, and gated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graphtool
from graphtool import ops as o
from graphtool.assume.tiers import proofs, recorded
from graphtool.dtypes import float32, uint8
from graphtool.errors import UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import rules_of
from graphtool.passes import PassReport, run
from graphtool.passes.kept import keeps_terms
from graphtool.rewrite.engine import rule
from tests.lab.proofs import grouped, source


def test_every_proof_is_of_the_rule_as_it_is() -> None:
    rules = grouped()
    stale = [key for key, row in proofs().items()
             if key not in rules or row.source != source(rules[key])]
    assert not stale, "run `python -m tests.lab proofs --write`, which needs z3-solver"


def test_the_page_counts_the_rules() -> None:
    tiers = [recorded(key) for key in grouped()]
    page = Path(graphtool.__file__).parents[1] / "docs/explanation/what-is-proved.md"
    found = dict(re.findall(r"^\| (proved|bounded|tested) \| (\d+) ", page.read_text(), re.M))
    assert found == {tier: str(tiers.count(tier)) for tier in ("proved", "bounded", "tested")}


def test_a_rule_of_others_is_tested_unless_it_says_more() -> None:
    assert rule(lambda x: x + 0)(lambda x: x).tier == "tested"
    assert rule(lambda x: x + 0, tier="bounded")(lambda x: x).tier == "bounded"


def _module(fn: object) -> Module:
    return Module(trace(fn, [TensorType(float32, (3,))], ["x"]), ("y",))  # type: ignore[arg-type]


def test_rules_below_the_tier_are_left_out_and_named() -> None:
    module, left = _module(lambda x: o.pow(x, 2) + 0), list[str]()

    def after(report: PassReport, _: Module) -> None:
        left.extend(report.left_out)
    result = run(module, ["simplify", "layout"], after=after,
                 supply={"rules": rules_of(proofs="proved")})
    assert [n.op.name for n in result.graph.nodes] == ["pow"]
    assert left == ["simplify.pow_two", "layout"]
    with pytest.raises(UsageError, match="GT0638"):
        rules_of(proofs="sure")


@pytest.mark.parametrize(("a", "b", "same"), [
    (lambda x: o.neg(x) + o.neg(x), lambda x: (lambda y: y + y)(o.neg(x)), True),
    (lambda x: x + 1.0, lambda x: x + 2.0, False),
    (lambda x: x * (x + 1.0), lambda x: (x + 1.0) * x, True),
    (lambda x: o.sub(x, x + 1.0), lambda x: o.sub(x + 1.0, x), False)])
def test_terms(a: object, b: object, same: bool) -> None:
    assert keeps_terms(_module(a).graph, _module(b).graph) is same


@pytest.mark.parametrize("name", ["add_zero", "slice_slice", "softmax", "integer_linear"])
def test_some_proofs_again(name: str) -> None:
    pytest.importorskip("z3", reason="z3-solver proves rules")
    from tests.lab.proofs import proof_of
    key, rules = next((k, r) for k, r in grouped().items() if r[0].name == name)
    assert proof_of(rules)[0].tier == recorded(key) != "tested"


def test_a_wrong_rule_is_not_proved() -> None:
    pytest.importorskip("z3", reason="z3-solver proves rules")
    from tests.lab.proofs.patterns import graph
    from tests.lab.proofs.prove import attempt
    wrong = rule(lambda x: o.abs(o.neg(x)))(lambda x: o.abs(x))  # of u8, −1 is 255
    assert attempt(wrong, graph(lambda x: o.abs(o.neg(x)), (float32, (3,)))).word == "proved"
    assert "refuted" in attempt(wrong, graph(lambda x: o.abs(o.neg(x)), (uint8, (3,)))).detail
    late = rule(lambda x, a, b, s: o.slice(x, start=a, limit=b, strides=s))(
        lambda x, a, b, s: o.slice(x, start=tuple(i - 1 for i in a),
                                   limit=tuple(i - 1 for i in b), strides=s))
    cut = graph(lambda x: o.slice(x, start=(2,), limit=(4,), strides=(1,)), (float32, (9,)))
    assert "refuted" in attempt(late, cut).detail
