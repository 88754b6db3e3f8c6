"""`view` as a user calls it, and its page in a real browser where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphtool
from graphtool.io.release import install
from tests.cli.conftest import DIGITS, SAMPLES, Cli

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_view = pytest.mark.skipif(not (find_spec("fast_sugiyama") and find_spec("vl_convert")),
                                reason="needs the extra view")
needs_browser = pytest.mark.skipif(not BROWSER, reason="needs chromium")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a model, its optimised graph, a program, a build and a profile."""
    from graphtool.cli.faults import run
    folder = tmp_path_factory.mktemp("view")
    opt, build = folder / "opt.graph.json", folder / "build"
    for words in (("import", DIGITS, "-o", folder / "m.graph.json", "--no-check"),
                  ("opt", folder / "m.graph.json", "-o", opt),
                  ("build", opt, "-o", build), ("lower", opt, "-o", folder / "m.program.json"),
                  ("view", folder / "m.graph.json", opt, folder / "m.program.json", build, "-o",
                   folder / "page.html")):
        assert run([str(w) for w in words]) == 0
    return folder / "page.html"


def drawn(page: Path, fragment: str = "", wide: int = 1500) -> str:
    """The document after its script has run, as the browser has it."""
    assert BROWSER is not None
    found = subprocess.run(
        [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=1500",
         f"--window-size={wide},900",
         f"--user-data-dir={page.parent / 'profile'}", "--dump-dom", f"file://{page}#{fragment}"],
        capture_output=True, text=True, timeout=120)
    assert "Uncaught" not in found.stderr, found.stderr
    return found.stdout.split("<script")[0]


@pytest.mark.compiled
@needs_view
def test_every_artifact_has_a_part(shown: Path) -> None:
    text = shown.read_text()
    assert text.count('"kind":"graph"') == 2 and text.count('"kind":"difference"') == 1
    assert all(f'"kind":"{kind}"' in text for kind in ("program", "build"))
    assert text.count("<svg") + text.count("\\u003csvg") == 2 and len(text) < 300_000


@needs_view
@needs_browser
def test_the_outline_opens_modules(shown: Path) -> None:
    text = drawn(shown)
    assert re.search(r'role="tab"[^>]*aria-selected="true"[^>]*>m\.graph\.json', text)
    assert text.count('role="tab"') == 7  # two graphs, a plan, program, build, difference, stages
    assert 'aria-expanded="true"' in text and text.count('<li role="treeitem"') == 18
    assert "<dt>nodes</dt><dd>13 (12 compute, 1 shape)</dd>" in text
    assert "<dt>made from</dt><dd>" in text
    assert 'class="many"' in text  # seven tabs have a line of their own


@needs_view
@needs_browser
def test_a_search_finds_a_node(shown: Path) -> None:
    text = drawn(shown, "find=max_pool")
    assert re.search(r'aria-selected="true"[^>]*><span[^>]*>max_pool2d ', text)
    assert re.search("<dt>operands</dt><dd><span><small>x </small><button[^>]*>relu_1</button>: "
                     r"f32\[batch,32,8,8\]</span></dd>", text)
    assert '<output id="count">1 of 2</output>' in text
    assert re.findall(r'aria-current="(\w+)">(\w+) <small', text) == [
        ("true", "max_pool2d"), ("false", "max_pool2d_1")]
    assert '<output id="count">nothing found</output>' in drawn(shown, "find=max_pool+nowhere")


@needs_view
@needs_browser
def test_a_long_outline_is_made_as_far_as_it_is_seen(gt: Cli, tmp_path: Path) -> None:
    """And down to what is chosen."""
    g = graphtool.Graph()
    x = g.add_input("x", "f32[1]")
    for name in (f"layers.{i}.{kind}" for i in range(60) for kind in "abcdefghijkl"):
        x = g.add_op("exp", x, name=name)
    g.add_output(x)
    graphtool.write(g.module(), tmp_path / "g.graph.json")
    assert gt("view", tmp_path / "g.graph.json", "-o", tmp_path / "x.html").code == 0
    text = drawn(tmp_path / "x.html", "open=1&at=layers.50.b&heat=flops")
    assert 400 < text.count('role="treeitem"') < 700
    assert re.search(r'aria-selected="true"[^>]*><span title="layers.50.b">b ', text)
    assert "<dt>FLOPs</dt><dd>10  0.14 %</dd>" in text


