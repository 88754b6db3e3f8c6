"""attend.h against the formula in float64: sizes that fill no tile, masks, shared heads."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import LANES, Array, call, compile_c, guarded, lanes, width


@dataclass(frozen=True)
class Case:
    """`shared` query heads use the same keys and values."""

    s: int
    t: int
    d: int = 8
    dv: int = 8
    heads: int = 2
    shared: int = 1


CASES = [
    Case(1, 1, 1, 1, 1),
    Case(1, 37, 16, 5),
    Case(2, 33, 7, 70),
    Case(3, 1, 4, 4),
    Case(1, 70, 64, 64, 4, 2),
    Case(3, 35, 32, 70, 2),
    Case(4, 4, 3, 2),
    Case(5, 31, 20, 33),
    Case(14, 32, 16, 16, 4, 2),
    Case(15, 65, 64, 64, 3, 3),
    Case(29, 14, 9, 40),
    Case(43, 43, 17, 12, 6, 3),
    Case(70, 129, 5, 3, 1),
    Case(9, 1700, 6, 40, 1),
    Case(1060, 1090, 3, 5, 1),
]

SOURCE = """
#include "prelude.h"
#define PARAMS , const float *restrict q_, const float *restrict k_, const float *restrict v_, \\
    const float *restrict m_, float *restrict y_, float *restrict w_, int64_t d_s, int64_t d_t, \\
    int64_t d_d, int64_t d_v, int64_t d_heads, int64_t d_shared, int64_t d_share
