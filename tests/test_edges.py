"""Ops at the edges of number types: the evaluator, compiled C and the importers beside others."""

from __future__ import annotations

import contextlib
import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from graphtool import interp, passes
from graphtool.dtypes import BY_NAME, of_numpy
from graphtool.errors import UnsupportedError
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.live import array
from graphtool.native import compiler
from graphtool.ops.elementwise import cast_array
from graphtool.target import detect
from tests import edges
from tests.cases import INTEGERS, Case
from tests.importers.torch.agreement import Function
from tests.lower.compiling import compiled, faults, merged

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile with -O1: these are many small kernels that run once."""
    monkeypatch.setattr(compiler, "BASE", tuple(
        "-O1" if f == "-O3" else f for f in compiler.BASE))


def compared(cases: list[Case], path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    """The results of the cases in one graph: by the evaluator and by C."""
    module, inputs = merged(cases)
    with np.errstate(all="ignore"):
        return interp.run(module, inputs), compiled(module, path).run(inputs)


def test_integers_are_those_of_python(tmp_path: Path) -> None:
    table = list(edges.of_integers())
    for found in compared([c for c, _ in table], tmp_path):
        for case, numbers in table:
            got = found[f"{case.name}=0"].reshape(-1)
            np.testing.assert_array_equal(got, edges.held(numbers, got.dtype), case.name)


@pytest.mark.parametrize("name", [
    "f32", *(pytest.param(n, marks=pytest.mark.slow) for n in ("f64", "f16", "bf16"))])
def test_floats_are_those_of_the_evaluator(name: str, tmp_path: Path) -> None:
    want, got = compared(list(edges.of_floats(name)), tmp_path)
    with np.errstate(all="ignore"):  # of f64 these are 1e-12 and 1e-15
        assert faults(got, want, *((1e-3, 1e-6) if name == "f64" else (2e-5, 2e-7))) == []


@pytest.mark.parametrize("source", edges.FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
def test_a_cast_to_integers_is_clamped(source: str, to: str) -> None:
    """As docs/numerics.md says; tests of C compare it with this."""
    x, row = edges.floats(BY_NAME[source]), BY_NAME[to]
    want = [0 if v != v else row.low if v < row.low else row.high if v > row.high else int(v)
            for v in map(float, x)]
    assert cast_array(x, row).tolist() == want


# ---- torch ---------------------------------------------------------------------------------------

def operands(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """a, b, d and s of the functions: all pairs of numbers, divisors, counts of bits.

    What ends torch's process is left out: least numbers divided by −1. So is where its remainders
    of floats are NaN: a millionth of the dividend and less.
    """
    row = BY_NAME[str(dtype).removeprefix("torch.")]
    if dtype.is_floating_point:
        a, b = edges.pairs(edges.floats(row))
        d = np.where(np.abs(b) < np.abs(a) * 1e-6, a, b)
    else:
        a, b = edges.pairs(np.array(edges.integers(row), row.numpy))
        d = np.where((b == 0) | ((a == row.low) & (b == -1)), 1, b).astype(a.dtype)
    s = (np.arange(len(a)) % row.bits).astype(a.dtype)
    return {k: torch.from_numpy(x) for k, x in {"a": a, "b": b, "d": d, "s": s}.items()}


def differing(dtype: torch.dtype, texts: Sequence[str]) -> list[str]:
    """Which of the functions differ from torch; those that torch refuses are left out."""
    given = operands(dtype)
    low = 0 if dtype.is_floating_point else torch.iinfo(dtype).min + 1
    space = {"torch": torch, "F": torch.nn.functional, "low": low, "inf": np.inf, "nan": np.nan}
    wanted: dict[str, Array] = {}
    for text in texts:
        with contextlib.suppress(RuntimeError):
            wanted[text] = array(eval(text, space, given))

    def model(*xs: torch.Tensor) -> list[torch.Tensor]:
        named = dict(zip(given, xs, strict=True))
        return [eval(text, space, named) for text in wanted]
    module = import_torch(Function(model), tuple(given.values()))
    names = [v.hint for v in module.graph.inputs]
    with np.errstate(all="ignore"):
        got = interp.run(module, {n: array(t) for n, t in zip(names, given.values(), strict=True)})
    return [f"{text}: {why}" for (text, want), x in zip(wanted.items(), got.values(), strict=True)
            if (why := apart(x, want))]


def apart(got: Array, want: Array, roundings: int = 256) -> str:
    """How they differ: integers at all, floats by more than `roundings` of each number."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    same = (got == want) | ((got != got) & (want != want))
    if of_numpy(want.dtype).is_float:
        f = ml_dtypes.finfo(want.dtype)
        with np.errstate(all="ignore"):
            same |= np.isclose(got.astype(np.float64), want.astype(np.float64),
                               rtol=roundings * float(f.eps), atol=2 * float(f.smallest_normal))
    at = np.flatnonzero(~same)
    return f"{got.flat[at[0]]} for {want.flat[at[0]]} at {at[0]}" if at.size else ""


def with_numbers(numbers: Sequence[Any]) -> list[str]:
    """The functions of a number, of each of the numbers."""
    return [re.sub(r"\bn\b", f"({n!r})", text) for text in edges.functions(edges.WITH_A_NUMBER)
            for n in numbers]


WHOLE = edges.functions(edges.OF_TORCH + "\n" + edges.OF_INTEGERS)
FLOATING = edges.functions(edges.OF_TORCH + "\n" + edges.OF_FLOATING)
FEW = 25  # functions of a type in the default suite


