"""Statistics, tables and the plot of the benchmarks, and one tiny contest from end to end."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from benchmarks import (
    browser,
    compiler,
    jobs,
    load,
    memory,
    ops,
    page,
    page_models,
    plot,
    scaling,
    shipped,
    single,
    stats,
    tables,
    web_tfjs,
    work,
    zoo,
)
from benchmarks.__main__ import parser
from benchmarks.models import EXTRA, ZOO, named, operators
from benchmarks.models.shipped import SHIPPED
from benchmarks.work import Journal, Row
from graphtool.analysis.costs import flops, total
from tests.lab import conformance, parity
from tests.lab.__main__ import COMMANDS as LAB


def test_summary_of_rounds() -> None:
    s = stats.summary([[0.001, 0.003, 0.002], [0.002, 0.004]])
    assert (s.median, s.least, s.calls) == (pytest.approx(2), pytest.approx(1), 5)
    assert s.spread == pytest.approx(0.5)  # medians 2 and 3 around 2


@pytest.mark.parametrize(("times", "best", "ratio"), [
    ({"graphtool": 2.0, "a": 3.0, "b": 4.0}, ("a", 3.0), 1.5),
    ({"graphtool": 4.0, "a": 3.0}, ("a", 3.0), 0.75),
    ({"graphtool": 4.0}, None, None),
    ({"a": 3.0}, ("a", 3.0), None),
])
def test_ratio_to_the_best_peer(times: dict[str, float], best: object, ratio: object) -> None:
    assert stats.best_peer(times) == best
    assert stats.ratio(times) == ratio


def test_means_and_growth() -> None:
    assert stats.geometric_mean([1, 4]) == pytest.approx(2)
    assert math.isnan(stats.geometric_mean([]))
    assert stats.slope([10, 100, 1000], [3, 300, 30000]) == pytest.approx(2)


@pytest.mark.parametrize(("x", "text"), [
    (None, "–"), (0.0, "0"), (1.0, "1.00"), (0.01234, "0.0123"), (1234.0, "1234"),
    (99.96, "100.0"), (-2.5, "-2.50"), (1e-9, "1.00e-09"), (float("nan"), "nan"),
])
def test_number(x: float | None, text: str) -> None:
    assert tables.number(x) == text


def test_table_lines_up() -> None:
    assert tables.markdown(["name", "ms"], [["a|b", "1.5"], ["c", "–"]]).splitlines() == [
        "| name |  ms |", "|------|----:|", "| a\\|b | 1.5 |", "| c    |   – |"]


def test_a_table_is_read_back() -> None:
    table = tables.markdown(["name", "ms"], [["a", "1.5"], ["c", "–"]])
    assert tables.read(f"# t\n\ntext | more\n\n{table}\nrest") == [
        {"name": "a", "ms": "1.5"}, {"name": "c", "ms": "–"}]


def test_plot_has_a_bar_a_contestant() -> None:
    times = {"a": {"x": 2.0, "y": 3.0}, "b&c": {"x": 1.0, "y": 9.0}}
    root = ElementTree.fromstring(plot.bars("t < 1", times))
    bars = [r for r in root if r.tag.endswith("rect") and r.get("x") == str(plot.LEFT)
            and r.get("height") == str(plot.BAR - 1)]
    one = (plot.WIDTH - plot.LEFT - plot.RIGHT) / 4
    assert [float(b.get("width", 0)) for b in bars] == pytest.approx(
        [one, 1.5 * one, one, 4 * one], abs=0.1)  # the last is cut off at the limit


@pytest.mark.parametrize("name", ["zoo", "extra", "peers"])
def test_a_stored_plot_is_of_its_table(name: str, request: pytest.FixtureRequest) -> None:
    folder = Path(__file__).parents[1] / "benchmarks/results"
    picture = zoo.figure((folder / f"{name}.md").read_text())
    if request.config.getoption("--update-golden"):
        (folder / f"{name}.svg").write_text(picture)
    assert (folder / f"{name}.svg").read_text() == picture


@pytest.mark.parametrize(("got", "want", "error"), [
    ([[1.0, 2.5]], [[1.0, 2.0]], 0.25), ([[0.0]], [[0.0]], 0.0), ([[]], [[]], 0.0),
    ([[np.nan], [0.0]], [[1.0], [1.0]], math.nan),
])
def test_error(got: list[object], want: list[object], error: float) -> None:
    found = work.error_of([np.array(g) for g in got], [np.array(w) for w in want])
    assert found == pytest.approx(error, nan_ok=True)


def test_error_wants_all_outputs() -> None:
    with pytest.raises(ValueError, match="1 outputs, 2 expected"):
        work.error_of([np.zeros(1)], [np.zeros(1), np.zeros(1)])


def test_journal_keeps_the_last_row_and_survives_a_torn_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl", lambda row: row["k"])
    for row in ({"k": 1, "v": 1}, {"k": 2, "v": 2}, {"k": 1, "v": 3}):
        journal.add(row)
    with journal.path.open("a") as file:
        file.write('{"k": 2, "v')
    assert journal.rows() == {1: {"k": 1, "v": 3}, 2: {"k": 2, "v": 2}}


def test_figures_of_different_runs_are_not_mixed() -> None:
    row: Row = {"contestants": {"graphtool": {}, "onnxruntime": {"error": "x"}}}
    assert zoo.covered(row, ["onnxruntime"])
    assert not zoo.covered(row, ["graphtool", "openvino"])
    assert not zoo.covered(None, ["graphtool"])


def test_a_row_without_the_evaluator_is_not_a_whole_one() -> None:
    assert conformance.covered({"compiled_error": 0.0}, evaluator=False)
    assert not conformance.covered({"compiled_error": 0.0}, evaluator=True)
    assert conformance.covered({"error": "x"}, evaluator=True)


def test_failures_of_a_contestant_are_told() -> None:
    rows = {"graphtool": {"median": 1.0, "spread": 0.0}, "jax": {"error": "no"}}
    row: Row = {"model": "m", "threads": 1, "rounds": 1, "seconds": 1, **work.stamp(),
                "contestants": rows}
    text = zoo.report([row], models=["m", "lost"])
    assert "* m at 1: jax: no" in text and "* lost: not timed" in text
    assert zoo.failed([row], ["m"]) == 0 and zoo.failed([row], ["m", "lost"]) == 1
    assert "jax FAILED (no)" in zoo.line(row)


def test_distance_and_verdict_of_curves() -> None:
    assert parity.distance(np.array([1.0, 2.2]), np.array([1.0, 2.0])) == pytest.approx(0.1)
    assert parity.verdict(1e-5, 1.0, 1.0) == "yes"
    assert "0.50 times as far" in parity.verdict(1e-3, 2e-3, 1e-3)
    assert parity.verdict(1e-3, 1e-6, 1e-3) == "no"


@pytest.mark.torch
def test_every_command_parses() -> None:
    options = parser().parse_args(["zoo", "-m", "lenet,lstm", "-t", "1", "-c", "graphtool"])
    assert (options.models, options.threads) == (["lenet", "lstm"], [1])
    for command in ("prepare", "kernels", "scaling", "compiler"):
        assert len(parser().parse_args([command]).models) > 20
    for command in LAB:
        assert parser("tests.lab", LAB).parse_args([command]).command == command


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prepared model of one product, in a work folder of its own."""
    import onnx
    from onnx import helper, numpy_helper
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((2, 8), (8, 4)))
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
             for n, s in (("in_0", (2, 8)), ("out_0", (2, 4)))]
    graph = helper.make_graph([helper.make_node("MatMul", ["in_0", "w"], ["out_0"])], "g",
                              ports[:1], ports[1:], [numpy_helper.from_array(w, "w")])
    target = work.prepared("tiny")
    target.folder.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)],
                                ir_version=10), target.onnx)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    np.savez(target.folder / "io.npz", in_0=x, out_0=x @ w, out64_0=exact)
    return "tiny"


