"""quantise on the command line: the report, the goals, and wrong options."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import SAMPLES, Cli

TRAIN = SAMPLES / "digits_train.npz"


def test_static_with_a_report(gt: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "q.graph.json"
    done = gt("quantise", folder / "digits.graph.json", "--calibrate", TRAIN, "--samples", 32,
              "-o", out, "--json")
    report = json.loads(done.out)
    assert done.code == 0
    assert {r["form"] for r in report["layers"]} == {"static"}
    assert all(0 < r["error"] < 0.02 and r["us"] > 0 for r in report["layers"])
    assert report["bytes"] < 0.3 * report["bytes_before"]
    assert gt("show", out).out.count("param @block") == 6


def test_the_table_names_every_layer(gt: Cli, folder: Path, tmp_path: Path) -> None:
    done = gt("quantise", folder / "digits.graph.json", "--calibrate", TRAIN, "--samples", 32,
              "--skip", "block1.*", "-o", tmp_path / "q.graph.json")
    assert re.search(r"block1.conv.weight +conv +float32 .*not asked for", done.out)
    assert "3 of 4 layers" in done.out


def test_without_examples_the_errors_are_on_random_inputs(
        gt: Cli, folder: Path, tmp_path: Path) -> None:
    done = gt("quantise", folder / "digits.graph.json", "--form", "int4,float16", "-o",
              tmp_path / "q.graph.json")
    assert re.search(r"head.weight +product +int4", done.out)
    assert re.search(r"block2.conv.weight +conv +float16", done.out)  # in blocks it is slower
    assert "random inputs" in done.err


@pytest.mark.parametrize(("goal", "code"), [
    (("--error", "0.009"), 0), (("--size", "50KiB"), 0), (("--time", "1s"), 0),
    (("--size", "1KiB"), 1), (("--time", "0.01us"), 1), (("--size", "30KiB", "--error", "0"), 1)])
def test_goals(gt: Cli, folder: Path, tmp_path: Path, goal: tuple[str, ...], code: int) -> None:
    done = gt("quantise", folder / "digits.graph.json", "--calibrate", TRAIN, "--samples", 32,
              *goal, "-o", tmp_path / "q.graph.json", "--json")
    report = json.loads(done.out)
    assert done.code == code
    assert report["met"] == (code == 0)
    if code == 0 and goal[0] == "--error":
        assert 0 < report["error"] <= 0.009
        assert 0 < sum(r["form"] == "static" for r in report["layers"]) < 4
    if code == 0 and goal[0] == "--size":
        assert report["bytes"] <= 50 * 1024
    if goal == ("--time", "1s"):
        assert all(r["form"] == "float32" for r in report["layers"])


@pytest.mark.compiled
def test_measured(gt: Cli, folder: Path, tmp_path: Path) -> None:
    done = gt("quantise", folder / "digits.graph.json", "--calibrate", TRAIN, "--samples", 32,
              "--measure", "--no-each", "-o", tmp_path / "q.graph.json", "--json")
    report = json.loads(done.out)
    assert report["by"] == "measured"
    assert all(r["us"] > 0 and r["error"] is None for r in report["layers"])
    assert 0 < report["us"] < 1e4


@pytest.mark.parametrize(("options", "code", "words"), [
    (("--form", "int3"), 2, "unknown 'int3'"),
    (("--form", ""), 2, "unknown ''"),
    (("--range", "max"), 2, "one of minmax, percentile, entropy, mse"),
    (("--rounding", "up"), 2, "one of nearest, gptq, awq"),
    (("--size", "4 parsecs"), 2, "is not a size"),
    (("--time", "5"), 2, "is not a time"),
    (("--form", "static"), 2, "--calibrate"),
    (("--form", "int4", "--block", "7"), 2, "whole bytes"),
    (("--only", "heads*"), 3, "no layer is called"),
    (("--calibrate", "nothing.npz"), 3, "nothing.npz"),
    (("--target", "z80"), 2, "z80")])
def test_wrong_options(gt: Cli, folder: Path, options: tuple[str, ...], code: int,
                       words: str) -> None:
    done = gt("quantise", folder / "digits.graph.json", *options, "-o", folder / "never.json")
    assert done.code == code
    assert words in done.err


@pytest.mark.parametrize(("name", "words"), [
    ("misnamed.npz", "no array 'image'"), ("shape.npz", "[3, 1, 4, 8]"), ("empty", "no .npz file"),
    ("bad.npz", "cut short"), ("hollow.npz", "no array 'image'")])
def test_wrong_examples(gt: Cli, folder: Path, name: str, words: str) -> None:
    done = gt("quantise", folder / "digits.graph.json", "--calibrate", folder / name)
    assert done.code == 3
    assert words in done.err


def test_too_few_examples(gt: Cli, folder: Path, tmp_path: Path) -> None:
    """None at all, and fewer than the model takes at a time."""
    np.savez(tmp_path / "none.npz", image=np.zeros((0, 1, 8, 8), np.float32))
    done = gt("quantise", folder / "digits.graph.json", "--calibrate", tmp_path / "none.npz")
    assert (done.code, "no example" in done.err) == (3, True)
    four = tmp_path / "four.graph.json"
    gt("opt", folder / "digits.graph.json", "--passes", "specialize{batch=4}", "-o", four)
    done = gt("quantise", four, "--calibrate", folder / "in.npz")
    assert (done.code, "takes 4 at a time" in done.err) == (3, True)


def test_examples_of_one_number_are_named(gt: Cli, folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "three.npz", image=np.full((2, 1, 8, 8), 3, np.float32))
    line = ["quantise", folder / "digits.graph.json", "--no-each", "-o", tmp_path / "q.graph.json"]
    done = gt(*line, "--calibrate", tmp_path / "three.npz")
    assert done.code == 0, done.err
    assert "all examples of image are 3: ranges from them fit no other input" in done.err
    assert "all examples" not in gt(*line, "--calibrate", TRAIN, "--samples", 32).err
