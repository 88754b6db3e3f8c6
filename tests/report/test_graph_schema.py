"""The schema of graph files takes what is written, and refuses what the reader refuses."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from graphtool import ops as o
from graphtool import passes
from graphtool.ir import serial
from graphtool.verify.schemas import schemas
from tests.cases import CASES
from tests.ops.test_cases import module_of
from tests.passes.pass_samples import SAMPLES, module

SCHEMA = jsonschema.Draft202012Validator(json.loads(schemas()["graph"]))
FIRST = {c.op.name: c for c in reversed(CASES)}  # a case of each op


@pytest.mark.parametrize("name", FIRST)
def test_every_op_fits(name: str) -> None:
    SCHEMA.validate(json.loads(serial.dumps(module_of(FIRST[name]), embed=True)))


@pytest.mark.parametrize("name", SAMPLES)
def test_optimised_graphs_fit(name: str) -> None:
    SCHEMA.validate(json.loads(serial.dumps(passes.run(SAMPLES[name]), embed=True)))


WRONG: dict[str, Any] = {
    "format": {"format": "graphtool/program"}, "version": {"version": 2}, "op": {"op": "relux"},
    "no such attribute": {"attrs": {"start": [0], "limit": [2], "strides": [1], "step": 1}},
    "missing attribute": {"attrs": {"start": [0], "limit": [2]}},
    "no attributes": {"attrs": None}, "kind of attribute": {"attrs": {
        "start": [0.5], "limit": [2], "strides": [1]}}, "attributes of another": {"op": "neg"}}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_fields_are_refused(name: str) -> None:
    raw = json.loads(serial.dumps(module(lambda x: o.slice(
        x, start=(0,), limit=(2,), strides=(1,)), "f32[4]")))
    SCHEMA.validate(raw)
    (node,) = raw["nodes"]
    for key, value in WRONG[name].items():
        (raw if key in raw else node)[key] = value
    if node["attrs"] is None:
        del node["attrs"]
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(raw)
