"""The API called wrongly: an error with a code and help; and what a graph says of itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool.io.release import release
from graphtool.report.page import MARK
from tests.cli.conftest import DIGITS
from tests.cli.test_view import needs_view

X = np.zeros((1, 1, 8, 8), np.float32)


@pytest.fixture(scope="module")
def module() -> graphtool.Module:
    return graphtool.import_model(DIGITS)


MISTAKES: dict[str, tuple[Callable[[Any], object], str]] = {
    "a path for a graph": (lambda m: graphtool.optimize("x"), "module is of type str, not a graph"),
    "a number for a graph": (lambda m: graphtool.diff(m, 3), "b is of type int, not a graph"),
    "an array for a mapping": (lambda m: graphtool.evaluate(m, X),
                               "inputs is of type ndarray, not arrays by name"),
    "a graph for a program": (lambda m: graphtool.emit_c(m), "not a program"),
    "a graph for a path": (lambda m: graphtool.read(m), "not a path"),
    "no recipe": (lambda m: graphtool.grad(m), "missing a required argument: 'recipe'"),
    "an unknown word": (lambda m: graphtool.show(m, weights=1), "unexpected keyword"),
    "a number for an artifact": (lambda m: graphtool.check(m, 1), "not a graph or a path")}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_an_error_with_help(name: str, module: graphtool.Module) -> None:
    call, said = MISTAKES[name]
    with pytest.raises(graphtool.UsageError, match=said) as error:
        call(module)
    assert error.value.code == "GT3164" and error.value.hint


def test_what_may_be_left_out_may_be_none(module: graphtool.Module) -> None:
    assert graphtool.check(module, module, None).ok


@pytest.mark.compiled
def test_a_model_takes_inputs_by_name(module: graphtool.Module, tmp_path: Path) -> None:
    model = graphtool.load(graphtool.build(module, tmp_path / "b"))
    with pytest.raises(graphtool.UsageError, match="by name") as error:
        model(X)
    assert "model(image=…)" in error.value.hint and "logits" in model(image=X)


def test_the_version() -> None:
    assert graphtool.__version__ == release().version


def test_a_graph_says_what_is_in_it(module: graphtool.Module) -> None:
    assert {n: str(t) for n, t in module.inputs.items()} == {"image": "f32[batch,1,8,8]"}
    assert {n: str(t) for n, t in module.outputs.items()} == {"logits": "f32[batch,10]"}
    assert module.node("relu").op.name == "relu" and module.node("relu") in module.nodes
    assert str(module.node("@head.weight").outputs[0].type) == "f32[10,256]"
    with pytest.raises(graphtool.UsageError, match="no node of this graph") as error:
        module.node("rely")
    assert error.value.code == "GT3165" and "relu" in error.value.hint


@needs_view
@pytest.mark.compiled
@pytest.mark.parametrize("what", ["graph", "program", "model", "build"])
def test_a_page_of_each_kind(what: str, module: graphtool.Module, tmp_path: Path,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    if what == "build":
        page = graphtool.view(graphtool.build(module, tmp_path / "digits"))
    elif what == "program":
        page = graphtool.view(graphtool.lower_model(graphtool.optimize(module)))
    else:
        page = graphtool.view(module if what == "graph" else DIGITS)
    assert MARK in page.read_bytes() and opened == [page.resolve().as_uri()]
    assert page == Path("digits.html" if what in ("model", "build") else "graph.html")
    graphtool.view(module, tmp_path / "own.html", browser=False)
    assert (tmp_path / "own.html").exists() and len(opened) == 1
