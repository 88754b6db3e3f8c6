"""What reads along one axis and stores along another goes in squares; other nests stay nests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops.ir import Template
from graphtool.lower import lower
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named
from tests.lower.compiling import compiled, faults, optimised

B = symbol("B", 1, 50)
Body = Callable[..., Any]


def weight(x: Any, *shape: int) -> Any:
    return x.builder.constant(np.random.default_rng(shape).standard_normal(
        shape).astype(np.float32) * 0.3)


def moved(x: Any, *perm: int) -> Any:
    return o.transpose(x, perm=perm)


def rows(x: Any, first: int) -> Any:
    return o.slice(x, start=(first, 0), limit=(first + 64, x.shape[1]), strides=(1, 1))


def picked(x: Any) -> Any:
    """Whichever plane the last element names."""
    last = o.slice(x, start=tuple(d - 1 for d in x.shape), limit=x.shape, strides=(1, 1, 1))
    return o.gather(x, o.cast(o.reshape(last, shape=(1,)), dtype=dtypes.int64), axes=(0,))


def conv(x: Any) -> Any:
    return o.conv(x, weight(x, 20, x.shape[1], 3, 3), padding=((1, 1), (1, 1)))


CROSSED: dict[str, tuple[Body, tuple[Any, ...]]] = {
    "plain": (lambda x: moved(x, 1, 0), (67, 130)),
    "two axes as one": (lambda x: moved(x, 0, 3, 1, 2), (2, 9, 15, 33)),
    "planes between": (lambda x: moved(x, 2, 1, 0), (31, 9, 40)),
    "with an operand of each kind": (
        lambda x: o.relu(moved(x, 1, 0) * weight(x, 96, 1) + weight(x, 64) - weight(x, 96, 64)),
        (64, 96)),
    "an image in and out": (lambda x: o.relu(conv(x)), (1, 17, 18, 19)),
    "an open batch": (lambda x: moved(x, 0, 2, 1), (B, 70, 64)),
}
PLAIN: dict[str, tuple[Body, tuple[Any, ...]]] = {
    "little": (lambda x: moved(x, 1, 0), (40, 40)),
    "few columns": (lambda x: moved(x, 1, 0), (4096, 3)),
    "two read across": (lambda x: moved(rows(x, 0), 1, 0) + moved(rows(x, 64), 1, 0), (128, 96)),
    "where the data say": (lambda x: moved(picked(x), 1, 0), (3, 64, 96)),
    "a sum": (lambda x: o.reduce_sum(moved(x, 1, 0), axes=(1,)), (64, 96)),
}


def panels(nr: int) -> Body:
    """Weights of bfloat16, transposed, in panels of pairs."""
    return lambda x: o.pack_blocks(x, nr=nr, transpose=True)


PAIRS: dict[str, tuple[Body, tuple[Any, ...]]] = {
    "one panel": (panels(32), (32, 256)),
    "panels": (panels(32), (96, 128)),
    "narrow panels": (panels(16), (64, 160)),
    "a batch": (panels(32), (3, 64, 96)),
    "an open batch": (panels(32), (B, 64, 96)),
    "pairs of rows": (lambda x: o.pack_pairs(x, nr=32, transpose=True), (64, 100)),
}
PLAIN_PAIRS: dict[str, tuple[Body, tuple[Any, ...]]] = {
    "little": (panels(32), (32, 64)),
    "zeros at the end of a panel": (panels(32), (70, 128)),
    "zeros at the end of a column": (panels(32), (64, 100)),
    "along rows": (lambda x: o.pack_blocks(x, nr=32), (128, 96)),
    "an odd distance": (lambda x: panels(32)(o.slice(x, start=(0, 0), limit=(96, 128),
                                                     strides=(1, 1))), (96, 129)),
    "numbers, not pairs": (lambda x: moved(x, 1, 0), (96, 128)),
    "a sum of pairs": (lambda x: panels(32)(x + x), (96, 128)),
}


def module(body: Body, shape: tuple[Any, ...], dtype: dtypes.DType = dtypes.float32) -> Module:
    graph = trace(body, [TensorType(dtype, shape)], ["x"])
    return Module(graph, ("y",), {"B": Symbol("B", 1, 50)} if B in shape else {})


def squares(m: Module) -> int:
    program = lower(optimised(m), named("native", threads=2))
    return sum(isinstance(s, Template) and s.kernel == "transpose"
               for k in program.kernels for s in k.body)


@pytest.mark.part(2)
@pytest.mark.parametrize("name", CROSSED)
@pytest.mark.parametrize("threads", [1, 3])
def test_squares_hold_what_the_evaluator_says(name: str, threads: int, tmp_path: Path) -> None:
    m = module(*CROSSED[name])
    assert squares(m)
    shape = tuple(5 if d is B else d for d in CROSSED[name][1])
    given = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    model = compiled(optimised(m), tmp_path, target=named("native", threads=threads),
                     eager=threads > 1)
    model.threads = threads
    assert faults(model.run(given), interp.run(m, given), 1e-4, 1e-4) == []


@pytest.mark.parametrize("name", PLAIN)
def test_other_work_stays_a_nest(name: str) -> None:
    assert not squares(module(*PLAIN[name]))


@pytest.mark.part(3)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("march", ["native", "x86-64"])
def test_pairs_stay_together(name: str, march: str, tmp_path: Path) -> None:
    """Bits are moved, those of NaN and of subnormals too."""
    m = module(*PAIRS[name], dtypes.bfloat16)
    assert squares(m)
    shape = tuple(5 if d is B else d for d in PAIRS[name][1])
    bits = np.random.default_rng(0).integers(0, 1 << 16, shape, np.uint16)
    given = {"x": bits.view(dtypes.bfloat16.numpy)}
    (want,) = interp.run(m, given).values()
    for threads in (1, 3):
        model = compiled(optimised(m), tmp_path / str(threads), eager=threads > 1,
                         target=named(march, threads=threads))
        (got,) = model.run(given).values()
        np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("name", PLAIN_PAIRS)
def test_other_copies_of_halves_stay_a_nest(name: str) -> None:
    assert not squares(module(*PLAIN_PAIRS[name], dtypes.bfloat16))
