"""Rows that are streamed through the first layers: the same bits as whole images, for every place
where the loop may end, in the evaluator, in C here, and on an emulated board; and fewer bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.compile.build import emit
from graphtool.compile.lowering import functions
from graphtool.compile.options import Build, Objective
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.dtypes import float32, int8, uint8
from graphtool.errors import UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels import conv_bytes
from graphtool.kernels.choice.rules import Rules
from graphtool.passes.stream import looped
from graphtool.passes.stream.choice import nested
from graphtool.passes.stream.plan import plans
from graphtool.report.size import within
from tests.native.small_targets import available, harness, here, on_board

SAME, BELOW, NONE = ((1, 1), (1, 1)), ((0, 1), (0, 1)), ((0, 0), (0, 0))
RAM = Rules(objective="ram")


class Net:
    """Layers with seeded weights, whose results are bytes with a zero point of 7."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def conv(self, x: Any, outs: int, window: Any = (3, 3), strides: Any = (1, 1),
             padding: Any = SAME, zero: int = 7, dilation: Any = (1, 1)) -> Any:
        """A convolution, with one filter for each channel if `outs` is 0."""
        attrs = {"zero": zero, "window": window, "strides": strides, "padding": padding,
                 "dilation": dilation}
        w = self.rng.integers(-128, 128, (outs or x.shape[3], x.shape[3] if outs else 1, *window)
                              ).astype(np.int8)
        y = o.conv_bytes(x, x.builder.constant(conv_bytes.packed(w)), channels=outs, **attrs) \
            if outs else o.depthwise_bytes(x, x.builder.constant(w[:, 0]), **attrs)
        return self.bytes(o.cast(y, dtype=float32) * 2.0 ** -7)

    def bytes(self, x: Any) -> Any:
        return o.cast(o.round(x) + 7.0, dtype=uint8)


def mean(x: Any) -> Any:
    return o.reduce_sum((o.cast(x, dtype=float32) - 7.0) * 0.37, axes=(1, 2))


def separable(net: Net, x: Any) -> Any:
    """Odd sizes, a window of even height, strides and dilation of rows."""
    x = net.conv(x, 8, (4, 2), (2, 1), ((1, 2), (0, 1)), zero=-3)
    for strides, dilation, padding in (((1, 1), (1, 1), SAME), ((2, 2), (1, 1), BELOW),
                                       ((1, 1), (2, 1), ((2, 2), (1, 1)))):
        x = net.conv(net.conv(x, 0, (3, 3), strides, padding, dilation=dilation), 8, (1, 1),
                     padding=NONE)
    return mean(x)


def residual(net: Net, x: Any) -> Any:
    """Past two convolutions the bytes themselves, and past two more a convolution of stride 2."""
    x = net.conv(x, 4, zero=-3)
    y = net.conv(net.conv(x, 4), 4)
    x = net.bytes((o.cast(x, dtype=float32) + o.cast(y, dtype=float32)) * 0.5)
    y = net.conv(net.conv(x, 8, strides=(2, 2), padding=BELOW), 8)
    past = net.conv(x, 8, (1, 1), (2, 2), NONE)
    return mean(net.bytes(o.cast(past, dtype=float32) * 0.5 - o.cast(y, dtype=float32) * 0.5))


def waiting(net: Net, x: Any) -> Any:
    """A branch of fewer bytes than its operand, which waits for the other one; the mean is of
    their difference."""
    x = net.conv(net.conv(x, 4, zero=-3), 16)
    y = net.conv(net.conv(net.conv(x, 4, strides=(2, 2), padding=BELOW), 4), 4)
    past = net.conv(x, 4, (1, 1), (2, 2), NONE)
    return o.reduce_sum(o.cast(past, dtype=float32) * 0.5 - o.cast(y, dtype=float32), axes=(1, 2))


def unpadded(net: Net, x: Any) -> Any:
    """Windows that see nothing outside, with rows that no window reaches; the end is no sum."""
    x = net.conv(x, 4, (3, 3), (2, 2), NONE, zero=-3)
    return net.conv(net.conv(x, 4, (2, 2), (2, 1), NONE), 2, (1, 1), padding=NONE)


def pools(net: Net, x: Any) -> Any:
    """A pool of windows that are apart, and one whose windows overlap, with dilated rows."""
    x = net.conv(x, 4, zero=-3)
    for window, strides, apart in ((2, 2, 1), (3, 1, 2)):
        x = o.reduce_window(net.conv(x, 4), kind="max", window=(1, window, 2, 1), strides=(
            1, strides, 2, 1), padding=((0, 0),) * 4, window_dilation=(1, apart, 1, 1))
    return mean(net.conv(x, 4))


def padded(net: Net, x: Any) -> Any:
    """Pools that see what is outside, in their windows or by a pad before them."""
    x = net.conv(x, 4, zero=-3)
    for kind, rows in (("max", (1, 1)), ("min", (0, 2))):
        x = o.reduce_window(net.conv(x, 4), kind=kind, window=(1, 3, 3, 1), strides=(1, 2, 1, 1),
                            padding=((0, 0), rows, (1, 1), (0, 0)))
    x = o.pad(net.conv(x, 4), lo=(0, 1, 1, 0), hi=(0, 1, 0, 0), value=0)
    x = o.reduce_window(x, kind="max", window=(1, 3, 3, 1), strides=(1, 1, 2, 1))
    return mean(net.conv(x, 4))


