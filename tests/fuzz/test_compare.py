"""What further roundings may change."""

from __future__ import annotations

import numpy as np

from graphtool import interp
from graphtool.ir import serial
from tests.lab.fuzz.compare import amplified, difference

PICK = """
input x: f32[2,12]
y: f32[2,12] = tanh(x)
i: i64[1,12] = arg_reduce(y, kind="max", axis=0)
return i
"""


def test_each_choice_between_neighbours_may_turn() -> None:
    module = serial.loads(PICK)
    near = np.linspace(0.1, 2, 12, dtype=np.float32)
    x = np.stack([near, np.nextafter(near, np.float32(3))])
    want = interp.run(module, {"x": x})
    assert (amplified(module, {"x": x}, want)["i"] > 0).all()


def test_a_clear_choice_stays() -> None:
    module = serial.loads(PICK)
    x = np.stack([np.zeros(12, np.float32), np.ones(12, np.float32)])
    want = interp.run(module, {"x": x})
    assert not amplified(module, {"x": x}, want)["i"].any()


def test_factors_may_vanish_before_they_meet_infinity() -> None:
    module = serial.loads("""
input x: f32[3,2,8]
y: f32[1,2,1] = reduce_prod(x, axes=(0, 2))
return y
""")
    x = np.full((3, 2, 8), 0.5, np.float32)
    x[0, :, 0] = np.inf
    x[1:, 0] = 1e-9
    want = interp.run(module, {"x": x})
    assert np.isinf(want["y"]).all()
    assert np.isnan(amplified(module, {"x": x}, want)["y"]).ravel().tolist() == [True, False]


def test_a_composite_rounds_inside() -> None:
    """gelu of −5.13 is a rounding of 1 + tanh: a little below 0, or 0."""
    module = serial.loads("""
input x: f32[2]
y: f32[2] = gelu(x, approximate="tanh")
z: f32[2] = log(y)
return z
""")
    x = np.array([-5.1315465, 1.5], np.float32)
    want = interp.run(module, {"x": x})
    assert np.isnan(amplified(module, {"x": x}, want)["z"]).tolist() == [True, False]


def test_a_size_may_turn_where_a_rounding_decides_it() -> None:
    module = serial.loads("""
size n: 0..2
input x: f32[2]
input limit: f32[2]
t: f32[2] = tanh(x)
y: bool[2] = ge(t, limit)
z: i64[n,1] = nonzero(y, size=n)
return z
""")
    x = np.array([0.5, 1.5], np.float32)
    for limit, excused in ((np.tanh(x), True), (np.tanh(x) / 2, False)):
        inputs = {"x": x, "limit": limit}
        want = interp.run(module, inputs)["z"]
        loose = amplified(module, inputs, {"z": want})["z"]
        assert (difference(want[:1], want, allowed=loose) == "") == excused
        assert difference(want[:, 0], want, allowed=loose).startswith("shape")
