"""Every header that is not a template compiles alone, under every compiler and vector width."""

from pathlib import Path

import pytest

from tests.kernels.harness import KERNELS, compile_c, width

TEMPLATES = {"gemm.h", "conv.h", "depthwise.h", "winograd.h", "winograd_line.h", "sort.h",
             "recurrent.h", "recurrent_grad.h", "collective.h", "trees.h", "nbits.h", "int8_gemm.h",
             "int8_conv.h", "int8_depthwise.h", "pool.h"}
PLAIN = ("fields.h", "int8.h", "integers.h", "narrow.h", "nest.h", "prelude.h", "row_sums.h",
         "rows.h", "scores.h", "special.h", "square.h", "tile.h", "vmath.h")


@pytest.mark.parametrize("cc", ["gcc", "clang"])
@width
def test_plain_headers_compile_alone(tmp_path: Path, flags: list[str], cc: str) -> None:
    for header in PLAIN:
        compile_c(f'#include "{header}"\n#include "{header}"\n', tmp_path, flags, cc)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_templates_undefine_all_they_were_given(name: str) -> None:
    text = next(KERNELS.glob(f"*/{name}")).read_text()
    contract, body = text.split("*/", 1)
    parameters = {w.strip(",.:()") for w in contract.split() if w.startswith("GT_")}
    parameters = {p.split("(")[0] for p in parameters} - {"GT_LANES"}
    parameters -= {"GT_NAME_input", "GT_NAME_multiply", "GT_NAME_output", "GT_NV·GT_LANES"}
    missing = {p for p in parameters if f"#undef {p}\n" not in body}
    assert not missing


def test_lines_fit_in_100_columns() -> None:
    for header in KERNELS.glob("*/*.h"):
        for number, line in enumerate(header.read_text().splitlines(), 1):
            assert len(line) <= 100 and "\t" not in line, f"{header.name}:{number}"
