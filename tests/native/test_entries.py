"""Several entry points in one library: shared weights, names, every verb, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import UsageError
from graphtool.io.manifest import entry_names, read_manifest
from graphtool.ir import serial
from graphtool.ir.graph import Module
from tests.cli.conftest import Cli, gt
from tests.emit.test_contract import LANGUAGES, compiled, main, no_warning
from tests.passes.pass_samples import module, values

__all__ = ["gt"]  # the fixture


def hidden(x: Any) -> Any:
    return o.relu(o.linear(x, values(x, 40, 24, name="w", param=True), values(x, 40)))


def head(x: Any) -> Any:
    return o.linear(hidden(x), values(x, 3, 40, name="head", param=True), values(x, 3))


ENTRIES: dict[str, Module] = {"embed": module(hidden, "f32[4,24]"), "decode": module(
    head, "f32[4,24]"), "open": module(head, "f32[B,24]")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graphtool.build(ENTRIES, tmp_path_factory.mktemp("b") / "b", name="lm")


@pytest.mark.parametrize("weights", ["file", "embed", "c"])
def test_each_entry_point_computes_its_graph(weights: Any, tmp_path: Path) -> None:
    folder = graphtool.build(ENTRIES, tmp_path / "b", weights=weights)
    for entry, graph in ENTRIES.items():
        xs = made_up.random_inputs(graph, 3)
        for name, want in interp.run(graph, xs).items():
            got = graphtool.load(folder, entry=entry).run(xs)[name]
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_equal_weights_are_stored_once(built: Path, tmp_path: Path) -> None:
    alone = graphtool.build(ENTRIES["decode"], tmp_path / "alone")
    pair = graphtool.build({"a": ENTRIES["decode"], "b": ENTRIES["decode"]}, tmp_path / "pair")
    assert read_manifest(pair).weights_bytes == read_manifest(alone).weights_bytes


def test_an_unchanged_build_compiles_nothing(built: Path) -> None:
    before = (built / "liblm.so").stat().st_mtime_ns
    graphtool.build(ENTRIES, built, name="lm")
    assert (built / "liblm.so").stat().st_mtime_ns == before


@pytest.mark.parametrize("command", LANGUAGES)
def test_the_header_is_c_and_cpp(command: str, built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "b")
    body = """
    const int64_t dims[] = {2};
    printf("%d %d %d %d %d ", LM_EMBED_OUTPUT0_RANK, (int)LM_OPEN_OUTPUT0_COUNT(dims),
           (int)LM_DECODE_OUTPUT0_BYTES, LM_DECODE_ARENA_BYTES > 0, lm_load(NULL, NULL));
    printf("%s", lm_status_text(LM_NO_FILE));"""
    user = compiled(command, main(body, "lm"), tmp_path / "b", "-L.", "-llm", "-Wl,-rpath,.")
    done = subprocess.run([user], cwd=user.parent, capture_output=True, text=True)
    assert done.stdout == "2 6 48 1 -3 the weights file cannot be read"


@pytest.mark.part(2)
@pytest.mark.parametrize("weights", ["file", "embed"])
def test_the_example_is_c_without_warnings(weights: Any, tmp_path: Path) -> None:
    folder = graphtool.build(ENTRIES, tmp_path / "b", weights=weights)
    flags = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    files = sorted(p.name for p in folder.glob("*.c"))
    own = [f for f in files if f.endswith(("_example.c", "_load.c", "model.c"))]
    subprocess.run(["gcc", "-c", *flags, *own], cwd=folder, check=True)
    subprocess.run(["gcc", "-O1", *files, "-lm", "-o", "example"], cwd=folder, check=True)
    done = subprocess.run(["./example"], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.count("outputs[0]:") == 3


def test_the_verbs_take_an_entry_point(built: Path, gt: Cli, tmp_path: Path) -> None:
    graph = tmp_path / "d.graph.json"
    serial.save(ENTRIES["decode"], graph)
    assert gt("check", graph, built, "--entry", "decode").code == 0
    assert "[4, 3]" in gt("run", built, "--random", "--entry", "decode").out
    assert "graphtool" in gt("bench", built, "--entry", "embed", "--seconds", 0).out
    assert "lm_open_kernels0.c" in gt("profile", built, "--entry", "open", "--runs", 1).out
    shown = gt("show", built).out
    assert [f"entry point  {e}" in shown for e in ENTRIES] == [True] * 3
    assert "entry point  open" not in gt("show", built, "--entry", "embed").out
    assert "computes" in gt("show", built, "--why", "--entry", "embed").out


def test_the_api_takes_an_entry_point(built: Path) -> None:
    assert graphtool.check(ENTRIES["embed"], built, entry="embed").ok
    assert graphtool.bench(built, seconds=0.0, entry="embed").timings
    assert graphtool.profile(built, runs=1, entry="embed").name == "lm_embed"


@pytest.mark.parametrize(("given", "code"), [((), "GT2222"), (("--entry", "enbed"), "GT2223")])
def test_which_entry_point_must_be_said(built: Path, gt: Cli, given: Any, code: str) -> None:
    found = gt("run", built, "--random", *given)
    assert found.code == 2 and code in found.err and "embed" in found.err


def test_a_build_of_one_function_has_no_entry_points(tmp_path: Path) -> None:
    one = graphtool.build(ENTRIES["embed"], tmp_path / "b")
    with pytest.raises(UsageError, match="no entry point 'embed'"):
        graphtool.load(one, entry="embed")


def test_names_come_from_the_files(gt: Cli, tmp_path: Path) -> None:
    for entry, graph in ENTRIES.items():
        serial.save(graph, tmp_path / f"{entry}.graph.json")
    found = gt("build", tmp_path / "embed.graph.json", f"step={tmp_path / 'decode.graph.json'}",
               "-o", tmp_path / "b")
    assert found.code == 0 and "serve several entry points" in found.err
    assert entry_names(read_manifest(tmp_path / "b")) == ("embed", "step")
    assert json.loads((tmp_path / "b" / "build.json").read_text())["entries"].keys() == {"step"}


@pytest.mark.parametrize(("sources", "more", "code"), [
    (("a=G", "a=G"), (), "GT2110"), (("load=G", "b=G"), (), "GT2110"),
    (("a=G", "b=G"), ("--exe",), "GT3055"), (("a=G", "b=G"), ("--march", "fat"), "GT3055")])
def test_what_cannot_be_built_is_refused(sources: Any, more: Any, code: str, gt: Cli,
                                         tmp_path: Path) -> None:
    serial.save(ENTRIES["embed"], tmp_path / "g.graph.json")
    given = [s.replace("G", str(tmp_path / "g.graph.json")) for s in sources]
    found = gt("build", *given, *more, "-o", tmp_path / "b")
    assert found.code == 2 and code in found.err and not (tmp_path / "b").exists()


@pytest.mark.parametrize("command", LANGUAGES)
def test_the_example_is_c_and_cpp(command: str, built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "b")
    for source in ("lm_example.c", "lm_load.c"):
        no_warning(command, source, tmp_path / "b")
