"""Attention of float32 by parts on a matrix unit, compiled: by its own tiles where this machine has
them, by tiles in plain C, and by the multiply-adds that stand in for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.plan import Plan, chosen_plan
from graphtool.ir.trace import trace
from graphtool.kernels import headers
from graphtool.kernels.attend_parts import ATTEND_PARTS
from graphtool.kernels.choice.choose import choose
from graphtool.kernels.choice.rules import rules_of
from graphtool.kernels.choice.sites import Attention
from graphtool.target import named
from tests.lower.test_amx import TARGETS, Array

# tiles in plain C: tdpbf16ps takes subnormal numbers for 0
PLAIN = r"""
#define GT_AMX
static _Thread_local char gt_plain[8][1024];
GT_NOINLINE void gt_plain_copy(char *to, int64_t ldt, const char *from, int64_t ldf)
{
    for (int i = 0; i < 16; i++) memcpy(to + i * ldt, from + i * ldf, 64);
}
GT_INLINE float gt_plain_number(const char *p)
{
    uint16_t h;
    memcpy(&h, p, 2);
    return (h & 0x7f80) ? gt_bf16_to_f32(h) : 0.0f;
}
GT_NOINLINE void gt_plain_dot(int sum, int a, int b)
{
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float s;
            memcpy(&s, gt_plain[sum] + 64 * m + 4 * n, 4);
            for (int k = 0; k < 32; k++)
                s += gt_plain_number(gt_plain[a] + 64 * m + 2 * k)
                     * gt_plain_number(gt_plain[b] + k / 2 * 64 + 4 * n + k % 2 * 2);
            memcpy(gt_plain[sum] + 64 * m + 4 * n, &s, 4);
        }
}
#define GT_TILE_ZERO(t) memset(gt_plain[t], 0, 1024)
#define GT_TILE_LOAD(t, from, stride) gt_plain_copy(gt_plain[t], 64, (const char *)(from), stride)
#define GT_TILE_STORE(t, to) gt_plain_copy((char *)(to), GT_COLUMNS * 4, gt_plain[t], 64)
#define GT_TILE_DOT(kind, sum, a, b) gt_plain_dot(sum, a, b)
#define gt_amx_shape(rows) (void)(rows)
#define gt_amx_done() (void)0
GT_INLINE int gt_in_tiles(const int kind) { return kind == GT_BFLOAT16; }
GT_INLINE void gt_amx_run(const int kind, const int two, const int wide, const char *a,
                          const char *second, int64_t lda, int64_t rows, const char *b,
                          int64_t depth, const char *ahead, int64_t step)
{
    (void)kind, (void)two, (void)wide, (void)a, (void)second, (void)lda, (void)rows, (void)b;
    (void)depth, (void)ahead, (void)step;
}
"""
HOWS = (*TARGETS, "plain")


def compiled(x: dict[str, Array], how: dict[str, Any], plan: Plan | None, by: str,
             folder: Path) -> Path:
    """A build for such operands; by `attend` without a plan of parts."""
    text, target = headers.text, replace(TARGETS.get(by, TARGETS["vectors"]), threads=2)
    types = [TensorType(dtypes.float32, a.shape) for a in x.values()]
    op = o.attend if plan is None else o.attend_parts
    graph = trace(lambda *xs: op(*xs, plan=plan, **{"scale": 0.5, **how}), types, list(x))
    if by == "plain":
        target = replace(target, lanes=16)
    done = passes.run(Module(graph, ("y",)), "fold,fuse", supply={"target": target})
    with pytest.MonkeyPatch.context() as patch:
        if by == "plain":
            patch.setattr(headers, "text", lambda name: in_plain_c(text(name) or "")
                          if name == "amx.h" else text(name))
        return build(done, folder, target=target)


def results(build: Path, x: dict[str, Array]) -> list[Array]:
    """On one thread and on two."""
    return [next(iter(graphtool.load(build, threads=n)(**x).values())) for n in (1, 2)]


def in_plain_c(text: str) -> str:
    begin = text.index("#if defined __AMX_TILE__")
    return text[:begin] + PLAIN + "#if 0\n" + text[begin:].partition("\n")[2].partition("\n")[2]


def exact(x: dict[str, Array], *, scale: float = 0.5, causal: bool = False,
          softcap: float = 0.0) -> tuple[Array, Array]:
    """Attention in float64, and the same of the magnitudes of the values."""
    q, k, v = (x[n].astype(np.float64) for n in "qkv")
    k, v = (np.repeat(a, len(q) // len(a), axis=0) for a in (k, v))
    with np.errstate(invalid="ignore", over="ignore"):
        scores = (q[:, :, None] * k[:, None]).sum(-1) * scale
        scores = np.tanh(scores / softcap) * softcap if softcap else scores
        scores = scores + x["m"] if "m" in x else scores
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        e = np.exp(scores - np.where(np.isneginf(top), 0, top))
        total = e.sum(-1, keepdims=True)
        e /= np.where(total == 0, 1, total)
        return tuple((e[..., None] * a[:, None]).sum(-2) for a in (v, np.abs(v)))


# queries, keys, depth, values, heads, mask, how, parts
CASES: list[tuple[Any, ...]] = [
    (37, 37, 64, 64, (3, 3), None, {}, 3), (70, 33, 24, 40, (4, 2), None, {"causal": True}, 3),
    (33, 140, 40, 16, (2, 2), (33, 140), {"softcap": 3.0}, 2),
    (40, 47, 33, 7, (2, 2), (2, 40, 1), {"scale": -0.25}, 3),
    (170, 290, 9, 3, (1, 1), None, {"causal": True}, 3), (1, 1, 1, 1, (2, 1), None, {}, 3)]


@pytest.mark.parametrize(("queries", "keys", "depth", "values", "heads", "mask", "how", "parts",
                          "by"), [
    *((*CASES[i], "tiles") for i in (0, 2, 4, 5)), *((*CASES[i], "plain") for i in (1, 3)),
    (*CASES[3], "vectors"),
    *(pytest.param(*CASES[i], by, marks=pytest.mark.slow) for i, by in (
        (1, "tiles"), (3, "tiles"), (2, "plain"), (4, "plain"), (1, "vectors")))], ids=str)
def test_attention(queries: int, keys: int, depth: int, values: int, heads: tuple[int, int],
                   mask: tuple[int, ...] | None, how: dict[str, Any], parts: int, by: str,
                   tmp_path: Path) -> None:
    """Blocks that are not full, shared keys, masks of queries and of all, and a row that sees
    nothing; more keys than are taken at a time."""
    rng = np.random.default_rng(queries + keys)
    shapes = [(heads[0], queries, depth), (heads[1], keys, depth), (heads[1], keys, values)]
    x = {n: rng.standard_normal(s).astype(np.float32) for n, s in zip("qkv", shapes, strict=True)}
    if mask:
        noise = rng.standard_normal(mask).astype(np.float32)
        x["m"] = np.where(noise > 1, np.float32(-np.inf), noise)
        x["m"][..., 3, :] = -np.inf
    want, size = exact(x, **how)
    for got in results(compiled(x, how, ATTEND_PARTS.plan(parts=parts), by, tmp_path), x):
        assert (np.abs(got - want) <= {3: 3e-6, 2: 1e-4}[parts] * size).all()
        assert not mask or not got[:, 3].any()


def adversaries() -> dict[str, dict[str, Array]]:
    """Wide exponents, values that cancel, tiny and large values, weights of any size beside values
    that make up for them, keys that are hidden."""
    rng = np.random.default_rng(3)

    def normal(*shape: int, by: float = 0) -> Array:
        return (rng.standard_normal(shape) * 2.0 ** (by * rng.standard_normal(shape))
                ).clip(-2.0 ** 28, 2.0 ** 28).astype(np.float32)
    q, k, v = normal(2, 45, 33), normal(2, 150, 33), normal(2, 150, 20)
    turned = v.copy()
    turned[:, 75:] = -v[:, :75] * np.float32(1 + 2 ** -20)
    alike = np.concatenate([k[:, :75], k[:, :75]], 1)
    falling = np.linspace(0, 80, 150, dtype=np.float32)[None, None]
    hidden = np.where(normal(45, 150) > 0.5, np.float32(-np.inf), np.float32(0))
    none = np.zeros((45, 150), np.float32)
    made_up = (v * np.exp(np.minimum(falling, 18)).swapaxes(1, 2)).astype(np.float32)
    cases = {
        "normal": (q, k, v, none), "large scores": (q * 10, k, v, none),
        "wide": (normal(2, 45, 33, by=8) / 64, normal(2, 150, 33, by=3),
                 normal(2, 150, 20, by=20), none),
        "cancelling": (q, alike, turned, none), "large values": (q, k, v * 1e7, none),
        "tiny": (q * 1e-30, k * 1e20, v * 1e-41, none), "hidden": (q, k, v, hidden),
        "small weights": (q, k, made_up, np.broadcast_to(-falling[0], none.shape))}
    return {name: dict(zip("qkvm", (a.astype(np.float32) for a in case), strict=True))
            for name, case in cases.items()}


@pytest.mark.parametrize("by", ["tiles", pytest.param("plain", marks=pytest.mark.slow)])
def test_the_error_is_that_of_multiply_adds(by: str, tmp_path: Path) -> None:
    """Against float64, relative to the magnitudes that are added: at most 1.5 times that of the
    kernel of multiply-adds, or four units in the last place."""
    cases = adversaries()
    fma, parts = (compiled(cases["normal"], {}, plan, by, tmp_path / f"{i}")
                  for i, plan in enumerate((None, ATTEND_PARTS.plan())))
    for name, x in cases.items():
        want, size = exact(x)
        (own, other), (usual, _) = results(parts, x), results(fma, x)
        errors = [(np.abs(y - want) / np.maximum(size, 1e-45)).max() for y in (own, usual)]
        assert errors[0] <= max(1.5 * errors[1], 2.0 ** -22), name
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("by", HOWS)
def test_numbers_that_do_not_split(by: str, tmp_path: Path) -> None:
    """Of queries, keys, values or a mask: what the definition gives of them is given."""
    rng = np.random.default_rng(4)
    shapes = {"q": (2, 40, 8), "k": (2, 140, 8), "v": (2, 140, 6), "m": (40, 140)}
    plain = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    model = compiled(plain, {}, ATTEND_PARTS.plan(), by, tmp_path)
    for name, at in (("q", (1, 3, 5)), ("k", (0, 9, 2)), ("v", (1, 7, 4)), ("m", (5, 6))):
        for value in (np.inf, -np.inf, np.nan, 1e12, -1e12):
            x = {n: a.copy() for n, a in plain.items()}
            x[name][at] = value
            want, size = exact(x)
            finite = np.isfinite(want)
            for got in results(model, x):
                np.testing.assert_array_equal(got[~finite], want[~finite])
                error = np.abs(got[finite] - want[finite])
                assert np.isfinite(got[finite]).all() and (error <= 3e-6 * size[finite]).all()


@pytest.mark.parametrize(("site", "precision", "plan"), [
    (Attention(12, 128, 128, 64, 64), "default", "attend_parts{parts=3}"),
    (Attention(6, 1500, 1500, 64, 64), "default", "attend_parts{parts=3}"),
    (Attention(6, 1500, 1500, 64, 64), "high", "attend_parts{parts=2}"),
    (Attention(6, 1500, 1500, 64, 64, keys=dtypes.float16), "default", "attend{"),
    (Attention(12, 1, 1500, 64, 64), "default", "attend{"),
    (Attention(12, 128, 1500, 64, 64, fixed=False), "default", "attend{"),
    (Attention(12, 16, 16, 64, 64), "default", "attend{")])
def test_what_is_chosen(site: Any, precision: str, plan: str) -> None:
    def chosen(march: str) -> str:
        return str(chosen_plan(choose(site, named(march, 1), rules_of(precision))))
    assert chosen("amx").startswith(plan)
    assert "parts" not in chosen("x86-64-v4")


def test_strict_does_without() -> None:
    site = Attention(6, 1500, 1500, 64, 64)
    assert not choose(site, named("amx", 1), rules_of("strict")).us
