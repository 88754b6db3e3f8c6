"""Which kernel headers come along with the emitted files."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from graphtool import dtypes, kernels
from graphtool.emit.headers import called, used_headers
from graphtool.kernels import headers
from graphtool.loops.contract import CONTRACTS

ON_DEMAND = ("fields.h", "integers.h", "narrow.h", "rows.h", "special.h")
SUFFIXES = tuple(f"_{d.short}" for d in dtypes.TABLE)


@pytest.mark.parametrize(("macros", "more"), [
    ((), set()), (("GT_HALF",), {"half.h"}),
    (("GT_HALF", "GT_PAIRS"), {"half.h", "bf16.h", "square.h"})])
def test_only_what_the_macros_want(macros: tuple[str, ...], more: set[str]) -> None:
    text = "".join(f"#define {m} 1\n" for m in macros) + '#include "gemm.h"\n'
    plain = {"gemm.h", "gemm_hand.h", "gemm_tile.h", "gemm_loop.h", "operand.h", "template_begin.h",
             "template_end.h", "tile.h", "prelude.h", "compiler.h"}
    assert set(used_headers([text])) == plain | more


@pytest.mark.parametrize("name", sorted(n for n, c in CONTRACTS.items() if "c" in c.languages))
def test_a_header_reads_how_its_work_is_taken_as_its_contract_says(name: str) -> None:
    whole = used_headers([f'#include "{name}.h"\n'])
    text = "".join(t for h, t in whole.items() if not h.startswith("template_"))
    assert ("GT_PIECES" in text) == (CONTRACTS[name].grain == "shares")
    assert ("GT_WAIT" in text) == ("GT_PHASE" in text) == bool(CONTRACTS[name].phases)


@cache
def defined() -> dict[str, set[str]]:
    """Header → the functions that it defines, as the preprocessor sees them."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    text = "".join(f'#include "{h}"\n' for h in ("nest.h", *ON_DEMAND))
    folder = Path(kernels.__file__).parent / "c"
    done = subprocess.run(["gcc", "-E", *(f"-I{folder / part}" for part in headers.FOLDERS), "-"],
                          input=text, text=True, capture_output=True, check=True)
    found: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        if marker := re.match(r'# \d+ ".*/(\w+\.h)"', line):
            here = found.setdefault(marker[1], set())
        elif "unused" in line:
            here.update(re.findall(r"unused\)\) \w+ (gt_\w+)\(", line))
    return found


@pytest.mark.parametrize("header", ON_DEMAND)
def test_what_a_header_defines_brings_it_along(header: str) -> None:
    typed = {f for f in defined()[header] if f.endswith(SUFFIXES)}
    assert typed and {f: called(f"{f}(") for f in typed} == {f: [header] for f in typed}


@pytest.mark.parametrize("header", ["nest.h", "prelude.h", "vmath.h"])
def test_what_is_always_there_brings_nothing_along(header: str) -> None:
    functions = defined()[header]
    assert functions and {h for f in functions for h in called(f"{f}(")} <= {"nest.h"}
