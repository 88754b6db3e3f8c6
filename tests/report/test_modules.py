"""`show --modules`: the modules of a model with their classes, ops, parameters and products."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphtool import passes
from graphtool.importers import import_source
from graphtool.ir.graph import Module
from graphtool.passes.specialize import specialize
from graphtool.report.modules import ModuleRow, lines, modules
from graphtool.transforms import training
from tests.cli.conftest import DIGITS, Cli, gt  # noqa: F401

PRODUCTS = {  # channels × window × places, of a batch of one image
    "": 601_600, "block1": 9 * 16 * 64, "block1.conv": 9 * 16 * 64, "block1.bn": 0,
    "block2": 9 * 16 * 32 * 64, "block2.conv": 9 * 16 * 32 * 64, "block2.bn": 0, "pool": 0,
    "block3": 9 * 32 * 64 * 16, "block3.conv": 9 * 32 * 64 * 16, "block3.bn": 0, "head": 2560}


@pytest.fixture(scope="module")
def digits() -> Module:
    return import_source(DIGITS)


def rows(module: Module) -> dict[str, ModuleRow]:
    return {row.path: row for row in modules(module).rows}


def test_products_and_parameters_by_module(digits: Module) -> None:
    found = rows(specialize(digits, batch=1))
    assert {path: row.multiply_adds for path, row in found.items()} == PRODUCTS
    assert [found[p].parameters for p in ("", "block1", "head")] == [25_978, 176, 2570]
    assert (found["pool"].ops, found["pool"].class_) == (2, "MaxPool2d")  # both calls
    assert found["block3"].outputs == ["f32[1,64,4,4]"]


def test_open_dims_stay_open(digits: Module) -> None:
    assert rows(digits)["block1"].multiply_adds == "9216*batch"


def test_nothing_is_lost_by_passes(digits: Module) -> None:
    """Nodes that compute several modules are in the one around them."""
    found = rows(passes.run(specialize(digits, batch=1), "simplify,fold,freeze,cse,dce"))
    assert [found[p].multiply_adds for p in ("", "block2")] == [601_600, PRODUCTS["block2"]]


def test_a_training_step_says_where_its_parameters_are(digits: Module) -> None:
    step = training.training(digits, training.Recipe("mse", ("params",), "sgd"))
    assert lines(modules(step))[0].endswith("inputs of this training step")


def test_the_verb(gt: Cli, tmp_path: Path) -> None:  # noqa: F811
    assert gt("import", DIGITS, "--no-check", "-o", tmp_path / "m.graph.json").code == 0
    shown = gt("show", tmp_path / "m.graph.json", "--modules", "--depth", "1", "--dim", "batch=1")
    assert re.search(r"block2 +Block +3 +4,672 +294\.91 k +f32\[1,32,8,8\]", shown.out)
    assert "multiply-adds  601.60 k" in shown.out and "block2.conv" not in shown.out
    data = json.loads(gt("show", tmp_path / "m.graph.json", "--modules", "--json").out)
    assert data["rows"][1]["class"] == "Block"
    assert gt("show", tmp_path / "m.graph.json", "--depth", "1").code == 2
