"""rows.h: rows of any length, to their last byte and no further; numbers as one by one."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.harness import call, compile_c, guarded, width

SOURCE = """
#include "rows.h"
#define EACH(kind, T) \\
    void of_##kind(int t, int threads, int32_t *row, const T *p, int64_t n); \\
    void of_##kind(int t, int threads, int32_t *row, const T *p, int64_t n) \\
    { (void)t, (void)threads; gt_row_of_##kind(row, p, n); } \\
    void to_##kind(int t, int threads, T *p, const int32_t *row, int64_t n); \\
    void to_##kind(int t, int threads, T *p, const int32_t *row, int64_t n) \\
    { (void)t, (void)threads; gt_row_to_##kind(p, row, n); } \\
    void cast_##kind(int t, int threads, T *p, const float *row, int64_t n); \\
    void cast_##kind(int t, int threads, T *p, const float *row, int64_t n) \\
    { (void)t, (void)threads; gt_row_cast_##kind(p, row, n); } \\
    void round_##kind(int t, int threads, T *p, const float *row, int64_t n, int64_t zero); \\
    void round_##kind(int t, int threads, T *p, const float *row, int64_t n, int64_t zero) \\
    { (void)t, (void)threads; gt_row_round_##kind(p, row, n, (int32_t)zero); }
EACH(u8, uint8_t)
EACH(i8, int8_t)
void cast_bf16(int t, int threads, uint16_t *p, const float *row, int64_t n);
void cast_bf16(int t, int threads, uint16_t *p, const float *row, int64_t n)
{ (void)t, (void)threads; gt_row_cast_bf16(p, row, n); }
void cast_f16(int t, int threads, uint16_t *p, const float *row, int64_t n);
void cast_f16(int t, int threads, uint16_t *p, const float *row, int64_t n)
{ (void)t, (void)threads; gt_row_cast_f16(p, row, n); }
void of_f16(int t, int threads, float *row, const uint16_t *p, int64_t n);
void of_f16(int t, int threads, float *row, const uint16_t *p, int64_t n)
{ (void)t, (void)threads; gt_row_of_f16(row, p, n); }
"""
EDGES = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.9, -0.9, 127.0, 127.9, 128.0, -128.0,
         -128.9, -129.0, 254.9, 255.0, 255.9, 256.0, 3e9, -3e9, 5e9, 1e30, -1e30, 1.5, -1.5,
         2.5, 0.5, -0.5, 126.5, 127.5, -127.5, -128.5, 254.5, 255.5]
KINDS = {"u8": (np.uint8, 0, 255), "i8": (np.int8, -128, 127)}


@width
def test_rows(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE, tmp_path, [*flags, "-fno-math-errno"])
    rng = np.random.default_rng(0)
    for n in (1, 7, 8, 15, 16, 17, 24, 31, 33, 50):
        for name, (kind, low, high) in KINDS.items():
            bytes_ = rng.integers(low, high + 1, n).astype(kind)
            row = guarded(np.zeros(256, np.int32))
            call(getattr(library, f"of_{name}"), row, guarded(bytes_), n)
            np.testing.assert_array_equal(row[:n], bytes_)
            back = guarded(np.zeros(n, kind))
            call(getattr(library, f"to_{name}"), back, row, n)
            np.testing.assert_array_equal(back, bytes_)
            floats = np.zeros(256, np.float32)
            floats[:n] = np.resize(np.roll(EDGES, -n), n)
            call(getattr(library, f"cast_{name}"), back, guarded(floats), n)
            want = np.nan_to_num(floats[:n], nan=0.0, posinf=1e9, neginf=-1e9)
            np.testing.assert_array_equal(back, np.trunc(np.clip(want, low, high)).astype(kind))
            for zero in (0, 1, low, high, 77):
                call(getattr(library, f"round_{name}"), back, guarded(floats), n, zero)
                moved = np.where(np.isnan(floats[:n]), 0, np.rint(want) + zero)
                np.testing.assert_array_equal(back, np.clip(moved, low, high).astype(kind))


# numbers that rounding carries on, ties, the largest ones, subnormal ones and NaN of any bits
BITS = [0x3f808000, 0x3f818000, 0x3f807fff, 0x3f808001, 0x7f7fffff, 0xff7fffff, 0x007fffff,
        0x00000001, 0x80008000, 0x00018000, 0x7f800001, 0xffc00000, 0x7fffffff, 0x7f800000, 0]


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3", "x86-64-v4", "native"])
def test_floats_to_bfloat16(tmp_path: Path, march: str) -> None:
    library = compile_c(SOURCE, tmp_path, [f"-march={march}"])
    rng = np.random.default_rng(0)
    for n in (1, 7, 15, 16, 17, 32, 33, 50, 96):
        for special in (BITS, []):
            row = rng.standard_normal(n).astype(np.float32)
            some = np.resize(np.roll(np.array(special, np.uint32), -n), n)[:len(special)]
            row.view(np.uint32)[:len(some)] = some
            out = guarded(np.zeros(n, np.uint16))
            call(library.cast_bf16, out, guarded(row), n)
            with np.errstate(invalid="ignore", over="ignore"):
                want = row.astype(ml_dtypes.bfloat16)
            number = ~np.isnan(row)
            np.testing.assert_array_equal(out[number], want.view(np.uint16)[number])
            assert np.isnan(out.view(ml_dtypes.bfloat16)[~number].astype(np.float32)).all()


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3", "native"])
def test_floats_to_float16_and_back(tmp_path: Path, march: str) -> None:
    library = compile_c(SOURCE, tmp_path, [f"-march={march}"])
    every = np.arange(1 << 16, dtype=np.uint16)
    floats = guarded(np.zeros(every.size - 3, np.float32))
    call(library.of_f16, floats, guarded(every[3:]), every.size - 3)
    np.testing.assert_array_equal(floats, every[3:].view(np.float16).astype(np.float32))
    for n in (1, 7, 8, 9, 15, 16, 17, 50, 4099):
        row = np.random.default_rng(n).integers(0, 1 << 32, n, np.uint32).view(np.float32)
        row[:n // 2] = np.resize(every[16:].view(np.float16), n // 2) * np.float32(1 + 2 ** -11)
        out = guarded(np.zeros(n, np.uint16))
        call(library.cast_f16, out, guarded(row), n)
        with np.errstate(invalid="ignore", over="ignore"):
            want = row.astype(np.float16)
        np.testing.assert_array_equal(out.view(np.float16), want)
        np.testing.assert_array_equal(np.signbit(out.view(np.float16)), np.signbit(row))
