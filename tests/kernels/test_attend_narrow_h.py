"""attend.h with keys and values of 16 or 8 bits, and with heads that are read together."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.harness import LANES, Array, call, compile_c, guarded, lanes, width
from tests.kernels.test_attend_h import INSTANCE, SOURCE, Case, Kind, attention, operands

CASES = [
    Case(1, 1, 1, 1, 1), Case(1, 37, 16, 5, 4, 4), Case(1, 70, 64, 64, 8, 4), Case(2, 33, 7, 70),
    Case(3, 65, 32, 96, 4, 2), Case(1, 41, 80, 32, 8, 8), Case(5, 31, 20, 33, 4, 2),
    Case(15, 65, 64, 64, 4, 4), Case(29, 14, 9, 40),
]
TYPES: dict[str, tuple[Any, str, str]] = {
    "f32": (np.float32, "float", ""),
    "bf16": (ml_dtypes.bfloat16, "uint16_t", "#define GT_HALF GT_BFLOAT16\n"),
    "f16": (np.float16, "uint16_t", "#define GT_HALF GT_FLOAT16\n"),
    "i8": (np.int8, "int8_t", "#define GT_BYTES\n#define GT_KEY_STEP 2\n#define GT_V_STEP 1\n"
           "#define GT_KEY_SCALES(b) (f_ + (b) / d_shared * d_t * 2)\n"
           "#define GT_V_SCALES(b) (g_ + (b) / d_shared * d_t)\n")}
KINDS = {"plain": Kind(14), "causal": Kind(causal=1), "masked": Kind(6, masked=1)}


def source(kind: str, together: int) -> str:
    """The template for this type, as functions PLAIN_2 and so on."""
    _, number, macros = TYPES[kind]
    head = SOURCE.replace("const float *restrict k_, const float *restrict v_",
                          f"const {number} *restrict k_, const {number} *restrict v_, "
                          "const float *restrict f_, const float *restrict g_")
    head = head.replace("ARGS , q_, k_, v_,", "ARGS , q_, k_, v_, f_, g_,")
    more = f"{macros}#define GT_TOGETHER {together}\n#define GT_EPILOGUE"
    return head + LANES + "".join(k.source(name).replace("#define GT_EPILOGUE", more)
                                  for name, k in KINDS.items())


def stored(kind: str, x: Array, step: int) -> tuple[Array, Array, Array]:
    """x as it is stored, the factors of its rows that are `step` apart, and what both mean."""
    if kind != "i8":
        kept = x.astype(TYPES[kind][0])
        return kept, np.zeros(1, np.float32), kept.astype(np.float32)
    factors = np.full((*x.shape[:-1], step), np.nan, np.float32)
    factors[..., 0] = np.abs(x).max(-1) / 127
    kept = np.rint(x / factors[..., :1]).astype(np.int8)
    return kept, factors, kept.astype(np.float32) * factors[..., :1]


@pytest.mark.part(6)
@width
@pytest.mark.parametrize("together", [1, pytest.param(2, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("kind", TYPES)
def test_it_reads_what_is_stored(kind: str, together: int, tmp_path: Path,
                                 flags: list[str]) -> None:
    library = compile_c(source(kind, together), tmp_path, [*flags, "-fopenmp"])
    for name, how in KINDS.items():
        for case in (c for c in CASES if c.shared % together == 0):
            q, k, v, mask = operands(case, how)
            (k, f, wide_k), (v, g, wide_v) = stored(kind, k, 2), stored(kind, v, 1)
            want = attention(q, *(np.repeat(x, case.shared, axis=0) for x in (wide_k, wide_v)),
                             mask, how)
            for threads in (1, 3):
                got = run(library, name, case, how.mr, [q, k, v, f, g, mask], threads)
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=4e-6,
                                           err_msg=f"{name} {case} {threads}")


def run(library: Any, name: str, case: Case, mr: int, arrays: list[Array], threads: int) -> Array:
    nr = 2 * lanes(library)
    wide, deep = -(-case.t // nr) * nr, -(-case.dv // nr) * nr
    room = 4 * case.t if case.s < 4 else (
        case.d * wide + case.t * deep + mr * (wide + 16 + deep))
    share = -(-room // 16) * 16
    y = guarded(np.zeros((case.heads, case.s, case.dv), np.float32))
    work = np.full(threads * share + 16, np.nan, np.float32)
    work = work[-work.ctypes.data % 64 // 4:][:threads * share]
    call(getattr(library, name), *map(guarded, arrays), y, work, case.s, case.t, case.d, case.dv,
         case.heads, case.shared, share, threads=threads)
    return y


def test_the_instance_has_a_place_for_more_macros() -> None:
    assert INSTANCE.count("#define GT_EPILOGUE") == 1
