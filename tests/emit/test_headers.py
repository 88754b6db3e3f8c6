"""Which kernel headers come along with the emitted files."""

from __future__ import annotations

import pytest

from graphtool.emit.c import used_headers


@pytest.mark.parametrize(("macros", "more"), [
    ((), set()), (("GT_HALF",), {"half.h"}), (("GT_HALF", "GT_PAIRS"), {"half.h", "bf16.h"})])
def test_only_what_the_macros_want(macros: tuple[str, ...], more: set[str]) -> None:
    text = "".join(f"#define {m} 1\n" for m in macros) + '#include "gemm.h"\n'
    assert set(used_headers([text])) == {"gemm.h", "tile.h", "prelude.h"} | more


def test_a_barrier_only_where_threads_share_tiles() -> None:
    assert "runtime.h" not in used_headers(['#include "winograd.h"'])
    assert "runtime.h" in used_headers(['#define GT_SHARED 1\n#include "winograd.h"'])
