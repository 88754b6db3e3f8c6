"""A result may overlap an operand where nothing is read after it was overwritten: the plan uses it,
and the verifier finds each byte that is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import InputError
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.ir.trace import trace
from graphtool.ir.types import TensorType
from graphtool.kernels import conv_bytes
from graphtool.loops import interp as loop_interp
from graphtool.loops.liveness import lifetimes, most_live
from graphtool.loops.program import SCRATCH, Program
from graphtool.loops.sharing import Touched, touched_by
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.target import named

TARGET = named("cortex-m4")
LANES = 1
NONE = ((0, 0), (0, 0))


def layer(x: Any, outs: int, size: int = 1, stride: int = 1, pad: int = 0) -> Any:
    """A convolution of bytes whose results are bytes again; depthwise for no outputs."""
    rng = np.random.default_rng(outs + size)
    attrs = {"zero": 0, "window": (size, size), "strides": (stride, stride),
             "padding": ((pad, pad), (pad, pad))}
    w = rng.integers(-5, 5, (outs or x.shape[3], x.shape[3] if outs else 1, size, size), np.int8)
    y = (o.conv_bytes(x, x.builder.constant(conv_bytes.packed(w)), channels=outs, **attrs)
         if outs else o.depthwise_bytes(x, x.builder.constant(w[:, 0]), **attrs))
    return o.cast(o.clamp(o.shift_right(y, 5), 0, 255), dtype=dtypes.uint8)


def made(*layers: tuple[int, ...], shape: tuple[int, ...] = (1, 9, 8, 8)) -> tuple[Module, Program]:
    """The layers between two of 1×1, so that no port is shared."""
    def run(x: Any) -> Any:
        x = layer(x, shape[3])
        for how in layers:
            x = layer(x, *how)
        return layer(x, 3)
    graph = trace(run, [TensorType(dtypes.uint8, shape)], ["x"])
    module = passes.run(Module(graph, ("y",)), "fuse", supply={"target": TARGET})
    return module, lower(module, TARGET)


def agrees(module: Module, program: Program) -> None:
    verify(program)
    xs = made_up.random_inputs(module, 0)
    data = {w.digest: w for w in collect_all(module.graph)}
    np.testing.assert_array_equal(loop_interp.run(program, xs, data)["y"],
                                  interp.run(module, xs)["y"])


@pytest.mark.parametrize(("layers", "most"), [
    ([(0, 3, 1, 1)], 9 * 8 * 8 + 72),  # depthwise in place, with its ring
    ([(8, 1)], 9 * 8 * 8 + 64),  # 1×1 in place
    ([(16, 1)], 9 * 8 * 16 + 64),  # more channels: it writes behind what it reads
    ([(8, 3, 1, 1)], 9 * 8 * 8 + (8 + 2) * 8 + 40 + 300),  # a row and a window behind
    ([(0, 3, 2, 1)], 9 * 8 * 8 + 4 * 8 + 72),  # a row of fewer pixels behind
    ([(0, 3, 1, 1), (16, 1), (0, 3, 2, 1), (8, 1)], 9 * 8 * 16 + 400)])
def test_the_arena_is_little_more_than_one_image(layers: list[tuple[int, ...]], most: int) -> None:
    module, program = made(*layers)
    assert program.arena <= most
    assert most_live(program) <= program.arena  # type: ignore[operator]
    agrees(module, program)


def shared_pairs(program: Program) -> list[tuple[str, str]]:
    lives = lifetimes(program.steps)
    alive = sorted((b for b in program.buffers if b.space == "arena" and b.name in lives),
                   key=lambda b: lives[b.name])
    return [(x.name, y.name) for i, x in enumerate(alive) for y in alive[i + 1:]
            if lives[y.name][0] <= lives[x.name][1] and x.offset < y.offset + y.bytes_of(y.size)
            and y.offset < x.offset + x.bytes_of(x.size)]


@pytest.mark.parametrize("layers", [[(0, 3, 1, 1)], [(16, 1)], [(8, 3, 1, 1)], [(0, 3, 2, 1)]])
def test_a_plan_that_loses_a_byte_is_refused(layers: list[tuple[int, ...]]) -> None:
    _, program = made(*layers)
    pairs = shared_pairs(program)
    assert pairs
    for x, y in pairs:
        operand = next(b for b in program.buffers if b.name == x)
        result = next(b for b in program.buffers if b.name == y)
        # from where it is, the result moves into what is still to be read; the workspace makes room
        moved = replace(result, offset=operand.offset + 192)
        away = {b.name: replace(b, offset=program.arena + 2048) for b in program.buffers
                if b.label.startswith(SCRATCH)}
        broken = replace(program, arena=program.arena + 4096, buffers=tuple(
            moved if b.name == y else away.get(b.name, b) for b in program.buffers))
        with pytest.raises(InputError, match=f"GT0376.*{x} and {y} overlap"):
            verify(broken)


def test_a_step_may_not_share_what_is_read_later() -> None:
    """The operand of the first step is added after the second one."""
    def run(x: Any) -> Any:
        x = layer(x, 8)
        y = layer(layer(x, 0, 3, 1, 1), 8)
        return layer(o.max(x, y), 3)
    graph = trace(run, [TensorType(dtypes.uint8, (1, 9, 8, 8))], ["x"])
    module = passes.run(Module(graph, ("y",)), "fuse", supply={"target": TARGET})
    program = lower(module, TARGET)
    agrees(module, program)
    assert program.arena >= 2 * 9 * 8 * 8
    operand, result = shared_pairs(program)[-1]
    late = replace(program, steps=tuple(
        replace(s, barrier=True) for s in (*program.steps, program.steps[1])))
    with pytest.raises(InputError, match="GT0376"):
        verify(late)
    assert operand != result


def test_bytes_are_compared_one_by_one() -> None:
    """Step 0 reads bytes 0 and 1, step 1 byte 2; step 0 writes byte 0, step 1 byte 1."""
    none = np.full(3, -1)
    touched = Touched(np.array([0, 0, 1]), none, np.array([0, 1]), True)
    assert [d for d in range(-3, 4) if touched.at(d)] == [-3, -2, -1, 0, 1, 3]
    assert touched.least() == -1
    hooked = Touched(none, np.array([0, 1, 1]), np.array([0, 1]), True)
    assert hooked.at(0) and not hooked.at(1)
    assert not replace(hooked, in_place=False).at(0)


def test_kernels_that_declare_no_order_share_nothing() -> None:
    _, program = made((0, 3, 1, 1))
    loops_ = [k for k in program.kernels if touched_by(k, "x0", "y0", LANES) is None]
    assert len(loops_) < len(program.kernels)
