"""transpose.h against numpy, at sizes around the side of a square and the length of a chunk."""

from itertools import product
from pathlib import Path

import numpy as np

from tests.kernels.harness import call, compile_c, guarded, width

SOURCE = """
#include "prelude.h"
#define PARAMS , const float *restrict x_, const float *restrict z_, float *restrict y_, \\
    int64_t d_planes, int64_t d_a, int64_t d_b, int64_t d_xb
#define ARGS , x_, z_, y_, d_planes, d_a, d_b, d_xb
#pragma GCC diagnostic ignored "-Wunused-parameter"
static inline void add_up(const float *restrict acc, int64_t p, int64_t a, int64_t b,
                          int64_t count PARAMS)
{
    const int64_t at = (p * d_a + a) * d_b + b;
    for (int64_t j = 0; j < count; j++) y_[at + j] += acc[j] + z_[at + j];
}
static inline void copied(const uint16_t *restrict acc, int64_t p, int64_t a, int64_t b,
                          int64_t count PARAMS)
{
    memcpy((uint16_t *)y_ + (p * d_a + a) * 2 * d_b + b, acc, (size_t)count * 2);
}
#define GT_NAME plain_pairs
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_PLANES d_planes
#define GT_A d_a
#define GT_B d_b
#define GT_X(p) ((const uint16_t *)x_ + (p) * d_b * d_xb * 2)
#define GT_XB d_xb
#define GT_PAIRS
#define GT_EPILOGUE copied
#include "transpose.h"
void pairs(int t, int threads PARAMS);
void pairs(int t, int threads PARAMS) { plain_pairs(t, threads ARGS); }
#define GT_NAME plain
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_PLANES d_planes
#define GT_A d_a
#define GT_B d_b
#define GT_X(p) (x_ + (p) * d_b * d_xb)
#define GT_XB d_xb
#define GT_EPILOGUE add_up
#include "transpose.h"
void turned(int t, int threads PARAMS);
void turned(int t, int threads PARAMS) { plain(t, threads ARGS); }
"""

SIZES = (1, 3, 4, 7, 16, 17, 31, 64, 67, 130)


@width
def test_every_size(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE, tmp_path, flags)
    rng = np.random.default_rng(1)
    for n, (a, b) in enumerate(product(SIZES, SIZES)):
        planes, wider = 1 + n % 3, n % 2 * 3
        x = rng.standard_normal((planes, b, a + wider), np.float32)
        z = rng.standard_normal((planes, a, b), np.float32)
        y = guarded(np.ones_like(z))  # once each: what is taken twice is handed over once
        call(library.turned, guarded(x.reshape(-1)[:x.size - wider]), guarded(z), y, planes, a, b,
             a + wider, threads=1 + n % 4)
        assert (y == 1 + (x[..., :a].swapaxes(1, 2) + z)).all(), (planes, a, b)


@width
def test_pairs_of_every_size(tmp_path: Path, flags: list[str]) -> None:
    """Elements are moved as bits: of all 32, those of NaN too."""
    library = compile_c(SOURCE, tmp_path, flags)
    rng = np.random.default_rng(2)
    for n, (a, b) in enumerate(product(SIZES, SIZES)):
        planes, wider = 1 + n % 3, n % 2 * 3
        x = rng.integers(0, 1 << 32, (planes, b, a + wider), np.uint32)
        y = guarded(np.zeros((planes, a, b), np.uint32))
        call(library.pairs, guarded(x.reshape(-1)[:x.size - wider]), y, y, planes, a, b, a + wider,
             threads=1 + n % 4)
        assert (y == x[..., :a].swapaxes(1, 2)).all(), (planes, a, b)
