"""Windows over open sizes: the least size that fits is found, and every size runs, also in C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.least_sizes import least_sizes
from graphtool.ir import listing
from graphtool.loops import serial, verify
from graphtool.lower import lower
from graphtool.symbolic import Symbol, dim_of
from graphtool.target import named
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import compiled, optimised

CASES: dict[str, tuple[Any, str, tuple[int, ...] | None, int]] = {
    "line": (node("y = Conv(x, w)"), "1 2 N", (4, 2, 3), 3),
    "image": (node("y = Conv(x, w)", dilations=[2, 2]), "N 2 N N", (4, 2, 2, 2), 3),
    "volume": (node("y = Conv(x, w)"), "1 2 N 6 6", (4, 2, 3, 3, 3), 3),
    "groups of volumes": (node("y = Conv(x, w)", group=2, dilations=[2, 2, 2]), "N 2 N N 4",
                          (4, 1, 2, 2, 1), 3),
    "strides": (node("y = Conv(x, w)", strides=[3, 1]), "1 2 N 6", (4, 2, 7, 3), 7),
    "same": (node("y = Conv(x, w)", strides=[2, 2, 2], auto_pad="SAME_UPPER"), "1 2 N 6 6",
             (4, 2, 3, 3, 3), 1),
    "pool": (node("y = AveragePool(x)", kernel_shape=[5, 2]), "1 2 N 6", None, 5),
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


def test_a_frame_of_a_transform_fits(tmp_path: Path) -> None:
    weights = {"s": np.array(4), "w": random(8)}
    proto = model(["y = STFT(x, s, w)"], ["x f32 N L 1"], ["y f32 N ? 5 2"], weights, opset=17)
    module = checked(proto)
    assert (module.symbols["L"].lo, module.requires) == (8, ())
    for n in (8, 9, 19, 32):
        x = {"x": random(2, n, 1)}
        np.testing.assert_allclose(interp.run(module, x)["y"], oracle(proto, x)[0], atol=1e-5)


def test_no_boxes_at_all() -> None:
    proto = model(["y = NonMaxSuppression(b, s, m)"], ["b f32 1 K 4", "s f32 1 2 K"],
                  ["y i64 ? 3"], {"m": np.array(5)})
    module = checked(proto)
    for n in (0, 1, 6):
        x = {"b": random(1, n, 4), "s": random(1, 2, n)}
        np.testing.assert_array_equal(interp.run(module, x)["y"], oracle(proto, x)[0])


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
    ("y = DFT(x)", ["x f32 M N"], "the last axis has an open size")])
def test_open_sizes_that_are_refused(call: str, inputs: list[str], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        checked(model([call], inputs, ["y f32" + " ?" * (len(inputs[0].split()) - 2)]))


KERNELS: dict[str, tuple[Any, list[str], list[str]]] = {
    "one open axis": (node("y = Conv(x, w)"), ["x f32 1 2 8 8", "w f32 4 2 K 3"], ["K <= 9"]),
    "image": (node("y = Conv(x, w)"), ["x f32 1 2 N 8", "w f32 4 2 K L"],
              ["max(-K + N + 1, 0) == -K + N + 1", "L <= 9"]),
    "steps": (node("y = Conv(x, w, b)", strides=[2, 1], dilations=[2, 1], pads=[1, 1, 0, 2]),
              ["x f32 M 2 N 8", "w f32 4 2 K 3", "b f32 4"],
              ["max(-2*K + N + 4, 0) == -2*K + N + 4"]),
    "same": (node("y = Conv(x, w)", group=2, auto_pad="SAME_UPPER", strides=[2, 2]),
             ["x f32 1 4 N 8", "w f32 4 2 K L"], []),
    "depthwise": (node("y = Conv(x, w)", group=4), ["x f32 1 4 N", "w f32 4 1 K"],
                  ["max(-K + N + 1, 0) == -K + N + 1"]),
    "transposed": (node("y = ConvTranspose(x, w)", strides=[2, 3], dilations=[1, 2],
                        pads=[1, 0, 0, 1], group=2), ["x f32 1 2 N 8", "w f32 2 3 L K"], []),
    "stated": (node("y = Conv(x, w)", kernel_shape=[3, 3]), ["x f32 1 2 N 8", "w f32 4 2 K 3"],
               ["K == 3"]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_of_open_size(name: str, tmp_path: Path) -> None:
    call, inputs, rules = KERNELS[name]
    proto = model([call], inputs, ["y f32" + " ?" * (len(inputs[0].split()) - 2)])
    module = checked(proto)
    assert [*listing.required(module), *(f"{n} <= {s.hi}" for n, s in module.symbols.items()
                                         if s.hi is not None)] == rules
    run = compiled(optimised(module), tmp_path / "m").run

    def feed(**sizes: int) -> dict[str, Any]:
        return {(words := spec.split())[0]: random(*(sizes.get(d) or int(d) for d in words[2:]),
                                                   seed=i) for i, spec in enumerate(inputs)}
    for k, least in ((3, 3), (3, 9), *(() if name == "stated" else ((1, 1), (2, 7), (4, 9)))):
        x = feed(K=k, L=min(k + 1, 4), N=max(least, 2 * k - 2 if name == "steps" else k), M=2)
        want, = oracle(proto, x)
        for got in (interp.run(module, x)["y"], run(x)["y"]):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, atol=1e-4)
    for runs in (lambda x: interp.run(module, x), run) if rules else ():
        with pytest.raises(InputError, match=r"does not hold|[KL] (=|is) 10"):
            runs(feed(K=10, L=10, N=7, M=2))


def test_a_kernel_of_another_size_than_stated() -> None:
    with pytest.raises(InputError, match=r"kernel_shape is \(3, 2\)"):
        checked(model([node("y = Conv(x, w)", kernel_shape=[3, 2])],
                      ["x f32 1 2 N 8", "w f32 4 2 K 3"], ["y f32 ? ? ? ?"]))
