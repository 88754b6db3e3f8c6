"""Caches of a fixed room: equal to those that grow, written in place, and only where new."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.passes import run
from graphtool.symbolic import Symbol, dim_of
from tests.importers.onnx import build as onnx
from tests.passes.pass_samples import values

ROOM, BATCH, HEADS, WIDTH = 24, 2, 3, 8
PAST, NEW = Symbol("P", 0, 4096), Symbol("S", 1, 4096)


def decoder(new: Any) -> Module:
    """One layer of attention over a past of any length and `new` tokens, none of which is
    hidden."""
    def step(x: Any, k: Any, v: Any) -> Any:
        q, a, b = (o.transpose(o.reshape(o.matmul(x, values(x, 24, 24, seed=i)), shape=(
            BATCH, new, HEADS, WIDTH)), perm=(0, 2, 1, 3)) for i in range(3))
        k, v = o.concat(k, a, axis=2), o.concat(v, b, axis=2)
        y = o.attention(q, k, v)
        return o.reshape(o.transpose(y, perm=(0, 2, 1, 3)), shape=(BATCH, new, 24)), k, v
    past = TensorType(dtypes.float32, (BATCH, HEADS, dim_of(PAST), WIDTH))
    graph = trace(step, [TensorType(dtypes.float32, (BATCH, new, 24)), past, past], ["x", "k", "v"])
    symbols = {s.name: s for s in (PAST, NEW) if s is PAST or not isinstance(new, int)}
    return Module(graph, ("y", "keys", "values"), symbols)


ONE, MANY = decoder(1), decoder(dim_of(NEW))


def tokens(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((BATCH, n, 24)).astype(np.float32)


def grown(*parts: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """What the model that copies its past gives for each part, one after the other."""
    past = {n: np.zeros((BATCH, HEADS, 0, WIDTH), np.float32) for n in "kv"}
    out = []
    for x in parts:
        y, past["k"], past["v"] = interp.run(MANY, {"x": x, **past}).values()
        out.append(y)
    return out


class Kept:
    """A compiled step with caches that stay where they are."""

    def __init__(self, folder: Path, module: Module) -> None:
        self.model = runtime.load(build(run(run(module, f"cache{{max={ROOM}}}")), folder))
        self.past = {n: np.full((BATCH, HEADS, ROOM, WIDTH), np.nan, np.float32) for n in "kv"}

    def __call__(self, x: Any, at: int) -> Any:
        given = {"x": x, **self.past, "position": np.array(at)}
        return self.model.run(given, out={"keys": self.past["k"], "values": self.past["v"]})["y"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    folder = tmp_path_factory.mktemp("kept")
    return {"one": Kept(folder / "one", ONE), "many": Kept(folder / "many", MANY)}


def test_steps_give_what_a_growing_past_gives(kept: dict[str, Kept]) -> None:
    """The room holds NaN where nothing was written: a result with none reads the valid part."""
    xs = [tokens(1, i) for i in range(ROOM)]
    for i, (x, want) in enumerate(zip(xs, grown(*xs), strict=True)):
        np.testing.assert_allclose(kept["one"](x, i), want, rtol=1e-4, atol=1e-5)


def test_a_prompt_then_a_second_one(kept: dict[str, Kept]) -> None:
    xs = [tokens(9, 1), tokens(ROOM - 9, 2)]
    first, second = grown(*xs)
    np.testing.assert_allclose(kept["many"](xs[0], 0), first, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(kept["many"](xs[1], 9), second, rtol=1e-4, atol=1e-5)


def test_going_back_forgets(kept: dict[str, Kept]) -> None:
    many = kept["many"]
    many(tokens(5, 1), 0), many(tokens(6, 2), 5)  # six tokens that are taken back
    want = grown(tokens(5, 1), tokens(2, 3))[1]
    np.testing.assert_allclose(many(tokens(2, 3), 5), want, rtol=1e-4, atol=1e-5)


def test_only_what_is_new_is_written(kept: dict[str, Kept]) -> None:
    one = kept["one"]
    before = {n: a.copy() for n, a in one.past.items()}
    one(tokens(1, 7), 3)
    for n, a in one.past.items():
        changed = ~((a == before[n]) | (np.isnan(a) & np.isnan(before[n]))).all((0, 1, 3))
        assert changed.nonzero()[0].tolist() == [3]


def test_a_step_moves_no_more_of_the_cache_than_is_new(kept: dict[str, Kept]) -> None:
    """Beside attention, which reads the valid part, no step moves more bytes than two tokens
    have."""
    cache = BATCH * HEADS * ROOM * WIDTH * 4
    steps = kept["one"].model.manifest.steps
    moved = [s.bytes for s in steps if s.choice is None]
    assert moved and all(isinstance(n, int) and n < cache // 4 for n in moved)


@pytest.mark.parametrize("at", [-1, ROOM])
def test_a_full_cache_is_an_error_and_stays(kept: dict[str, Kept], at: int) -> None:
    before = {n: a.copy() for n, a in kept["one"].past.items()}
    with pytest.raises(GraphtoolError, match="breaks its bound"):
        kept["one"](tokens(1), at)
    for n, a in kept["one"].past.items():
        np.testing.assert_array_equal(a, before[n])


def test_the_evaluator_agrees() -> None:
    module = run(ONE, f"cache{{max={ROOM}}}")
    past = {n: np.zeros((BATCH, HEADS, ROOM, WIDTH), np.float32) for n in "kv"}
    xs = [tokens(1, i) for i in range(3)]
    for i, (x, want) in enumerate(zip(xs, grown(*xs), strict=True)):
        y, past["k"], past["v"] = interp.run(
            module, {"x": x, **past, "position": np.array(i)}).values()
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@pytest.mark.part(2)
@pytest.mark.parametrize(("kept", "error"), [("bf16", 0.06), ("f16", 0.01), ("i8", 0.1)])
def test_a_cache_of_fewer_bits(kept: str, error: float, tmp_path: Path) -> None:
    """C and evaluator keep the same numbers; what they read is near to what the model has."""
    modules = {n: run(m, f"cache{{max={ROOM},dtype={kept}}}") for n, m in (
        ("prefill", MANY), ("decode", ONE))}
    folder = graphtool.build(modules, tmp_path / "b")
    loaded = {n: runtime.load(folder, entry=n) for n in modules}
    rows = loaded["decode"].inputs
    state = {p.name: np.zeros(p.shape, p.dtype.numpy) for p in rows if p.name not in (
        "x", "position")}
    assert {p.dtype.name for p in rows[1:3]} == {dtypes.dtype(kept).name}
    names = [p.name for p in loaded["decode"].outputs]
    outs = dict(zip(names[1:], state, strict=True))
    ours, theirs = state, {n: a.copy() for n, a in state.items()}
    xs = [tokens(7, 1), tokens(1, 2), tokens(1, 3)]
    for x, at, want in zip(xs, (0, 7, 8), grown(*xs), strict=True):
        name = "prefill" if at == 0 else "decode"
        given = {"x": x, "position": np.array(at)}
        y = loaded[name].run({**given, **ours}, out={o: ours[i] for o, i in outs.items()})["y"]
        found = interp.run(modules[name], {**given, **theirs})
        theirs = {i: found[o] for o, i in outs.items()}
        np.testing.assert_allclose(y, found["y"], rtol=1e-4, atol=1e-4)
        assert np.abs(y - want).max() < error * np.abs(want).max()
        for n, a in ours.items():
            np.testing.assert_allclose(a.astype(np.float32), theirs[n].astype(np.float32),
                                       rtol=1e-6 if a.dtype == np.float32 else 0)


def test_a_row_that_is_not_finite_reads_as_nan() -> None:
    module = run(ONE, f"cache{{max={ROOM},dtype=i8}}")
    state = {v.hint: np.zeros(tuple(v.type.shape), v.type.dtype.numpy)  # type: ignore[arg-type]
             for v in module.graph.inputs if v.hint not in ("x", "position")}
    x = tokens(1)
    x[0, 0, 0] = np.inf
    found = interp.run(module, {"x": x, "position": np.array(0), **state})
    assert np.isnan(found["y"][0]).all() and np.isfinite(found["y"][1]).all()


def test_int8_keys_that_lie_across() -> None:
    """Positions along the last axis: a row lies along the axis before it."""
    def step(x: Any, k: Any) -> Any:
        k = o.concat(k, x, axis=2)
        return o.reduce_sum(k, axes=(2,)), k
    types = [TensorType(dtypes.float32, (2, 8, n)) for n in (1, dim_of(PAST))]
    module = run(Module(trace(step, types, ["x", "k"]), ("y", "k_now"), {"P": PAST}),
                 "cache{max=6,dtype=i8}")
    assert [tuple(v.type.shape) for v in module.graph.inputs] == [
        (2, 8, 1), (2, 8, 6), (), (2, 1, 6)]
    x = np.random.default_rng(0).standard_normal((2, 8, 1)).astype(np.float32)
    found = interp.run(module, {"x": x, "k": np.zeros((2, 8, 6), np.int8), "position": np.array(0),
                                "k_factors": np.zeros((2, 1, 6), np.float32)})
    np.testing.assert_allclose(found["y"], x, atol=np.abs(x).max() / 250)
    assert np.abs(found["k_now"][:, :, 0]).max(1).tolist() == [127, 127]


def test_a_cache_of_integers_stays() -> None:
    """Only floats are rounded."""
    def step(x: Any, k: Any) -> Any:
        k = o.concat(k, x, axis=0)
        return o.reduce_sum(k, axes=(0,)), k
    types = [TensorType(dtypes.int64, (n,)) for n in (1, dim_of(PAST))]
    module = run(Module(trace(step, types, ["x", "k"]), ("y", "k_now"), {"P": PAST}),
                 "cache{max=6,dtype=i8}")
    assert [v.type.dtype.name for v in module.graph.inputs] == ["int64"] * 3


def test_entry_points_share_a_cache(tmp_path: Path) -> None:
    """A prompt by one entry point, the next token by another, over the same arrays."""
    modules = {"prefill": run(MANY, f"cache{{max={ROOM}}}"), "decode": run(
        ONE, f"cache{{max={ROOM}}}")}
    folder = graphtool.build(modules, tmp_path / "b")
    past = {n: np.zeros((BATCH, HEADS, ROOM, WIDTH), np.float32) for n in "kv"}
    xs = [tokens(7, 1), tokens(1, 2)]
    for entry, x, at, want in zip(modules, xs, (0, 7), grown(*xs), strict=True):
        given = {"x": x, **past, "position": np.array(at)}
        got = graphtool.load(folder, entry=entry).run(
            given, out={"keys": past["k"], "values": past["v"]})
        np.testing.assert_allclose(got["y"], want, rtol=1e-4, atol=1e-5)
    header = (folder / "model_decode.h").read_text()
    assert "outputs[1]: float keys[2, 3, 24, 8],\n   which takes the place of inputs[1]" in header
    shutil.rmtree(folder)


def scattered(x: Any, k: Any, at: Any) -> Any:
    """A cache that the model itself keeps at its full length, as torch's StaticCache is."""
    k = o.scatter(k, o.reshape(at, shape=(1, 1)), o.transpose(x, perm=(1, 0, 2)), axes=(1,))
    return o.reduce_sum(k, axes=(1,)), k