@needs_view
@needs_browser
def test_a_link_keeps_what_is_chosen(shown: Path) -> None:
    text = drawn(shown, "plain=1&at=relu")
    assert '<h2>relu</h2>' in text
    assert re.search(r'id="plain"[^>]*aria-pressed="true"', text)
    tree = text[text.index('id="outline"'):text.index('id="stage"')]
    assert ">relu <" in tree and "reshape" not in tree  # it only changes a shape


@needs_view
@needs_browser
def test_a_narrow_window_is_full_of_the_graph(shown: Path) -> None:
    """The outline and the figures are behind a button, the details below the graph."""
    (canvas,) = re.findall(r'<canvas tabindex[^>]*width="(\d+)" height="(\d+)"',
                           drawn(shown, wide=420))
    assert int(canvas[0]) >= 420 and int(canvas[1]) > 600
    (canvas,) = re.findall(r'<canvas tabindex[^>]*width="(\d+)" height="(\d+)"',
                           (text := drawn(shown, "at=relu", wide=420)))
    assert re.search(r'<canvas class="map" aria-hidden="true"( style=""| width| height)', text)
    assert int(canvas[0]) >= 420 and 300 < int(canvas[1]) < 600


@needs_view
@needs_browser
def test_what_a_node_became_down_to_the_c(shown: Path) -> None:
    """In the optimised graph by the model's names, in the C by the lines of its kernel."""
    text = drawn(shown, "tab=stages&find=relu_2")
    panes = re.findall(r'<h2>([^<]*) <small aria-live="polite">([^<]*)</small>', text)
    assert [name for name, _ in panes] == ["m.graph.json", "opt.graph.json"]
    assert panes[1][1].startswith("relu_2.")
    ((opened, body),) = re.findall(r'<details class="kin" open="">(.*?)</summary>(.*?)</details>',
                                   text, re.DOTALL)
    assert "block3.relu" in opened and re.search(r"_kernels0\.c:\d+", body)
    assert '<code data-line="' in body and "/* block3.conv + block3.bn + block3.relu" in body
    assert "<dt>in build</dt>" in text and "nothing of its own" not in text


@needs_view
@needs_browser
def test_a_sheet_has_plots_and_tables(shown: Path) -> None:
    text = drawn(shown, "tab=3&theme=dark")
    assert 'data-theme="dark"' in text and "<svg" in text
    assert "offset in the arena, KiB" in text and "<td>scratch of " in text


@needs_view
def test_a_build_brings_the_graphs_of_its_stages(gt: Cli, tmp_path: Path) -> None:
    assert gt("build", DIGITS, "-o", tmp_path / "build", "--keep").code == 0
    assert gt("view", tmp_path / "build", "-o", tmp_path / "x.html").code == 0
    text = (tmp_path / "x.html").read_text()
    assert re.findall(r'{"name":"([^"]*)","kind":"\w+"', text) == [
        "build: import", "build: opt", "build", "difference"]


@pytest.mark.compiled
@needs_view
def test_where_numbers_part(gt: Cli, tmp_path: Path) -> None:
    """A model, its int8 form, and the C of what the passes make of it."""
    m, q, opt = (tmp_path / f"{n}.graph.json" for n in ("m", "q", "opt"))
    for words in (("import", DIGITS, "-o", m, "--no-check"), ("quantise", m, "-o", q),
                  ("opt", m, "-o", opt), ("view", m, q, opt, "-o", tmp_path / "x.html",
                                          "--numbers")):
        assert gt(*words).code == 0
    text = (tmp_path / "x.html").read_text()
    assert "The first value that parts is " in text and '"parts":{' in text
    assert re.search(r'"numbers: opt.graph.json and its C",.{0,40}"lines":\["All \d+ values match',
                     text)


