"""The sizes of a model: what is counted, when the most is live, and what a limit says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graphtool
from graphtool.errors import UsageError
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
    gt("build", DIGITS, "-o", tmp_path / "b", "--march", "generic", "--keep",
       "--threads-by", "none")
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


@pytest.mark.compiled
def test_a_build_keeps_its_limits_or_names_what_is_in_the_way(gt: Cli, tmp_path: Path) -> None:
    fixed = ("build", DIGITS, "--dynamic", "batch=1", "--march", "generic",
             "--threads-by", "none", "-o")
    roomy = gt(*fixed, tmp_path / "roomy", "--max-ram", "900K", "--max-flash", "9M")
    assert roomy.code == 0 and "--objective" not in roomy.err
    # Winograd's weights and workspace are larger
    tight = gt(*fixed, tmp_path / "tight", "--max-ram", "24K")
    assert tight.code == 0 and "--objective size: with usual it would be over" in tight.err
    over = gt(*fixed, tmp_path / "over", "--max-ram", "4K", "--max-flash", "4K")
    assert over.code == 2 and not (tmp_path / "over").exists()
    for part in ("GT2109", "--max-ram 4.00 KiB", "--max-flash 4.00 KiB", "most of the arena is "
                 "live in k", "block", "graphtool quantise"):
        assert part in over.err
    opened = gt("build", DIGITS, "--march", "generic", "--max-ram", "64K", "-o", tmp_path / "open")
    assert "GT2109" in opened.err and "--dynamic batch=1" in opened.err
    with pytest.raises(UsageError, match="GT2109"):
        graphtool.build(graphtool.import_model(DIGITS, dynamic={"batch": (1, 1)}),
                        tmp_path / "api", target="generic", max_ram=4096)
