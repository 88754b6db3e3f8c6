"""Programs of open sizes: JAX's names and constraints become dims, bounds and conditions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.errors import GraphtoolError, InputError, UsageError
from graphtool.importers.stablehlo import import_stablehlo, import_text
from graphtool.ir.listing import required

SAMPLE = Path(__file__).parent / "open" / "sizes.mlir"  # of `make_samples.py`


def wanted(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    h = np.concatenate([x, x]) @ w
    e = np.exp(h - h.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True), x.reshape(-1), h[1:], x.mean(0, dtype=np.float32),
            np.arange(len(x), dtype=np.int32), np.pad(x, ((1, 0), (0, 2))), x.cumsum(0)]


def arrays(b: int, t: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(b)
    return {"x": rng.standard_normal((b, t)).astype(np.float32),
            "w": rng.standard_normal((t, 5)).astype(np.float32)}


def test_names_bounds_and_conditions() -> None:
    module = import_stablehlo(SAMPLE)
    assert [str(v.type) for v in module.graph.inputs] == ["f32[b,t]", "f32[t,5]"]
    assert (module.symbols["b"].lo, module.symbols["b"].hi) == (2, 64)
    assert required(module) == ["t % 4 == 0"]


@pytest.mark.parametrize(("b", "t"), [(2, 4), (7, 8), (64, 12)])
def test_the_evaluator_takes_every_size(b: int, t: int) -> None:
    given = arrays(b, t)
    got = list(interp.run(import_stablehlo(SAMPLE), given).values())
    for g, w in zip(got, wanted(**given), strict=True):
        np.testing.assert_allclose(g, w, 1e-5, 1e-5)


def test_compiled_code_takes_every_size(tmp_path: Path) -> None:
    graphtool.build(import_stablehlo(SAMPLE), str(tmp_path / "b"), name="m")
    model = graphtool.load(str(tmp_path / "b"))
    for b, t in ((2, 4), (9, 16)):
        given = arrays(b, t)
        for g, w in zip(model.run(given).values(), wanted(**given), strict=True):
            np.testing.assert_allclose(g, w, 1e-5, 1e-5)


@pytest.mark.parametrize(("b", "t"), [(1, 4), (65, 4), (3, 6)])
def test_other_sizes_are_refused(b: int, t: int) -> None:
    with pytest.raises(GraphtoolError):
        interp.run(import_stablehlo(SAMPLE), arrays(b, t))


def test_dynamic_bounds_and_fixes_sizes() -> None:
    module = import_stablehlo(SAMPLE, dynamic={"b": (3, 5), "t": (8, 8)})
    assert [str(v.type) for v in module.graph.inputs] == ["f32[b,8]", "f32[8,5]"]
    assert (module.symbols["b"].lo, module.symbols["b"].hi) == (3, 5)
    with pytest.raises(UsageError, match="no open size 'c'"):
        import_stablehlo(SAMPLE, dynamic={"c": (1, 2)})
    with pytest.raises(InputError) as caught:
        import_stablehlo(SAMPLE, dynamic={"t": (6, 6)})
    assert caught.value.code == "GT1308"


def test_sizes_without_names_that_must_be_equal() -> None:
    module = import_text("""func.func @main(%arg0: tensor<?x3xf32> loc("x"),
      %arg1: tensor<?x3xf32> loc("y")) -> tensor<?x3xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}""")
    assert required(module) == ["x_0 == y_0"] or required(module) == ["y_0 == x_0"]
