"""winograd.h of integers: equal to a plain convolution, whatever the numbers within its bounds."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import LANES, Array, call, compile_c, guarded, lanes, width
from tests.kernels.test_winograd_h import CASES, SOURCE, instance

ROWS = {2: [(1, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 1)],
        4: [(1, 0, 0), (1, 1, 1), (1, -1, 1), (1, 2, 4), (1, -2, 4), (0, 0, 1)]}
KINDS = {1: (np.uint8, 0, 256), 2: (np.int16, -255, 256)}


def source(text: str, kind: int) -> str:
    """The float template's test source with the types of integers."""
    element = {1: "uint8_t", 2: "int16_t"}[kind]
    for old, new in (("float *restrict x_", f"{element} *restrict x_"),
                     ("float *restrict w_", "int16_t *restrict w_"),
                     ("float *restrict y_", "int32_t *restrict y_"),
                     ("float *restrict acc", "int32_t *restrict acc"),
                     ("float *y =", "int32_t *y ="),
                     ("#define GT_TILE", f"#define GT_INTEGERS {kind}\n#define GT_TILE")):
        text = text.replace(old, new)
    return text


def transform_weights(w: Array, m: int, nr: int) -> Array:
    """w [3][3][c][o] -> U [n·n][ceil(o/nr)][ceil(c/2)][nr][2]"""
    g = np.array(ROWS[m])
    u = np.einsum("ir,rsco,js->ijco", g, w.astype(np.int64), g).reshape(-1, *w.shape[2:])
    points, c, o = u.shape
    padded = np.zeros((points, -(-c // 2) * 2, -(-o // nr) * nr), np.int16)
    padded[:, :c, :o] = u
    split = padded.reshape(points, padded.shape[1] // 2, 2, -1, nr)
    return np.ascontiguousarray(split.transpose(0, 3, 1, 4, 2))


def workspace(m: int, c: int, o: int, group: int, lanes: int, nr: int) -> int:
    cp, op = -(-c // (2 * lanes)) * lanes, -(-o // nr) * nr
    return (m + 2) ** 2 * (group * (cp + 16) + 16 + group * (op + 16) + 16)


def check(library, m, kind, case, threads, extreme) -> None:
    n, oh, ow, c, o, group = case
    rng, (element, low, high) = np.random.default_rng(c), KINDS[kind]
    x = rng.integers(low, high, (n, oh + 2, ow + 2, c)).astype(element)
    w = rng.integers(-128, 128, (3, 3, c, o)).astype(np.int8)
    if extreme:
        x, w = np.full_like(x, high - 1), np.full_like(w, -128)
    nr = 2 * lanes(library)
    words = -(-workspace(m, c, o, group, lanes(library), nr) // 16) * 16
    y, work = guarded(np.zeros((n, oh, ow, o), np.int32)), guarded(
        np.full(threads * words, np.nan, np.float32))
    call(library.any, guarded(x), guarded(transform_weights(w, m, nr)), y, work,
         n, oh, ow, c, o, group, words, threads=threads)
    expected = sum(np.einsum("nhwc,co->nhwo", x[:, r:r + oh, s:s + ow].astype(np.int64), w[r, s])
                   for r, s in np.ndindex(3, 3))
    np.testing.assert_array_equal(y, expected)


@pytest.mark.part(8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", ROWS)
@width
def test_sums_are_exact(tmp_path: Path, flags: list[str], m: int, kind: int) -> None:
    library = compile_c(source(SOURCE + instance(m, "any"), kind) + LANES, tmp_path, flags)
    for case in CASES:
        for threads in (1, 3):
            check(library, m, kind, case, threads, False)
        check(library, m, kind, case, 1, True)
