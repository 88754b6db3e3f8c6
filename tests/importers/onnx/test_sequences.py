"""Loops over sequences whose trip count is computed, against onnxruntime; compiled too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from tests.importers.onnx.build import checked, oracle, random
from tests.lower.compiling import compiled, faults, optimised

ROWS = "sh = Shape <start = 0, end = 1> (x)  n = Squeeze(sh)"
ROW = "r = Gather <axis = 0> (x, t)  q = Mul(r, r)"
STACK = "y = ConcatFromSequence <axis = 0, new_axis = 1> (s1)"
EMPTY = "s0 = SequenceEmpty <dtype = 1> ()"
KEEP = "co = Identity(c)"


def loop(body: str, before: str = f"{ROWS} {EMPTY}", after: str = STACK, inputs: str = "",
         outputs: str = "float[N,M] y", kind: str = "seq(float[3])") -> ModelProto:
    """x's rows in a loop that carries the sequence s."""
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        m (float[A,3] x{inputs}) => ({outputs})
        <int64 zero = {{0}}, int64 neg = {{-1}}, int64 cap = {{4}}, bool yes = {{1}}> {{
        {before}
        s1 = Loop (n, yes, s0) <body = b (int64 t, bool c, {kind} s) => (bool co, {kind} so) {{
            {body} }}>
        {after} }}""")


APPEND = f"{KEEP} {ROW} so = SequenceInsert(s, q)"
LIMIT = np.float32(1.5)
CASES: dict[str, tuple[ModelProto, dict[str, Any]]] = {
    "stacked": (loop(APPEND), {}),
    "type not said": (loop(APPEND, kind="seq(float[])"), {}),
    "joined": (loop(APPEND, after="y = ConcatFromSequence <axis = -1> (s1)",
                    outputs="float[N] y"), {}),
    "joined behind": (loop(APPEND, after="y = ConcatFromSequence <axis = -1, new_axis = 1> (s1)"),
                      {}),
    "asked": (loop(APPEND, after="y = SequenceAt(s1, neg) l = SequenceLength(s1)",
                   outputs="float[3] y, int64 l"), {}),
    "bounded by the graph": (loop(APPEND, before=f"n = Min(k, cap) {EMPTY}", inputs=", int64 k"),
                             {"k": np.int64(3)}),
    "the last is read": (loop(
        f"{KEEP} {ROW} p = SequenceAt(s, neg) w = Add(p, q) so = SequenceInsert(s, w)",
        before=f"{ROWS} s0 = SequenceConstruct(b)", inputs=", float[3] b"), {"b": random(3)}),
    "in front": (loop(f"{KEEP} {ROW} so = SequenceInsert(s, q, zero)"), {}),
    "a window": (loop(f"{KEEP} {ROW} s2 = SequenceInsert(s, q) so = SequenceErase(s2, zero)",
                      before=f"{ROWS} s0 = SequenceConstruct(b, b)", inputs=", float[3] b"),
                 {"b": random(3)}),
    "until": (loop(f"{ROW} so = SequenceInsert(s, q) z = ReduceSum <keepdims = 0> (q)"
                   " co = Less(z, most)", inputs=", float most"), {"most": LIMIT}),
    "some": (loop(f"""{KEEP} {ROW} z = ReduceSum <keepdims = 0> (q) some = Less(z, most)
        so = If (some) <then_branch = t1 () => (seq(float[3]) st) {{ st = SequenceInsert(s, q) }},
             else_branch = e1 () => (seq(float[3]) se) {{ se = Identity(s) }}>""",
                  inputs=", float most", after="l = SequenceLength(s1)", outputs="int64 l"),
             {"most": LIMIT}),
    "after the loop": (loop(APPEND, after=f"s2 = SequenceInsert(s1, b, zero) "
                                          f"s3 = SequenceErase(s2) {STACK.replace('s1', 's3')}",
                            inputs=", float[3] b"), {"b": random(3)}),
}


@pytest.mark.parametrize("name", CASES)
def test_carried(name: str, tmp_path: Path) -> None:
    proto, more = CASES[name]
    module = checked(proto)
    run = compiled(optimised(module), tmp_path / "b").run
    for rows in (1, 2, 7):
        given = {"x": random(rows, 3), **{k: np.asarray(v) for k, v in more.items()}}
        if "k" in given:
            given["k"] = np.asarray(min(rows, 3))
        want = dict(zip(module.output_names, oracle(proto, given), strict=True))
        assert faults(interp.run(module, given), want) == []
        assert faults(run(given), want) == []


def test_parts_of_an_open_axis(tmp_path: Path) -> None:
    """The sequence stands outside, and the step says which element is read."""
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        m (float[A,3] x, float[1,3] a0) => (float[1,3] y) <bool yes = {1}> {
        parts = SplitToSequence <axis = 0> (x)  n = SequenceLength(parts)
        y = Loop (n, yes, a0) <body = b (int64 t, bool c, float[1,3] a) =>
            (bool co, float[1,3] ao) { co = Identity(c) r = SequenceAt(parts, t)
            h = Mul(a, a) ao = Sub(r, h) }> }""")
    module = checked(proto)
    run = compiled(optimised(module), tmp_path / "b").run
    for rows in (1, 5):
        given = {"x": random(rows, 3), "a0": random(1, 3) * np.float32(0.1)}
        want = {"y": oracle(proto, given)[0]}
        assert faults(interp.run(module, given), want) == []
        assert faults(run(given), want) == []