Maker = Callable[[Net, Any], Any]
CASES: list[tuple[Maker, tuple[int, ...], int]] = [
    (separable, (1, 35, 7, 1), 7), (residual, (1, 16, 12, 3), 3), (unpadded, (1, 20, 9, 2), 2),
    (pools, (1, 19, 20, 1), 6), (waiting, (1, 16, 12, 2), 3),
    (padded, (1, 21, 18, 1), 8)]


def made(maker: Maker, shape: tuple[int, ...]) -> Module:
    net = Net()
    return Module(trace(lambda x: maker(net, x), [TensorType(int8, shape)], ["x"]), ("y",))


def example(shape: tuple[int, ...]) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8)}


@pytest.mark.parametrize(("maker", "shape", "ends"), CASES)
def test_every_end_of_the_loop_keeps_the_bits(maker: Maker, shape: Any, ends: int) -> None:
    module, x = made(maker, shape), example(shape)
    want = interp.run(module, x)["y"]
    found = list(plans(module.graph))
    assert len(found) == ends
    for plan in (p for one in found for p in nested(one)):
        got = interp.run(Module(looped(plan), ("y",)), x)["y"]
        assert got.tobytes() == want.tobytes(), (plan.end, plan.units)


def test_only_least_ram_streams_and_a_loop_is_not_streamed_again() -> None:
    module = made(*CASES[0][:2])
    assert passes.run(module, "stream").graph is module.graph
    once = passes.run(module, "stream", supply={"rules": RAM})
    assert [n.op.name for n in once.graph.nodes].count("scan") == 1
    assert passes.run(once, "stream", supply={"rules": RAM}).graph is once.graph


def gated(net: Net, x: Any) -> Any:
    """All rows are multiplied by what depends on the whole image."""
    x = net.conv(x, 4, zero=-3)
    gate = mean(x) * 0.01
    return mean(net.conv(net.bytes(o.cast(x, dtype=float32) * gate), 4))


def numbered(net: Net, x: Any) -> Any:
    """The places of maxima in the whole image."""
    at = o.arg_reduce_window(net.conv(x, 4, zero=-3), kind="max", window=(1, 2, 2, 1),
                             strides=(1, 2, 2, 1), padding=((0, 0),) * 4)
    return mean(o.cast(at, dtype=uint8))


def two_paddings(net: Net, x: Any) -> Any:
    """An image outside of which a convolution sees 7, and a pool 0."""
    x = net.conv(x, 4, zero=-3)
    pool = o.reduce_window(x, kind="max", window=(1, 3, 3, 1), strides=(1, 1, 1, 1),
                           padding=((0, 0), *SAME, (0, 0)))
    return mean(net.bytes(o.cast(pool, dtype=float32) - o.cast(net.conv(x, 4), dtype=float32)))


def test_what_needs_a_whole_image_is_after_the_loop() -> None:
    assert len(list(plans(made(two_paddings, (1, 16, 12, 3)).graph))) == 1
    assert not list(plans(made(numbered, (1, 16, 12, 3)).graph))
    assert not list(plans(made(gated, (1, 16, 12, 3)).graph))
    two = TensorType(int8, (2, 16, 12, 3))
    graph = trace(lambda x: Net().conv(x, 4), [two], ["x"])
    assert not list(plans(graph))


@pytest.mark.compiled
@pytest.mark.parametrize(("maker", "shape", "most"), [
    (*CASES[0][:2], 0.65), (*CASES[1][:2], 0.6), (*CASES[5][:2], 0.7)])
def test_c_has_the_same_bits_in_less_memory(
        maker: Maker, shape: Any, most: float, tmp_path: Path) -> None:
    module, x = made(maker, shape), example(shape)
    want, arenas = interp.run(module, x)["y"], dict[str, Any]()
    objectives: tuple[Objective, ...] = ("usual", "ram")
    for objective in objectives:
        how = Build(target="cortex-m4", objective=objective)
        unit = unit_of(Source(module), how, "streamed")
        (function,) = functions(unit, how).values()
        arenas[objective] = function.program.arena
    assert arenas["ram"] <= most * arenas["usual"]
    emit(unit, tmp_path, how)
    text = "".join(p.read_text() for p in tmp_path.glob("streamed_kernels*"))
    assert "int64_t" not in text
    words = np.resize(x["x"].view(np.uint8), -(-x["x"].size // 4) * 4)
    harness(tmp_path, "streamed", {"x": words}, {"y": want.shape})
    ran = [here(tmp_path, "streamed", {"y": want.shape})]
    if not available("cortex-m4"):
        ran.append(on_board(tmp_path, "streamed", "cortex-m4", {"y": want.shape}))
    assert all(r.outputs["y"].tobytes() == want.tobytes() for r in ran)


@pytest.mark.compiled
def test_a_limit_of_ram_is_kept_by_streaming() -> None:
    how = Build(target="generic", objective="size", max_ram=1200)
    unit = unit_of(Source(made(*CASES[0][:2])), how, "streamed")
    assert within(unit, how).objective == "ram"
    with pytest.raises(UsageError, match="GT2109"):
        within(unit, replace(how, max_ram=600))