#define ARGS , q_, k_, v_, m_, y_, w_, d_s, d_t, d_d, d_v, d_heads, d_shared, d_share
#pragma GCC diagnostic ignored "-Wunused-parameter"
static inline void add_up(const float *restrict acc, int64_t b, int64_t s, int64_t d, int64_t count
                          PARAMS)
{
    for (int64_t j = 0; j < count; j++) y_[(b * d_s + s) * d_v + d + j] += acc[j];
}
"""
INSTANCE = """
#define GT_NAME {name}_share
#define GT_KEYS {keys}
#define GT_MR {mr}
#define GT_NV 2
#define GT_HEADS d_heads
#define GT_S d_s
#define GT_T d_t
#define GT_D d_d
#define GT_DV d_v
#define GT_Q(b) (q_ + (b) * d_s * d_d)
#define GT_KEY(b) (k_ + (b) / d_shared * d_t * d_d)
#define GT_V(b) (v_ + (b) / d_shared * d_t * d_v)
#define GT_LDQ d_d
#define GT_LDK d_d
#define GT_LDV d_v
#define GT_SCALE {scale}f
#define GT_SOFTCAP {softcap}f
#define GT_CAUSAL {causal}
#define GT_MASKED {masked}
#define GT_MASK(b, s) (m_ + ((b) * d_s + (s)) * {mask_row})
#define GT_MASK_STEP {step}
#define GT_WORK(t) (w_ + (t) * d_share)
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_EPILOGUE add_up
#include "attend.h"
void {name}(int t, int threads PARAMS);
void {name}(int t, int threads PARAMS) {{ {name}_share(t, threads ARGS); }}
"""


@dataclass(frozen=True)
class Kind:
    mr: int = 4
    keys: int = 0
    scale: float = 0.5
    softcap: float = 0.0
    causal: int = 0
    masked: int = 0
    step: int = 1

    def source(self, name: str) -> str:
        return INSTANCE.format(name=name, mask_row="d_t" if self.step else "1", **vars(self))


KINDS = {
    "plain": Kind(14), "narrow": Kind(5), "causal": Kind(causal=1), "capped": Kind(softcap=3.0),
    "chunks": Kind(14, 30), "causal_chunks": Kind(keys=512, causal=1),
    "capped_chunks": Kind(7, 64, softcap=3.0), "masked_chunks": Kind(keys=20, masked=1),
    "masked": Kind(masked=1), "causal_masked": Kind(6, causal=1, masked=1),
    "one_mask_a_row": Kind(masked=1, step=0), "negative": Kind(scale=-0.25),
}


def attention(q: Array, k: Array, v: Array, mask: Array, kind: Kind) -> Array:
    """[heads, s, d], [heads, t, d], [heads, t, dv] in float64; a row that sees nothing gives 0."""
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * kind.scale
    if kind.softcap:
        scores = kind.softcap * np.tanh(scores / kind.softcap)
    if kind.masked:
        scores = scores + mask
    if kind.causal:
        seen = np.tri(*scores.shape[1:], dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        top = scores.max(axis=2, keepdims=True)
        weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
        return weights @ v / np.maximum(weights.sum(axis=2, keepdims=True), 1e-300)


def operands(case: Case, kind: Kind) -> list[Array]:
    rng = np.random.default_rng([case.s, case.t, case.d])
    few = case.heads // case.shared
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in (
        (case.heads, case.s, case.d), (few, case.t, case.d), (few, case.t, case.dv)))
    mask = rng.standard_normal((case.heads, case.s, case.t if kind.step else 1))
    mask[rng.random(mask.shape) < 0.3] = -np.inf
    mask[0, 0] = -np.inf
    return [q, k, v, mask.astype(np.float32)]


def run(library, name: str, case: Case, kind: Kind, arrays: list[Array], threads: int) -> Array:
    nr = 2 * lanes(library)
    wide, deep = -(-case.t // nr) * nr, -(-case.dv // nr) * nr
    share = -(-(case.d * wide + case.t * deep + kind.mr * (wide + 16 + deep)) // 16) * 16
    y = guarded(np.zeros((case.heads, case.s, case.dv), np.float32))
    work = np.full(threads * share + 16, np.nan, np.float32)
    work = work[-work.ctypes.data % 64 // 4:][:threads * share]
    call(getattr(library, name), *map(guarded, arrays), y, work, case.s, case.t, case.d, case.dv,
         case.heads, case.shared, share, threads=threads)
    return y


@pytest.mark.part(6)
@pytest.mark.parametrize("name", KINDS)
@width
def test_attention(tmp_path: Path, flags: list[str], name: str) -> None:
    kind = KINDS[name]
    library = compile_c(SOURCE + kind.source(name) + LANES, tmp_path, [*flags, "-fopenmp"])
    for case in CASES:
        arrays = operands(case, kind)
        q, *kv, mask = arrays
        want = attention(q, *(np.repeat(x, case.shared, axis=0) for x in kv), mask, kind)
        for threads in (1, 3):
            got = run(library, name, case, kind, arrays, threads)
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6,
                                       err_msg=f"{name} {case} {threads}")


@pytest.mark.parametrize("kind", ["plain", "masked", "causal"])
def test_extremes(tmp_path: Path, kind: str) -> None:
    """Scores far apart give exact zeros and ones; a NaN stays in its row, and not in others."""
    library = compile_c(SOURCE + KINDS[kind].source(kind) + LANES, tmp_path,
                        ["-march=native", "-fopenmp"])
    case = Case(20, 50, 4, 6)
    q, k, v, mask = operands(case, KINDS[kind])
    mask[mask < 0] = 0
    q[0, 2] *= 1000
    got = run(library, kind, case, KINDS[kind], [q, k, v, mask], 1)
    np.testing.assert_allclose(got, attention(q, k, v, mask, KINDS[kind]), rtol=2e-4, atol=2e-5)
    huge = [q * np.float32(1e12), k, v, mask]  # the largest score has a weight of 1 all the same
    np.testing.assert_allclose(run(library, kind, case, KINDS[kind], huge, 1),
                               attention(*huge, KINDS[kind]), rtol=2e-4, atol=2e-5)
    q[0, 3, 1] = np.nan
    got = run(library, kind, case, KINDS[kind], [q, k, v, mask], 1)
    assert np.isnan(got).any(axis=2).nonzero() == ((0,), (3,)) and np.isnan(got[0, 3]).all()
    v[1, 0] = np.inf
    got = run(library, kind, case, KINDS[kind], [np.nan_to_num(q), k, v, mask], 1)
    assert np.isposinf(got[1, 0]).all()
