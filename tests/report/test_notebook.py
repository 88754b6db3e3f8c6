"""What a notebook shows of modules, builds and reports, and the head of a listing as `repr`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import graphtool
from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.report import notebook
from tests.cli.conftest import DIGITS
from tests.report.graphs import module

T = TensorType(dtypes.float32, (4, 4))


def sections(html: str) -> list[dict[str, Any]]:
    """What the page in a frame has."""
    page = unescape(re.findall(r'srcdoc="([^"]*)"', html)[0])
    return list(json.loads(page.split('id="data">')[1].split("</script>")[0])["sections"])


def test_repr_is_the_head_of_the_listing() -> None:
    m = graphtool.import_model(DIGITS)
    lines = repr(m).splitlines()
    assert lines[0] == "<Module of 13 nodes and 17 arrays>"
    assert lines[1:3] == ["dim batch: 0..", "input image: f32[batch,1,8,8]"]
    assert lines[-1] == "return logits" and "param" not in repr(m)


def test_a_long_listing_is_cut() -> None:
    def many(x: Any) -> Any:
        for _ in range(100):
            x = o.neg(x)
        return x
    lines = notebook.head(module(trace(many, [T]))).splitlines()
    assert len(lines) == notebook.LINES + 2
    assert lines[-1] == "… 82 more lines: graphtool.show"


def test_without_the_extra_there_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    m = module(trace(lambda x: o.lt(o.exp(x), 1.0), [T]))
    assert notebook.of_module(m).startswith("<pre>&lt;Module of 2 nodes")
    found = graphtool.diff(m, module(trace(lambda x: o.exp(x), [T])))
    assert "<iframe" not in notebook.of_diff(found, (m, m)) and "- removed" in (
        notebook.of_diff(found, (m, m)))


def test_equal_graphs_need_no_drawing() -> None:
    m = module(trace(lambda x: o.exp(x), [T]))
    assert notebook.of_diff(graphtool.diff(m, m), (m, m)) == "<pre>equal: 1 nodes</pre>"


def test_the_shown_types_have_the_method() -> None:
    """Also a build that was loaded with nothing else, if this is a notebook."""
    for name in ("Module", "Program", "Model"):
        assert callable(getattr(graphtool, name)._repr_html_)
    code = ("import sys, types; sys.modules['IPython'] = types.ModuleType('IPython'); "
            "import graphtool; print(hasattr(graphtool.Model, '_repr_html_'))")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"


def test_a_difference_prints_as_the_verb_does() -> None:
    m = module(trace(lambda x: o.exp(x), [T]))
    found = graphtool.diff(m, module(trace(lambda x: o.sin(x), [T])))
    assert repr(found).startswith("~ sin: exp → sin") and "1 changed" in repr(found)
    many = graphtool.diff(m, graphtool.import_model(DIGITS))
    assert repr(many).splitlines()[-1].endswith("more lines")


def test_drawings(tmp_path: Path) -> None:
    """A module, a difference, a build and a program are the page of `view`, in a frame."""
    pytest.importorskip("fast_sugiyama")
    pytest.importorskip("vl_convert")
    a = graphtool.import_model(DIGITS)
    b = graphtool.optimize(a)
    html = a._repr_html_()  # type: ignore[attr-defined]
    assert [s["kind"] for s in sections(html)] == ["graph"] and 'sandbox="allow-scripts"' in html
    html = graphtool.diff(a, b)._repr_html_()  # type: ignore[attr-defined]
    assert [s["kind"] for s in sections(html)] == ["graph", "graph", "difference"]
    assert "<summary>" in html and "+ added" in html
    program = graphtool.lower_model(b)
    assert sections(program._repr_html_())[0]["code"]  # type: ignore[attr-defined]
    build = graphtool.load(graphtool.build(b, tmp_path / "build"))
    (one,) = sections(build._repr_html_())  # type: ignore[attr-defined]
    assert one["kind"] == "build" and one["kernels"] and one["code"]


def test_a_large_graph_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "NODES", 0)
    assert notebook.of_module(module(trace(lambda x: o.exp(x), [T]))).startswith("<pre>")
