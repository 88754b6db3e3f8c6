"""What a trace says of nodes that no kernel computes, and of kernels that no node needs."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool import passes
from graphtool.emit.c import emit
from graphtool.escaping import spreadsheet
from graphtool.loops.program import runs
from graphtool.lower import lower
from graphtool.passes.journal import PassEvents
from graphtool.report.lineage import Step, steps_of
from graphtool.report.trace import Trace, trace, trace_csv
from graphtool.target import named
from tests.passes.pass_samples import module, values

TARGET = named("x86-64", 1)


def traced(f: Any, extra: list[Step] | None = None) -> Trace:
    before = module(f, "f32[4,3]", names=["x"])
    recorder = PassEvents(before)
    after = passes.run(before, after=recorder.after, supply={"target": TARGET}, texts=True)
    program = lower(after, TARGET)
    return trace(before, recorder.events, after, steps_of(runs(program.steps)) + (extra or []),
                 emit(program), program.name)


def became(t: Trace) -> dict[str, str]:
    return {n.op: n.became for n in t.nodes}


def test_what_is_computed_at_compile_time() -> None:
    def f(x: Any) -> Any:
        return x + o.exp(values(x, 4, 3))
    assert became(traced(f)) == {"exp": "constant", "add": "kernels"}


def test_what_nothing_reads_and_what_rules_remove() -> None:
    def f(x: Any) -> Any:
        o.exp(x)
        return o.transpose(o.transpose(x * 2.0, perm=(1, 0)), perm=(1, 0))
    t = traced(f)
    assert became(t)["exp"] == "unread" and became(t)["mul"] == "kernels"
    assert not t.lost and not t.orphans


def test_a_kernel_without_a_node_is_an_orphan() -> None:
    t = traced(lambda x: x * 2.0, [Step("k9", "nothing of the model", "", "")])
    assert [p.kernel for p in t.orphans] == ["k9"]
    assert trace_csv(t).splitlines()[-1].startswith(",,,,,,k9,")


def test_a_name_is_no_formula() -> None:
    assert spreadsheet("=cmd|' /c calc'!A1").startswith("'=") and spreadsheet("x=1") == "x=1"
