"""winograd.h against a plain convolution in float64."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import LANES, Array, call, compile_c, guarded, lanes, pack, width

SIZES = ["n", "oh", "ow", "c", "o", "group"]
SOURCE = """
#include "prelude.h"
#ifdef _OPENMP
#include <omp.h>
#endif
#define PARAMS , const float *restrict x_, const float *restrict w_, float *restrict y_, \\
    float *restrict work_, int64_t d_n, int64_t d_oh, int64_t d_ow, int64_t d_c, int64_t d_o, \\
    int64_t d_group, int64_t d_work
#define ARGS , x_, w_, y_, work_, d_n, d_oh, d_ow, d_c, d_o, d_group, d_work
#pragma GCC diagnostic ignored "-Wunused-parameter"
static inline void add_up(const float *restrict acc, int64_t n, int64_t oh, int64_t ow, int64_t o,
                          int64_t count PARAMS)
{
    float *y = y_ + ((n * d_oh + oh) * d_ow + ow) * d_o + o;
    for (int64_t j = 0; j < count; j++) y[j] += acc[j];
}
"""
INSTANCE = """
{shared}
#define GT_NAME {name}_share
#define GT_TILE {m}
#define GT_MR 14
#define GT_NV 2
#define GT_GROUP {group}
#define GT_BATCH {n}
#define GT_OH {oh}
#define GT_OW {ow}
#define GT_C {c}
#define GT_O {o}
#define GT_X x_
#define GT_XN ((d_oh + 2) * (d_ow + 2) * d_c)
#define GT_XH ((d_ow + 2) * d_c)
#define GT_XW d_c
#define GT_W w_
#define GT_WORK(t) (work_ + (t) * d_work)
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_EPILOGUE add_up
#include "winograd.h"
"""
EXPORT = """
void {name}(int t, int threads PARAMS);
void {name}(int t, int threads PARAMS) {{ {name}_share(t, threads ARGS); }}
"""
REGION = """
void {name}{count}(int t, int threads PARAMS);
void {name}{count}(int t, int threads PARAMS)
{{
    (void)t, (void)threads;
#pragma omp parallel num_threads({count})
    {name}_share(omp_get_thread_num(), omp_get_num_threads() ARGS);
}}
"""
# batch, output rows and columns, input and output channels, tiles a group
CASES = [
    (1, 1, 1, 1, 1, 1),
    (1, 4, 4, 16, 32, 4),
    (2, 7, 5, 19, 37, 3),
    (1, 14, 14, 40, 64, 28),
    (3, 6, 9, 3, 20, 7),
    (1, 13, 29, 33, 70, 14),
]


def instance(m: int, name: str, case: tuple[int, ...] | None = None, shared: bool = False,
             groups: int = 1) -> str:
    values = [f"d_{s}" for s in SIZES] if case is None else case
    wait = '#define GT_PHASE(p)\n#define GT_WAIT _Pragma("omp barrier")'
    more = (f"#define GT_SHARED\n#define GT_COMMON work_\n{wait}" if shared else
            f"#define GT_GROUPS {groups}")
    text = INSTANCE.format(name=name, m=m, shared=more,
                           **dict(zip(SIZES, values, strict=True)))
    return text + ("".join(REGION.format(name=name, count=n) for n in (1, 2, 3)) if shared
                   else EXPORT.format(name=name))


ROWS = {2: [(1, 0, 0), (Fraction(1, 2),) * 3, (Fraction(1, 2), Fraction(-1, 2), Fraction(1, 2)),
            (0, 0, 1)],
        4: [(Fraction(1, 4), 0, 0), (Fraction(-1, 6),) * 3,
            (Fraction(-1, 6), Fraction(1, 6), Fraction(-1, 6)),
            (Fraction(1, 24), Fraction(1, 12), Fraction(1, 6)),
            (Fraction(1, 24), Fraction(-1, 12), Fraction(1, 6)), (0, 0, 1)]}


def transform_weights(w: Array, m: int, nr: int) -> Array:
    """w [3][3][c][o] -> U [n·n][ceil(o/nr)][c][nr]"""
    g = np.array([[float(v) for v in row] for row in ROWS[m]])
    u = np.einsum("ir,rsco,js->ijco", g, w.astype(np.float64), g)
    return pack(u.reshape(-1, *w.shape[2:]).astype(np.float32), nr)


def workspace(m: int, c: int, o: int, group: int, lanes: int, nr: int) -> int:
    """Floats of one thread's workspace: the formula at the head of winograd.h."""
    cp, op = -(-c // lanes) * lanes, -(-o // nr) * nr
    return (m + 2) ** 2 * (group * (cp + 16) + 16 + group * (op + 16) + 16)


def check(library, names, m, case, threads, group=None, groups=1):
    n, oh, ow, c, o, own_group = case
    group = group or own_group
    rng = np.random.default_rng(oh * 100 + c)
    x = rng.standard_normal((n, oh + 2, ow + 2, c)).astype(np.float32)
    w = rng.standard_normal((3, 3, c // groups, o)).astype(np.float32)
    nr = 2 * lanes(library)
    floats = -(-workspace(m, c, o, group, lanes(library), nr) // 16) * 16
    y = guarded(np.zeros((n, oh, ow, o), np.float32))
    work = guarded(np.full(threads * floats, np.nan, np.float32))
    for name in names:
        call(getattr(library, name), guarded(x), guarded(transform_weights(w, m, nr)), y, work,
             n, oh, ow, c, o, group, floats, threads=threads)
    parts = x.reshape(*x.shape[:3], groups, -1).astype(np.float64)
    apart = w.reshape(3, 3, -1, groups, o // groups)
    expected = sum(np.einsum("nhwgc,cgo->nhwgo", parts[:, r:r + oh, s:s + ow], apart[r, s])
                   for r, s in np.ndindex(3, 3)).reshape(y.shape)
    worst = np.abs(y - expected).max() / np.sqrt(9 * c)
    assert worst < {2: 4e-6, 4: 5e-5}[m], (names, case, worst)


@pytest.mark.part(6)
@pytest.mark.parametrize("m", [2, 4])
@width
def test_groups_of_tiles(tmp_path: Path, flags: list[str], m: int) -> None:
    text = SOURCE + instance(m, "any") + instance(m, "fixed", CASES[5]) + LANES
    library = compile_c(text, tmp_path, flags)
    for threads in (1, 2, 3):
        for case in CASES:
            check(library, ["any"], m, case, threads)
        check(library, ["fixed"], m, CASES[5], threads)


@pytest.mark.part(2)
@width
def test_groups_of_channels(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE + instance(4, "any", groups=3) + LANES, tmp_path, flags)
    wide = 2 * lanes(library)
    for threads in (1, 2):
        for case in ((1, 9, 6, 3, 3 * wide, 5), (2, 5, 7, 57, 6 * wide, 14)):
            check(library, ["any"], 4, case, threads, groups=3)


@pytest.mark.parametrize("m", [2, 4])
def test_shared_input(tmp_path: Path, m: int) -> None:
    library = compile_c(SOURCE + instance(m, "any", shared=True) + LANES, tmp_path,
                        ["-march=native", "-fopenmp"])
    for threads in (1, 2, 3):
        for case in CASES:
            tiles = case[0] * -(-case[1] // m) * -(-case[2] // m)
            check(library, [f"any{threads}"], m, case, 1, tiles)


@pytest.mark.part(2)
@width
def test_clang(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE + instance(4, "any") + LANES, tmp_path, flags, "clang")
    for case in CASES:
        check(library, ["any"], 4, case, 2)