@needs_view
def test_numbers_need_two_runs(gt: Cli, tmp_path: Path) -> None:
    result = gt("view", DIGITS, "-o", tmp_path / "x.html", "--numbers")
    assert result.code == 2 and "GT3148" in result.err and not list(tmp_path.iterdir())


@needs_view
def test_what_was_measured_has_plots(gt: Cli, tmp_path: Path) -> None:
    """A trace has lanes, a log has curves; both as the verbs write them."""
    assert gt("build", DIGITS, "-o", tmp_path / "build").code == 0
    trace, log = tmp_path / "trace.json", tmp_path / "log.jsonl"
    assert gt("profile", tmp_path / "build", "--runs", "2", "--threads", "1",
              "--trace", trace).code == 0
    log.write_text('{"step": 0, "epoch": 0, "loss": 2.5, "lr": 0.1}\n')
    assert gt("view", trace, log, "-o", tmp_path / "x.html").code == 0
    text = (tmp_path / "x.html").read_text()
    assert '"kind":"timeline"' in text and '"kind":"training"' in text and "thread 0" in text


@needs_view
def test_numbers_by_names_are_colours(gt: Cli, tmp_path: Path) -> None:
    """They need a graph; whatever names it has no node for have no colour."""
    numbers = tmp_path / "loss.json"
    numbers.write_text('{"relu": 0.25, "nobody": -1}')
    alone = gt("view", numbers, "-o", tmp_path / "x.html")
    assert alone.code == 3 and "GT3035" in alone.err and "no graph" in alone.err
    assert gt("view", DIGITS, numbers, "-o", tmp_path / "x.html").code == 0
    assert ('"numbers":[[":loss.json","loss.json",[[["relu"],0.25],[["nobody"],-1.0]]]]'
            in (tmp_path / "x.html").read_text())
    if BROWSER:
        text = drawn(tmp_path / "x.html", "heat=:loss.json&at=relu")
        assert "<dt>loss.json</dt><dd>0.25</dd>" in text


@needs_view
@pytest.mark.parametrize("text", ['{"traceEvents": [{"ph": "X", "name": "a", "ts": "b"}]}', "{}",
                                  '{"traceEvents": [{"ph": "X", "args": {"of roof": ""}',
                                  '{"traceEvents": 1}'])
def test_a_profile_must_be_one(gt: Cli, tmp_path: Path, text: str,
                               tmp_path_factory: pytest.TempPathFactory) -> None:
    alien = tmp_path_factory.mktemp("alien") / "alien.json"
    alien.write_text(text)
    result = gt("view", alien, "-o", tmp_path / "x.html")
    assert result.code == 3 and "GT3035" in result.err and not list(tmp_path.iterdir())


def test_it_says_what_is_missing(gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphtool.report.page.find_spec", lambda name: None)
    result = gt("view", SAMPLES / "digits.onnx", "-o", tmp_path / "x.html")
    assert result.code == 2 and "GT3034" in result.err and install("view") in result.err


@needs_view
def test_a_model_alone_makes_a_page_and_opens_it(gt: Cli, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current folder; the page of an earlier run is replaced, and no other file."""
    opened: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    (tmp_path / "digits.html").write_text("mine")
    for _ in range(2):
        assert gt("view", DIGITS).out == "digits.2.html\n"
    assert gt("view", DIGITS, "--no-open").code == gt("view", DIGITS, "-o", "x.html").code == 0
    assert opened == [(tmp_path / "digits.2.html").as_uri()] * 2
    assert (tmp_path / "digits.html").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["digits.2.html", "digits.html", "x.html"]


@needs_view
def test_without_a_browser_the_page_is_named(gt: Cli, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    done = gt("view", DIGITS)
    assert (done.code, done.out) == (0, "digits.html\n") and "no browser here" in done.err


@needs_view
@pytest.mark.process
def test_a_model_is_shown_without_what_checks_it(tmp_path: Path) -> None:
    """Neither onnxruntime nor torch is loaded to look at an ONNX file."""
    code = ("import sys; from graphtool.cli.faults import run; "
            f"assert run(['view', {DIGITS!r}, '--no-open']) == 0; "
            "assert not {'onnxruntime', 'torch'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