REFUSED = {
    "must not change the types": loop(f"{KEEP} {ROW} s2 = SequenceInsert(s, q) "
                               "so = SequenceInsert(s2, r2)".replace("r2)", "x)"),
                               kind="seq(float[])"),
    "a sequence of computed length as an output": loop(
        APPEND, after="", outputs="seq(float[3]) s1"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_by_name(reason: str) -> None:
    with pytest.raises(UnsupportedError) as found:
        checked(REFUSED[reason])
    assert "sequence" in str(found.value) and found.value.code == "GT1020"


def test_a_trip_count_without_a_bound() -> None:
    """The evaluator does them all; C wants to know how many there can be."""
    proto = loop(APPEND, before=EMPTY, inputs=", int64 n")
    module = checked(proto)
    given = {"x": random(9, 3), "n": np.asarray(6)}
    want = dict(zip(module.output_names, oracle(proto, given), strict=True))
    assert faults(interp.run(module, given), want) == []
    with pytest.raises(InputError, match=r"GT2005"):
        compiled(optimised(module), Path("."))


def test_a_loop_that_only_a_condition_ends(tmp_path: Path) -> None:
    """They have a bound of the user's; data that lead beyond it are an error."""
    proto = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        m (float[3] x, float most) => (float[N,3] y) <bool yes = {{1}}, int64 neg = {{-1}}> {{
        s0 = SequenceConstruct(x)
        s1 = Loop (, yes, s0) <body = b (int64 t, bool c, seq(float[3]) s) =>
            (bool co, seq(float[3]) so) {{ p = SequenceAt(s, neg) q = Add(p, p)
            so = SequenceInsert(s, q) z = ReduceSum <keepdims = 0> (q) co = Less(z, most) }}>
        {STACK} }}""")
    with pytest.raises(UnsupportedError, match=r"--dynamic s1_size=0\.\.MOST"):
        checked(proto)
    module = checked(proto, dynamic={"s1_size": (0, 40)})
    run = compiled(optimised(module), tmp_path / "b").run
    given = {"x": np.float32([1, 2, 3]), "most": np.asarray(1e3, np.float32)}
    want = {"y": oracle(proto, given)[0]}
    assert faults(interp.run(module, given), want) == faults(run(given), want) == []
    given["most"] = np.asarray(1e20, np.float32)
    with pytest.raises(InputError, match="GT0501"):
        interp.run(module, given)
    with pytest.raises(InputError, match="GT0501"):
        run(given)