def test_a_cache_that_is_scattered_into_is_not_copied(tmp_path: Path) -> None:
    f32 = dtypes.float32
    graph = trace(scattered, [TensorType(f32, (2, 1, 8)), TensorType(f32, (2, 64, 8)),
                              TensorType(dtypes.int64, ())], ["x", "k", "at"])
    module = Module(graph, ("y", "keys"), donations=((1, 1),))
    model = runtime.load(build(run(module), tmp_path / "b"))
    k, x = np.zeros((2, 64, 8), np.float32), tokens(1)[:, :, :8].copy()
    model.run({"x": x, "k": k, "at": np.array(40)}, out={"keys": k})
    np.testing.assert_array_equal(k[:, 40:41], x)
    assert not k[:, :40].any() and not k[:, 41:].any()
    least = min(s.bytes for s in model.manifest.steps if "scatter" in s.label)
    assert isinstance(least, int) and least < 2 * 64 * 8


def test_an_onnx_decoder_whose_sizes_have_three_names(tmp_path: Path) -> None:
    """As exporters write it: past, new and total have names of their own."""
    proto = onnx.model(
        [onnx.node("k = Concat(past, x)", axis=1), onnx.node("t = Transpose(k)", perm=(0, 2, 1)),
         "s = MatMul(x, t)", "a = Mul(s, mask)", "y = MatMul(a, k)"],
        ["past f32 1 past 4", "x f32 1 new 4", "mask f32 1 1 total"],
        ["y f32 1 new 4", "k f32 1 total 4"])
    module = onnx.checked(proto)
    assert [str(e) for e in module.requires] == ["total == new + past"]
    xs = [onnx.random(1, n, 4, seed=n) for n in (3, 1, 2)]
    past, room = xs[0], np.zeros((1, 8, 4), np.float32)
    room[:, :3] = past
    model = runtime.load(build(run(run(module, "cache{max=8}")), tmp_path))
    for x in xs[1:]:
        at, end = past.shape[1], past.shape[1] + x.shape[1]
        mask = np.arange(8, dtype=np.float32).reshape(1, 1, 8)
        want, past = onnx.oracle(proto, {"past": past, "x": x, "mask": mask[..., :end]})
        got = model.run({"past": room, "x": x, "mask": mask, "position": np.array(at)},
                        out={"k": room})
        np.testing.assert_allclose(got["y"], want, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(room[:, :end], past)
