"""What further roundings may change."""

from __future__ import annotations

import numpy as np

from benchmarks.fuzz.compare import amplified
from graphtool import interp
from graphtool.ir import serial

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
