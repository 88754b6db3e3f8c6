"""The journal of the passes, the history of a value, and the one application that is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.ir.graph import Module
from graphtool.passes.journal import PassEvents, read_journal, write_journal
from graphtool.rewrite.engine import rule
from graphtool.rewrite.journal import Journal
from graphtool.target import named
from graphtool.verify.bisect import bisect, bisect_lines
from tests.cli.conftest import SAMPLES, Cli, gt  # noqa: F401  (a fixture)
from tests.passes.pass_samples import module

TARGET = named("x86-64", 1)


def recorded(m: Module, text: str) -> tuple[PassEvents, Module]:
    recorder = PassEvents(m)
    return recorder, passes.run(m, text, after=recorder.after, supply={"target": TARGET},
                                texts=True)


@pytest.fixture
def twice() -> Module:
    return module(lambda x: o.transpose(o.transpose(x + 0.0, perm=(1, 0)), perm=(1, 0)) * 2.0,
                  "f32[2,3]", names=["x"])


def test_a_rule_says_what_was_and_became(twice: Module) -> None:
    recorder, _ = recorded(twice, "simplify")
    found = {e.rule: e for e in recorder.events}
    merged = next(e for r, e in found.items() if "transpose" in r)
    assert merged.was.startswith("transpose(transpose(") and "transpose" not in merged.became
    assert merged.step == "simplify" and merged.numerics == "exact" and merged.number == 1
    assert {e.rule for e in recorder.events} == {
        f.rule for f in _journal(twice)}, "the journal and the events agree"


def _journal(m: Module) -> list[Any]:
    found: list[Any] = []
    passes.run(m, "simplify", after=lambda r, _: found.extend(r.journal))
    assert all(not f.was for f in found), "texts only where they are wanted"
    return found


def test_a_pass_without_rules_says_what_it_did() -> None:
    m = module(lambda x: o.softmax(x, axis=1), "f32[2,3]", names=["x"])
    recorder, _ = recorded(m, "decompose")
    (event,) = [e for e in recorder.events if e.value == "softmax"]
    assert event.was.startswith("softmax(x, axis=1)") and "exp(" in event.became
    assert not event.rule and not recorded(m, "dce")[0].events


def test_fusion_is_an_event() -> None:
    m = module(lambda x: o.exp(o.neg(x)), "f32[2,3]", names=["x"])
    (event,) = recorded(m, "fuse")[0].events
    assert (event.was, event.became) == ("neg, exp", "one kernel (nest)")


def test_the_file_is_read_back(twice: Module, tmp_path: Path, gt: Cli) -> None:  # noqa: F811
    events = recorded(twice, "simplify")[0].events
    write_journal(tmp_path / "j.jsonl", events)
    assert read_journal(tmp_path / "j.jsonl") == events
    (tmp_path / "j.jsonl").write_text('{"pass": 1}\n')
    result = gt("why", SAMPLES / "digits.onnx", "relu", "--journal", tmp_path / "j.jsonl",
                "--optimised", SAMPLES / "digits.onnx")
    assert result.code == 3 and "GT3140" in result.err and "j.jsonl:1" in result.err


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong rule that does no harm at the first and third of four places."""
    simplify = sys.modules["graphtool.passes.simplify"]
    once: set[str] = set()

    def fn(x: Any) -> Any:
        if x.builder.builder.prefix in once:
            return None
        once.add(x.builder.builder.prefix)
        return o.tanh(o.abs(x))
    monkeypatch.setattr(simplify, "RULES", (rule(lambda x: o.tanh(x))(fn), *simplify.RULES))
    monkeypatch.setattr(Journal, "__init__", _fresh(Journal.__init__, once))


def _fresh(init: Any, once: set[str]) -> Any:
    def made(self: Journal, *args: Any, **how: Any) -> None:
        once.clear()
        init(self, *args, **how)
    return made


def test_the_one_application_is_named(planted: None) -> None:
    def fn(x: Any) -> Any:
        a = o.tanh(o.exp(x))  # positive: the wrong rule is right here
        b = o.tanh(o.neg(o.exp(a)))  # negative
        return o.tanh(o.exp(b)) + o.tanh(o.exp(a))
    m = module(fn, "f32[8]", names=["x"])
    found = bisect(m, passes.calls("simplify"), made_up.random_inputs(m, 0), None, 1e-4,
                   {"target": TARGET})
    g = found.guilty
    assert g is not None and (g.rule, g.rules, g.alone) == ("fn", 5, True)
    assert g.was == "tanh(neg)" and g.became == "tanh(abs(exp#2))"
    lines = "\n".join(bisect_lines(found))
    assert "application 3 of 5" in lines and "without this one application the pass is right" in (
        lines)


def test_a_journal_can_leave_one_application_out() -> None:
    m = module(lambda x: (x + 0.0) * 1.0, "f32[3]", names=["x"])
    whole = Journal()
    passes.run(m, "simplify", supply={"journal": whole})
    f = whole[0]
    some = Journal(without=(f.rule, f.matched[0]))
    result = passes.run(m, "simplify", supply={"journal": some})
    assert f.rule not in {x.rule for x in some if x.matched[0] == f.matched[0]}
    xs = made_up.random_inputs(m, 0)
    for a, b in zip(interp.run(m, xs).values(), interp.run(result, xs).values(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["relu_1", "conv2d", "@block1.conv.weight", "logits"])
def test_the_history_goes_down_to_the_c(name: str, gt: Cli, tmp_path: Path) -> None:  # noqa: F811
    """Run again from a journal and from the model: one history, with a function that exists."""
    model = SAMPLES / "digits.onnx"
    found = json.loads(gt("why", model, name, "--json").out)
    assert found["where"].startswith("samples/digits.py:") and found["events"]
    assert found["kernels"] and all(k["line"] > 0 for k in found["kernels"])
    assert gt("emit", model, "-o", tmp_path / "c", "--name", "model").code == 0
    for k in found["kernels"]:
        line = (tmp_path / "c" / k["file"]).read_text().splitlines()[k["line"] - 1]
        assert line.startswith(f"void {k['function']}(")
    assert gt("opt", model, "-o", tmp_path / "o.graph.json", "--journal",
              tmp_path / "j.jsonl").code == 0
    again = json.loads(gt("why", model, name, "--journal", tmp_path / "j.jsonl", "--optimised",
                          tmp_path / "o.graph.json", "--json").out)
    assert again == found


def test_an_unknown_value(gt: Cli) -> None:  # noqa: F811
    result = gt("why", SAMPLES / "digits.onnx", "rellu")
    assert result.code == 3 and "did you mean 'relu'" in result.err
    assert gt("why", SAMPLES / "digits.onnx", "relu", "--journal", "x").code == 2
