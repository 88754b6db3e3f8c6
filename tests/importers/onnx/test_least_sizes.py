"""Windows over open sizes: the least size that fits is found, and every size runs, also in C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.least_sizes import least_sizes
from graphtool.loops import serial, verify
from graphtool.lower import lower
from graphtool.symbolic import Symbol, dim_of
from graphtool.target import named
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import compiled, optimised

CASES: dict[str, tuple[Any, str, tuple[int, ...] | None, int]] = {
    "line": (node("y = Conv(x, w)"), "1 2 N", (4, 2, 3), 2),
    "image": (node("y = Conv(x, w)", dilations=[2, 2]), "N 2 N N", (4, 2, 2, 2), 2),
    "volume": (node("y = Conv(x, w)"), "1 2 N 6 6", (4, 2, 3, 3, 3), 2),
    "groups of volumes": (node("y = Conv(x, w)", group=2, dilations=[2, 2, 2]), "N 2 N N 4",
                          (4, 1, 2, 2, 1), 2),
    "strides": (node("y = Conv(x, w)", strides=[3, 1]), "1 2 N 6", (4, 2, 7, 3), 4),
    "same": (node("y = Conv(x, w)", strides=[2, 2, 2], auto_pad="SAME_UPPER"), "1 2 N 6 6",
             (4, 2, 3, 3, 3), 1),
    "pool": (node("y = AveragePool(x)", kernel_shape=[5, 2]), "1 2 N 6", None, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_the_least_size_that_a_window_fits(name: str, tmp_path: Path) -> None:
    call, shape, filters, least = CASES[name]
    proto = model([call], [f"x f32 {shape}"], ["y f32" + " ?" * len(shape.split())],
                  {"w": random(*filters)} if filters else None)
    module = checked(proto)
    assert module.symbols["N"].lo == least
    ready = optimised(module)
    program = lower(ready, named("native"), name="p")
    verify.verify(serial.loads(serial.dumps(program)), "p")
    run = compiled(ready, tmp_path / "m").run
    for n in (least + 3, least + 6):
        x = {"x": random(*(n if d == "N" else int(d) for d in shape.split()))}
        want = oracle(proto, x)[0]
        np.testing.assert_allclose(interp.run(module, x)["y"], want, atol=1e-5)
        np.testing.assert_allclose(run(x)["y"], want, atol=1e-5)
    x = {"x": random(*(least - 1 if d == "N" else int(d) for d in shape.split()))}
    for refuses in (lambda: interp.run(module, x), lambda: run(x)):
        with pytest.raises(InputError, match=f"N.* {least - 1}"):
            refuses()


def test_what_tells_a_least_size() -> None:
    n, m = Symbol("N", 1), Symbol("M", 1, 8)
    a, b = dim_of(n), dim_of(m)
    assert least_sizes([a - 2, a - 5, 3, a + 1], {"N": n}) == {"N": 5}
    assert least_sizes([(a - 4) // 2 + 1, b - 20, a * b - 7], {"N": n, "M": m}) == {"N": 2}
    assert least_sizes([dim_of(Symbol("K", 1)) - 2], {"N": n}) == {}
    even = Symbol("N", 1, None, None, 2, 0)
    assert least_sizes([dim_of(even) - 5], {"N": even}) == {"N": 5}


@pytest.mark.parametrize(("call", "inputs", "reason"), [
    ("y = DFT(x)", ["x f32 2 4 N"], "the last axis has an open size"),
    ("y = DFT(x)", ["x f32 M N"], "the last axis has an open size"),
    ("y = Conv(x, w)", ["x f32 1 2 8 8", "w f32 4 2 K 3"], "the weights must have a fixed size"),
    ("y = Conv(x, w)", ["x f32 1 2 N 8", "w f32 4 2 K L"], "the weights must have a fixed size"),
    ("y = ConvTranspose(x, w)", ["x f32 1 2 8 8", "w f32 2 3 3 K"],
     "the weights must have a fixed size")])
def test_open_sizes_that_are_refused(call: str, inputs: list[str], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        checked(model([call], inputs, ["y f32" + " ?" * (len(inputs[0].split()) - 2)]))
