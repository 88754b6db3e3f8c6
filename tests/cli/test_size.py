"""The sizes of a model: what is counted, when the most is live, and what a limit says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphtool.native.footprint import Calls, Stack, deepest, read_calls
from tests.cli.conftest import DIGITS, Cli

ONE = frozenset


def test_the_stack_is_the_deepest_chain_of_calls() -> None:
    calls = Calls({"run": 16, "a": 8, "b": 100, "c": 4}, {
        "run": ONE({"a", "c"}), "a": ONE({"memset"}), "c": ONE({"b"})})
    assert deepest(calls, "run") == Stack(120, ("run", "c", "b"), ("memset",))


def test_a_call_through_a_pointer_is_one_of_the_functions_that_nobody_names() -> None:
    calls = Calls({"run": 16, "a": 8, "b": 100, "c": 4}, {
        "run": ONE({"a", "__indirect_call"}), "a": ONE({"c"})})
    assert deepest(calls, "run") == Stack(116, ("run", "b"))


@pytest.mark.parametrize(("calls", "why"), [
    (Calls({"run": 16}, {"run": ONE({"run"})}), "run calls itself"),
    (Calls({"run": 16}, {}, ONE({"run"})), "the frame of run has no fixed size"),
    (Calls({}, {}), "no function run")])
def test_where_there_is_no_bound_the_reason_is_said(calls: Calls, why: str) -> None:
    assert deepest(calls, "run") == Stack(None, why=why)


def test_calls_are_read_as_gcc_writes_them() -> None:
    text = ('node: { title: "m.c:f" label: "f\\nm.c:1:2\\n96 bytes (static)" }\n'
            'node: { title: "g" label: "g\\nm.c:9:2\\n8 bytes (dynamic,bounded)" }\n'
            'node: { title: "h" label: "h\\nm.c:9:2\\n8 bytes (dynamic)" }\n'
            'node: { title: "memset" label: "memset\\n<built-in>" shape : ellipse }\n'
            'edge: { sourcename: "m.c:f" targetname: "g" label: "m.c:3:3" }\n')
    assert read_calls([text]) == Calls({"m.c:f": 96, "g": 8, "h": 8}, {"m.c:f": ONE({"g"})},
                                       ONE({"h"}))


@pytest.mark.compiled
def test_sizes_of_a_model(gt: Cli, tmp_path: Path) -> None:
    args = ("size", DIGITS, "--march", "generic", "--dim", "batch=1")
    found = json.loads(gt(*args, "--json").out)
    assert found["flash"] == found["code"] + found["constants"] + found["weights"]
    assert found["ram"] == found["arena"] + 256 + 40 + found["static"]
    assert found["stack"] is None or found["stack_path"][0] == "digits_run"
    assert found["live"] == max(r["live"] for r in found["kernels"]) == sum(
        h["bytes"] for h in found["peak"]) <= found["arena"]
    text = gt(*args).out
    assert f"RAM         {found['ram']}: arena {found['arena']}, inputs 256" in text
    assert f"{found['live']}  the most" in text
    gt("build", DIGITS, "-o", tmp_path / "b", "--march", "generic", "--keep", "--no-openmp")
    kept = json.loads(gt("size", tmp_path / "b", "--dim", "batch=1", "--json").out)
    assert {**kept, "compiler": ""} == {**found, "compiler": ""}


@pytest.mark.compiled
def test_a_limit_names_what_is_over_it(gt: Cli) -> None:
    args = ("size", DIGITS, "--march", "generic", "--dim", "batch=1")
    over = gt(*args, "--max-ram", "4K", "--max-flash", "4k", "--max-stack", "9M")
    assert over.code == 1
    assert "--max-ram 4.00 KiB: " in over.err and "scratch of" in over.err
    assert "--max-flash 4.00 KiB: " in over.err and "graphtool quantise" in over.err
    assert gt(*args, "--max-ram", "1M", "--max-flash", "1M").code == 0


@pytest.mark.compiled
def test_what_has_no_size_is_refused(gt: Cli, tmp_path: Path) -> None:
    assert "GT3059" in gt("size", DIGITS, "--max-ram", "much").err
    gt("build", DIGITS, "-o", tmp_path / "b", "--march", "generic")
    assert "GT3058" in gt("size", tmp_path / "b").err
