"""The mix of forms: which layers a goal leaves as they are, and what the report says of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from graphtool import Quantisation, dtypes
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.passes.quantise.calibrate import from_arrays
from graphtool.report.mix import Goals, mixed
from graphtool.report.quantised import Effects, expected
from graphtool.symbolic import Symbol, dim_of
from graphtool.target import named
from graphtool.transforms.quantising import Prepared, prepared

RNG = np.random.default_rng(9)
X = {"x": RNG.normal(size=(8, 64)).astype(np.float32)}


def body(x: Any) -> Any:
    """Three products; the second multiplies a hundred times what it reads, so its error counts."""
    def layer(v: Any, name: str, size: float) -> Any:
        w = np.random.default_rng(len(name)).normal(size=(64, 64)).astype(np.float32) * size
        return o.linear(v, v.builder.constant(w, f"@{name}", True))
    return o.add(layer(o.tanh(layer(x, "first", 0.1)), "loud", 1.0),
                 layer(x, "silent", 0.001))


@cache
def ready(*forms: Any) -> Prepared:
    module = Module(trace(body, [TensorType(dtypes.float32, (8, 64))], ["x"]), ("y",))
    return prepared(module, Quantisation(forms or ("static",)), from_arrays(X, module))


def mix(goals: Goals, *forms: Any) -> Any:
    return mixed(ready(*forms), goals, named("x86-64-v3"), [X])


def test_the_least_harmful_layers_come_first() -> None:
    _, whole = mix(Goals())
    errors = {r.name: r.error for r in whole.layers}
    assert errors["silent"] < 0.1 * errors["loud"]
    _, some = mix(Goals(size=3 * 64 * 64 * 4 - 10_000))
    assert [r.name for r in some.layers if r.form == "static"] == ["silent"]
    assert {r.why for r in some.layers if r.form == "float32"} == {"not needed"}


def test_the_error_is_that_of_the_result() -> None:
    module, report = mix(Goals(error=0.01))
    assert report.error == Effects(ready().module, [X]).of(module) <= 0.01
    assert report.met


def test_forms_are_mixed_by_size() -> None:
    """Below the size of int8 alone, some layers get 4 bits, and no more than are needed."""
    _, eight = mix(Goals(size=1), "int8")
    _, mixed_ = mix(Goals(size=eight.bytes - 1000), "int8", "int4")
    assert {r.form for r in mixed_.layers} == {"int8", "int4"}
    assert mixed_.met


def test_products_with_packed_weights_have_a_time() -> None:
    _, report = mix(Goals(), "int8")
    assert all(r.us is not None and r.us > 0 for r in report.layers)
    assert report.us > 0 and report.us_before > 0


def test_a_goal_that_cannot_be_met_says_so() -> None:
    _, report = mix(Goals(size=100))
    assert not report.met
    assert all(r.form == "static" for r in report.layers)


def test_times_belong_to_layers() -> None:
    times = expected(ready().module, [*ready().forms], named("x86-64-v3"))
    assert set(times.layers) == {"first", "loud", "silent"}
    assert sum(times.layers.values()) == pytest.approx(times.total)


def test_examples_of_a_fixed_number_stay_whole() -> None:
    x = {"x": RNG.normal(size=(32, 64)).astype(np.float32)}
    module = Module(trace(body, [TensorType(dtypes.float32, (32, 64))], ["x"]), ("y",))
    layers = prepared(module, Quantisation(("int8",)))
    report = mixed(layers, Goals(time=1e6), named("x86-64-v3"), [x])[1]
    assert report.met and report.examples == 32


@pytest.mark.parametrize(("rows", "form"), [(8, "float32"), (512, "static")])
def test_products_of_two_activations_must_gain_time(rows: int, form: str) -> None:
    """They do not become smaller. Small ones take as long to round as to multiply."""
    x = {n: RNG.normal(size=(12, rows, 128)).astype(np.float32) for n in "ab"}
    kind = TensorType(dtypes.float32, (12, rows, 128))
    module = Module(trace(lambda a, b: o.matmul(a, b, transpose_b=True), [kind, kind], ["a", "b"]),
                    ("y",))
    report = mixed(prepared(module, Quantisation(), [x]), Goals(), named("sapphirerapids"), [x])[1]
    (layer,) = report.layers
    assert (layer.name, layer.kind, layer.form) == ("matmul", "activations", form)
    assert (layer.bytes, layer.bytes_before) == (0, 0)
    assert layer.us and layer.us_before and layer.us <= layer.us_before


def test_times_are_those_of_the_sizes_asked_for() -> None:
    """Of one row, not of the largest number of rows."""
    rows = Symbol("T", 1, 4096)
    module = Module(trace(body, [TensorType(dtypes.float32, (dim_of(rows), 64))], ["x"]), ("y",),
                    {"T": rows})
    layers = prepared(module, Quantisation(("dynamic",)))
    few, many, most = (mixed(layers, Goals(), named("x86-64-v3"), [X], each=False, sizes=sizes)[1]
                       for sizes in ({"T": 1}, {"T": 4096}, None))
    assert few.us_before < 0.1 * many.us_before and few.us < 0.1 * many.us
    assert (many.us, many.us_before) == (most.us, most.us_before)
    assert all(r.us_before is not None and r.us_before < 0.1 * (s.us_before or 0.0)
               for r, s in zip(few.layers, many.layers, strict=True))
