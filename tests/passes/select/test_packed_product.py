"""Products with packed weights: where activations are rounded, and which kernel is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool import dtypes, interp, passes, transforms
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import rules_of
from graphtool.target import named

AMX, PLAIN = named("sapphirerapids", 2), named("x86-64-v3", 2)


def product(rows: int, activations: str, computed: bool = False) -> Module:
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (48, 4, 16)).astype(np.uint8)
    scales = rng.standard_normal((48, 4)).astype(np.float16).astype(np.float32)

    def fn(x: object, w: object) -> object:
        w = w if computed else x.builder.constant(packed)  # type: ignore[attr-defined]
        return o.linear_nbits(x, w, x.builder.constant(scales),  # type: ignore[attr-defined]
                              bits=4, block=32, activations=activations)
    types = [TensorType(dtypes.float32, (rows, 128)), TensorType(dtypes.uint8, packed.shape)]
    return Module(trace(fn, types, ["x", "w"]), ("y",))


def names(module: Module, target: object, precision: str = "default", text: str = "select") -> set:
    ready = passes.run(module, text, supply={"target": target, "rules": rules_of(precision)})
    return {n.op.name for n in ready.graph.nodes}


@pytest.mark.parametrize(("rows", "target", "want"), [
    (1, AMX, "linear_q8"), (1, PLAIN, "linear_q8"), (128, AMX, "linear_bf16"),
    (8, PLAIN, "linear_q8")])
@pytest.mark.parametrize(("activations", "precision"), [("q8", "default"), ("exact", "fast")])
def test_rounded_activations(rows: int, target: object, want: str, activations: str,
                             precision: str) -> None:
    assert want in names(product(rows, activations), target, precision)


def test_exact_activations_by_default_and_on_request() -> None:
    for target in (AMX, PLAIN):
        assert "linear_f32" in names(product(1, "exact"), target)
        assert "linear_f32" in names(product(50, "exact"), target)
    for text in ("q8", "exact"):
        assert "linear_f32" in names(product(1, text), AMX, "fast", "select{activations=exact}")
    assert "linear_q8" in names(product(1, "exact"), AMX, text="select{activations=q8}")


def test_weights_that_are_computed_are_unpacked() -> None:
    module = product(3, "q8", computed=True)
    ready = passes.run(module, "select", supply={"target": AMX})
    assert {"linear_nbits"} <= {n.op.name for n in ready.graph.nodes}
    rng = np.random.default_rng(1)
    xs = {"x": rng.standard_normal((3, 128)).astype(np.float32),
          "w": rng.integers(0, 256, (48, 4, 16)).astype(np.uint8)}
    np.testing.assert_allclose(interp.run(ready, xs)["y"], interp.run(module, xs)["y"], rtol=1e-5)


def test_strict_computes_by_the_definition() -> None:
    found = names(product(1, "q8"), AMX, "strict")
    assert not found & {"linear_nbits", "linear_f32", "linear_q8", "linear_bf16"}


def test_the_error_is_recorded_where_the_model_is_exact() -> None:
    module = product(1, "exact")
    ready = passes.run(module, "select", supply={"target": AMX, "rules": rules_of("fast")})
    assert [c.site for c in ready.choices.values()] == ["packed{m=1,n=48,k=128}"]


def test_the_gradient_passes_the_rounding() -> None:
    graph = trace(lambda x: o.round_blocks(x, block=8), [TensorType(dtypes.float32, (2, 12))],
                  ["x"])
    joint = transforms.vjp(graph, list(graph.inputs))
    rng = np.random.default_rng(2)
    x, g = rng.standard_normal((2, 2, 12)).astype(np.float32)
    y, dx = interp.run(Module(joint, ("y", "dx")), dict(zip(
        [v.hint for v in joint.inputs], (x, g), strict=True))).values()
    np.testing.assert_array_equal(dx, g)
    assert 0 < np.abs(y - x).max() < np.abs(x).max() / 250
