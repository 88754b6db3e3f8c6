"""Headers and the table of kernels say the same; every plain header compiles alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphtool.ir.facets import Lowering
from graphtool.ir.op import OPS
from graphtool.kernels.record import KERNELS, serving
from graphtool.loops.contract import REQUIRED
from graphtool.lower.statements import STATEMENTS
from tests.kernels.harness import KERNELS as FOLDER
from tests.kernels.harness import compile_c, width

PLAIN = sorted(p.name for p in (FOLDER / "compute").glob("*.h") if p.stem not in KERNELS)
OF_TARGET = {"LANES"}  # what prelude.h defines
OWN = {"BLAS", "CHUNK", "JOIN"}  # what some headers define themselves, and explain
COMMON = ("NAME", "PARAMS", "ARGS")  # what the printer defines for every template


def text(name: str) -> tuple[str, str]:
    """The comment that opens a kernel's header, and the rest."""
    contract, _, body = (FOLDER / "compute" / f"{name}.h").read_text().partition("*/")
    return contract, body


def given(name: str) -> set[str]:
    """Everything that is defined before a kernel's header is included."""
    c = KERNELS[name].contract
    own = {m.name for m in c.macros} | {p.name for p in c.pointers}
    return (own | {*COMMON} | ({"EPILOGUE"} if c.hook else set())
            | ({"PIECES"} if c.grain == "shares" else set()) | ({"WAIT"} if c.waits else set()))


@pytest.mark.parametrize("cc", ["gcc", "clang"])
@width
def test_plain_headers_compile_alone(tmp_path: Path, flags: list[str], cc: str) -> None:
    for header in PLAIN:
        compile_c(f'#include "{header}"\n#include "{header}"\n', tmp_path, flags, cc)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_comment_names_what_the_table_has(name: str) -> None:
    words = set(re.findall(r"\bGT_([A-Z0-9_]+)\b", text(name)[0]))
    assert words - OF_TARGET - OWN == given(name)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_everything_given_is_undefined_at_the_end(name: str) -> None:
    assert not given(name) - set(re.findall(r"^#undef GT_(\w+)$", text(name)[1], re.M))


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_header_reads_every_macro_and_has_the_default_of_the_table(name: str) -> None:
    c, body = KERNELS[name].contract, text(name)[1].partition("#pragma GCC diagnostic pop")[0]
    read = set(re.findall(r"\bGT_(\w+)\b", re.sub(r"^#undef .*$", "", body, flags=re.M)))
    assert not given(name) - {"ARGS"} - read
    defaults = dict(re.findall(r"#ifndef GT_(\w+)\n#define GT_\w+ (\d+)\n", body))
    for m in c.macros:
        assert m.name not in defaults or m.default in (None, int(defaults[m.name]))
        assert (m.name in defaults) <= (m.default is not REQUIRED)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_arguments_are_those_of_the_comment(name: str) -> None:
    c, (contract, _) = KERNELS[name].contract, text(name)
    for row in (*c.macros, *c.pointers):
        if row.arguments:
            assert f"GT_{row.name}({', '.join(row.arguments)})" in contract


def test_every_op_that_lowers_by_a_kernel_has_one() -> None:
    for op in OPS.values():
        kernel = serving(op)
        if op.lowering is Lowering.TEMPLATE:
            assert kernel is not None and kernel.fuses, op
        elif op.lowering is Lowering.STATEMENTS:
            assert (kernel is not None and not kernel.fuses) != (op in STATEMENTS), op
        else:
            assert kernel is None, op
    assert {name for k in KERNELS.values() for name in k.lower} <= OPS.keys()


def test_every_kernel_has_a_module_of_its_name() -> None:
    for name in KERNELS:
        assert (FOLDER.parent / f"{name}.py").is_file()


def test_lines_fit_in_100_columns() -> None:
    for header in FOLDER.glob("*/*.h"):
        for number, line in enumerate(header.read_text().splitlines(), 1):
            assert len(line) <= 100 and "\t" not in line, f"{header.name}:{number}"