@pytest.mark.compiled
def test_a_contest_with_one_peer(tiny: str) -> None:
    pytest.importorskip("onnxruntime")
    from benchmarks.contest import contest
    row = contest(tiny, ["graphtool", "onnxruntime"], threads=1, rounds=2, seconds=0.01)
    for name, c in row["contestants"].items():
        assert "error" not in c, (name, c)
        assert c["error64"] < 1e-6 and c["peak_mb"] > 1 and c["calls"] >= 4
    text = zoo.report([row])
    assert "| onnxruntime |" in text and "Geometric mean of the ratio over 1 models" in text
    assert "tiny" in zoo.figure(text)


def test_a_contest_beside_a_busy_process(tiny: str) -> None:
    options = parser().parse_args(["load", "--busy", "0,1", "--rounds", "1", "--seconds", "0.01"])
    row = load.measured(tiny, ["graphtool"], 1, options)
    found = row["contestants"]["graphtool"]
    assert "error" not in found, found
    assert all(0 < found[n][0] <= found[n][1] for n in ("0", "1"))
    assert load.ratio(row, 1) is None and "1 thread, 1 competitor" in load.report([row])


def test_a_lasting_build_is_done_once(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import building, league, peers
    calls: list[str] = []
    monkeypatch.setitem(peers.PEERS, "slow", league.Peer(
        "slow", (), lambda case: league.Loaded(lambda: None), lambda case: None, lasting=True))
    monkeypatch.setattr(jobs, "run", lambda *a, **k: calls.append(a[3]) or {"error": "too slow"})
    assert [building.built("peers", tiny, "slow", 1)["error"] for _ in range(2)] == 2 * ["too slow"]
    assert calls == [tiny]


@pytest.mark.parametrize(("call", "samples"), [(2.0, 1), (0.75, 2), (0.125, 8)])
def test_a_call_longer_than_a_round_is_one_sample(
        call: float, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import worker
    clock = [0.0]
    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    found = worker.rounds(lambda: clock.__setitem__(0, clock[0] + call), 1.0, 100)
    assert found == samples * [call]


def test_a_job_that_takes_too_long_is_ended() -> None:
    said = jobs.run("benchmarks.building", "LIMIT", timeout=0.01)["error"]
    assert said.startswith("not done within")


def test_memory_of_one_model(tiny: str) -> None:
    row = memory.measured(tiny)
    assert "error" not in row and row["live"] <= row["arena"] <= memory.MOST * row["live"]
    assert 1 < row["peak_1"] < 200 and f"| {tiny} " in memory.report([row])


def test_conformance_of_one_model(tiny: str) -> None:
    row = conformance.one(tiny, "onnx")
    assert "error" not in row and row["compiled_error"] < 1e-6 and row["evaluator_error"] < 1e-6
    assert row["c_bytes"] > 1000 and conformance.cells(row)[2] == "ok"


def test_conformance_says_why_not(tiny: str) -> None:
    work.prepared(tiny).onnx.write_bytes(b"\x00 no model")
    row = conformance.one(tiny, "onnx")
    assert conformance.cells(row)[2] == "FAILED" and "GT10" in conformance.line(row)


def test_a_kernel_is_cut_out_once(tiny: str) -> None:
    (one,) = single.collect([tiny, tiny], ["MatMul"])
    assert (one.operands, one.flops, one.uses) == ("f32[2,8] @f32[8,4]", 128, {tiny: 2})
    cut = work.prepared(one.name)
    assert work.error_of(cut.arrays("out"), cut.arrays("out64")) < 1e-6
    assert single.collect([tiny], ["Conv"]) == []


@pytest.mark.parametrize("family", scaling.FAMILIES)
def test_a_family_grows(family: str) -> None:
    small, large = (scaling.model(family, n) for n in scaling.FAMILIES[family].sizes[:2])
    assert total(flops, small.graph) < total(flops, large.graph)


def test_growth_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    options = parser().parse_args(["scaling", "-f", "mlp-depth", "-t", "1"])
    options.command_line = "c"
    rows = [{"family": "mlp-depth", "size": n,
             **jobs.run("benchmarks.scaling", "measure", "mlp-depth", n, [1], 0.01)}
            for n in (1, 2)]
    assert "Exponent: " in scaling.report(rows, options)


def test_compiler_times_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    row = compiler.graph(60)
    assert 60 <= row["nodes"] < 75 and set(row["passes"]) >= {"fold", "fuse"}
    assert "Synthetic graphs" in compiler.report(
        {**work.stamp(), "command": "c", "graphs": [{"size": 60, **row}]})


@pytest.mark.part(2)
@pytest.mark.parametrize("task", ["linear_b1", "vae_b64"])  # the second has its own loss
def test_a_training_step_beside_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                      task: str) -> None:
    pytest.importorskip("torch")
    from benchmarks import trainers, training
    from benchmarks.contest import contest
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    assert trainers.ensure(task)
    row = contest(task, ["graphtool", "eager"], 1, 1, 0.01, "trainers")
    for name, c in row["contestants"].items():
        assert "error" not in c, (name, c)
        assert c["loss_error"] < 1e-5 and c["peak_mb"] > 1
    assert f"| {task} " in training.report([row], "command")


def test_each_task_has_a_network_and_data() -> None:
    pytest.importorskip("torch")
    from benchmarks.models.tasks import RATES, RECIPES, TASKS
    from benchmarks.models.trained import DATA, NETWORKS
    assert set(TASKS) == set(NETWORKS) == set(DATA) and set(RATES) == set(RECIPES)


def test_models_by_name_and_by_set() -> None:
    assert named("lenet,lstm,lenet") == ["lenet", "lstm"]
    assert named("all") == named("zoo,extra") == [*ZOO, *EXTRA]


@pytest.mark.skipif(not (browser.found() and find_spec("fast_sugiyama")),
                    reason="needs chromium and the extra view")
def test_the_page_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small page is drawn at once, and moves; a picture of it is a PNG."""
    monkeypatch.setattr(page, "LOADS", 1)
    monkeypatch.setattr(page, "SECONDS", 0.2)
    file, model = tmp_path / "page.html", page_models.stack(1)(tmp_path)
    row = {"name": "encoder"} | page.written(model, file) | page.measured(file)
    assert 0 < row["paint"] < 30 and 0 < row["drawn"] < 30 and row["bytes"] > 50_000
    assert all(1 < row[n][0] <= row[n][1] for n in ("pan", "zoom", "pan_open", "zoom_open"))
    beside = {"name": "encoder", "viewer": "view", "bytes": 9, "rest": 1.0, "pan": None,
              "zoom": (16.7, 33.3)}
    text = page.report([row], [beside], 0.0, "page")
    assert "| encoder |" in text and "16.7 / 33.3" in text
    options = SimpleNamespace(picture=(str(file), "theme=dark", str(tmp_path / "x.png")))
    assert page.main(options) == 0 and (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"


def test_the_table_of_operators_begins_with_the_worst() -> None:
    rows: list[Row] = [
        {"name": name, "rounds": 3, "seconds": 0.1, **work.stamp(), "errors": errors,
         "difference": 1e-6, "times": {n: {"median": t, "spread": 0.1} for n, t in times.items()}}
        for name, times, errors in (
            ("Add", {"graphtool": 1.0, "torch": 2.0}, {}),
            ("Mod", {"graphtool": 4.0, "torch": 1.0, "onnxruntime": 2.0}, {}),
            ("Odd", {"torch": 1.0}, {"graphtool": "no such operator"}))]
    text = ops.report(rows)
    assert [row["operator"] for row in tables.read(text)] == ["Odd", "Mod", "Add"]
    assert "least 0.25; below 1: 1 of 2." in text
    assert "Odd: graphtool: no such operator." in text


def test_the_table_of_shipped_networks() -> None:
    def row(name: str, ours: float, peer: float, **more: Any) -> Row:
        times = {n: {"median": t, "spread": 0.1} for n, t in (("graphtool", ours),
                                                              ("onnxruntime", peer))}
        return {"name": name, "package": "p==1", "file": "m.onnx", "times": times, "errors": {},
                "difference": 1e-6, "date": "d", "cpu": "c", "rounds": 1, "seconds": 1, **more}
    text = shipped.report([row("a", 1.0, 2.0), row("b", 1.0, 8.0, errors={"openvino": "no"})])
    assert "Geometric mean 4.00, least 2.00." in text and "b: openvino: no." in text
    assert len({(s.package, s.file) for s in SHIPPED.values()}) == len(SHIPPED)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is missing")
def test_operators_have_names_of_their_own_and_onnx_models() -> None:
    rows = operators.operators()
    assert len({o.name for o in rows}) == len(rows) > 110
    assert all(ops.onnx_model(o) for o in rows if o.op)


@pytest.mark.parametrize(("shape", "filters", "attributes", "known"), [
    ((1, 4, 8, 8), (4, 1, 3, 3), {"group": 4}, True), ((1, 4, 8, 8), (6, 4, 3, 3), {}, True),
    ((1, 4, 8, 8), (4, 2, 3, 3), {"group": 2}, False), ((1, 4, 8), (6, 4, 3), {}, False),
    ((1, 4, 8, 8), (6, 4, 3, 3), {"dilations": [2, 2]}, False)])
def test_a_network_is_rebuilt_or_left_out(shape: tuple[int, ...], filters: tuple[int, ...],
                                          attributes: dict[str, Any], known: bool,
                                          tmp_path: Path) -> None:
    rank = len(shape) - 2
    node = helper.make_node("Conv", ["x", "w"], ["y"], **{
        "group": 1, "pads": [1] * 2 * rank, "strides": [1] * rank, **attributes})
    floats = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", floats, shape)],
        [helper.make_tensor_value_info("y", floats, None)],
        [numpy_helper.from_array(np.ones(filters, np.float32), "w")])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    made = web_tfjs.rebuilt(tmp_path / "m.onnx", {"x": np.ones(shape, np.float32)})
    assert (made is not None) == known
