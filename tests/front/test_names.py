"""Each row of names is written and read back as one node; its names are in no other table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InternalError
from graphtool.exporters.onnx import FORMS, model_of
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.front import Refused
from graphtool.front import names as n
from graphtool.importers.onnx import HANDLERS, import_model
from graphtool.importers.stablehlo import import_text
from graphtool.importers.torch.driver.table import HANDLERS as ATEN
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.op import OPS
from graphtool.ir.trace import trace
from graphtool.report.diff import diff

ROOT = Path(n.__file__).parents[1]
SAMPLES = (dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.string)
REGISTERS = {"onnx_op", "aten", "stablehlo", "form", "add"}


def words(language: n.Language) -> list[n.Word]:
    return [w for row in n.ROWS.values() for w in row.get(language, ()) if w.reads and w.writes]


def module(word: n.Word) -> Module:
    """One node of the op, on a type that the word and the op take, with attributes of its own."""
    attrs: dict[str, Any] = {
        a.ours: {float: 0.75, str: "tanh", int: 3}[a.kind] for a in word.attributes}
    attrs |= {"": {}, "axes": {"axes": (1,)}, "axis": {"axis": 1}}[word.over]
    for dtype in SAMPLES:
        if word.takes(dtype):
            try:
                graph = trace(lambda *xs: OPS[word.op](*xs, **attrs),
                              [TensorType(dtype, (2, 3))] * word.count)
            except Exception:
                continue
            return Module(graph, ("y",))
    raise AssertionError(f"{word} takes none of {SAMPLES}")


@pytest.mark.parametrize("word", words("onnx"), ids=lambda w: w.name)
def test_onnx_reads_what_it_writes(word: n.Word) -> None:
    made = module(word)
    model = model_of(made)
    nodes = [f"{node.domain}.{node.op_type}".lstrip(".") for node in model.graph.node
             if node.op_type != "Constant"]
    assert nodes == [word.name]
    assert diff(made, import_model(model, Path())).equal


def test_a_word_of_another_domain_is_written_there(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(words("onnx")[0], name="com.example.Own")
    monkeypatch.setitem(n.ROWS, own.op, {"onnx": (own,)})
    model = model_of(module(own))
    assert [(node.domain, node.op_type) for node in model.graph.node] == [("com.example", "Own")]
    assert "com.example" in {row.domain for row in model.opset_import}


@pytest.mark.parametrize("word", words("hlo"), ids=lambda w: w.name)
def test_stablehlo_reads_what_it_writes(word: n.Word) -> None:
    made = module(word)
    text = stablehlo_of(made)
    assert all(part in text for part in word.name.split("."))  # compare.EQ, chlo.erf
    assert diff(made, import_text(text)).equal


def test_what_is_read_has_one_handler_and_what_is_written_one_form() -> None:
    assert all(f"aten.{name}" in ATEN for name in n.read("aten"))
    for name, (word, *_) in n.read("onnx").items():
        domain, _, operator = name.rpartition(".")
        assert [h.since for h in HANDLERS[domain, operator]].count(word.since) == 1
    assert {FORMS[op].__name__ for op in n.written("onnx")} == {"by_name"}


def registered() -> Iterator[tuple[str, str]]:
    """Each name that a family registers by hand, with the file."""
    for path in (p for part in ("importers", "exporters") for p in (ROOT / part).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in REGISTERS:
                since = next((k.value for k in call.keywords if k.arg == "since"), None)
                for x in call.args:
                    if isinstance(x, ast.Constant) and isinstance(x.value, str):
                        yield f"{path.relative_to(ROOT)}", (
                            f"{x.value}@{since.value}" if isinstance(since, ast.Constant)
                            else x.value)


def test_no_name_of_the_table_is_registered_by_hand() -> None:
    mine = {"onnx": n.read("onnx"), "torch": n.read("aten"), "stablehlo": n.read("hlo")}
    for path, name in registered():
        part, language = path.split("/")[:2]
        if part == "importers":
            assert name not in mine[language], f"{path} registers {name}"
        else:
            language = "hlo" if language == "stablehlo" else language
            assert name not in n.written(language), f"{path} has a form of {name}"


@pytest.mark.parametrize("text", ["Exp of numerals", "Exp(alpha)", "written Exp", "Exp (x"])
def test_a_word_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(InternalError, match="GT7001"):
        n._word(text, "exp")


def test_a_word_has_our_defaults_and_its_own() -> None:
    selu, = n.read("onnx")["Selu"]
    assert selu.ours({}) == {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}
    leaky, = n.read("aten")["leaky_relu"]
    assert leaky.ours({"negative_slope": 1}) == {"slope": 1.0}
    assert leaky.theirs({"slope": 0.5}) == {"negative_slope": 0.5}


def test_the_type_decides_between_meanings() -> None:
    add = n.read("hlo")["add"]
    found = {t: n.meaning(add, t) for t in (dtypes.float32, dtypes.bool_)}
    assert [w.op for w in found.values()] == ["add", "or"]
    with pytest.raises(Refused, match="not supported on bool"):
        n.meaning(n.read("hlo")["sqrt"], dtypes.bool_)

    def onnx(t: DType) -> str | None:
        word = n.word("and", "onnx", t)
        return word and word.name
    assert [onnx(t) for t in (dtypes.bool_, dtypes.uint8, dtypes.float32)] == [
        "And", "BitwiseAnd", None]