@pytest.mark.parametrize("dtype", [torch.int8, torch.float32], ids=str)
def test_some_functions_are_torchs(dtype: torch.dtype) -> None:
    texts = FLOATING + with_numbers(edges.FLOAT_NUMBERS) if dtype.is_floating_point else (
        WHOLE + with_numbers(edges.INTEGER_NUMBERS))
    assert differing(dtype, random.Random(0).sample(texts, FEW)) == []


def test_corners_are_torchs(tmp_path: Path) -> None:
    """The evaluator and C; 16 bits within two roundings."""
    f = torch.tensor([-math.inf, -200, -1, -1e-9, -0.0, 0, 1e-40, 0.1, 0.31, 0.5, 0.7, 2, math.inf,
                      math.nan])
    given = {"f": f, "h": f.bfloat16(), "u": torch.arange(36, 50, dtype=torch.uint8), "i": (
        torch.tensor([0, 5, -5, 257, -200, 2000, -2000, 140, -148, 2**31 - 1, 2**31, -2**63,
                      2**32 + 3, 1]))}
    space = {"torch": torch, "F": torch.nn.functional, "inf": math.inf, "nan": math.nan}
    texts = edges.functions(edges.CORNERS)
    wanted = [array(eval(t, space, given)) for t in texts]
    module = import_torch(Function(lambda *xs: [
        eval(t, space, dict(zip(given, xs, strict=True))) for t in texts]), tuple(given.values()))
    inputs = {v.hint: array(x) for v, x in zip(module.graph.inputs, given.values(), strict=True)}
    with np.errstate(all="ignore"):
        results = (interp.run(module, inputs), compiled(passes.run(
            module, None, supply={"target": detect()}), tmp_path).run(inputs))
    wrong = [f"{text}: {why}" for got in results for text, want, x in zip(
        texts, wanted, got.values(), strict=True) if (why := apart(x, want, 4))]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("text", ["a.clamp(0, 300)", "torch.where(a > 0, a, 300)", "a.fill_(-129)",
                                  "a.masked_fill(a > 0, 300)", "torch.add(a, a, alpha=300)"])
def test_a_number_that_torch_refuses_is_refused(text: str) -> None:
    a = torch.ones(3, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="without overflow"):
        eval(text, {"torch": torch, "a": a.clone()})
    with pytest.raises(UnsupportedError, match="beyond the range of int8"):
        import_torch(Function(lambda a: eval(text, {"torch": torch, "a": a.clone()})), (a,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_number_beyond_16_bits_is_not_infinite(dtype: torch.dtype) -> None:
    """A mask is (1 − m)·−1e9 in many models, and 0·−∞ would be NaN."""
    a = torch.tensor([0.0, 1.0, 300.0], dtype=dtype)
    model = Function(lambda a: (a * -3.4e38, 3.4e38 / (a + 1), a / 1e-45))
    module = import_torch(model, (a,))
    got = interp.run(module, {module.graph.inputs[0].hint: array(a)}).values()
    assert [apart(x, array(y)) for x, y in zip(got, model(a), strict=True)] == ["", "", ""]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", [
    70000, -1e6, pytest.param(65520.0, marks=pytest.mark.slow),
    *(pytest.param(x, marks=pytest.mark.slow) for x in (
        1e38, 1e39, -1e300, 1e-8, 3e-46, 1e-320, math.inf, -math.inf, math.nan, 0.1, 2049, -3))])
def test_numbers_beside_16_bits_are_torchs(dtype: torch.dtype, n: float) -> None:
    """Each function of a number within the last digit; the deviations are those of numerics.md."""
    a = torch.tensor([0, -0.0, 1, -1, 0.1, 3, -2.5, 300, -750, 2048, 6e4, math.inf, -math.inf,
                      math.nan]).to(dtype)
    space = {"torch": torch, "F": torch.nn.functional, "n": n}
    wanted: dict[str, Array] = {}
    for text in edges.functions(edges.OF_NARROW):
        with contextlib.suppress(RuntimeError):
            wanted[text] = array(eval(text, space, {"a": a}))
    module = import_torch(Function(lambda a: [eval(t, space, {"a": a}) for t in wanted]), (a,))
    with np.errstate(all="ignore"):
        got = interp.run(module, {module.graph.inputs[0].hint: array(a)}).values()
    assert [f"{text}: {why}" for (text, want), x in zip(wanted.items(), got, strict=True)
            if (why := apart(x, want, 2))] == []


@pytest.mark.parametrize("numbers", [2, 40])
def test_isin_finds_what_is_there(numbers: int) -> None:
    """Not, as torch does for many numbers, what equals its neighbour in bfloat16."""
    a = torch.tensor([256, 257, 5], dtype=torch.int16)
    b = torch.full((numbers,), 5.0, dtype=torch.bfloat16)
    module = import_torch(Function(torch.isin), (a, b))
    names = [v.hint for v in module.graph.inputs]
    got, = interp.run(module, dict(zip(names, (array(a), array(b)), strict=True))).values()
    assert got.tolist() == [False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_integers_are_torchs(dtype: torch.dtype) -> None:
    for texts in (WHOLE, with_numbers(edges.INTEGER_NUMBERS)):
        assert differing(dtype, texts) == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_floats_are_torchs(dtype: torch.dtype) -> None:
    for texts in (FLOATING, with_numbers(edges.FLOAT_NUMBERS)):
        assert differing(dtype, texts) == []
