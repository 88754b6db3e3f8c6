"""Headers and the table of kernels say the same; every plain header compiles alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphtool.emit.headers import used_headers
from graphtool.ir.facets import Lowering
from graphtool.ir.op import OPS
from graphtool.kernels import headers
from graphtool.kernels.record import KERNELS, serving
from graphtool.loops.contract import HOME, REQUIRED
from graphtool.lower.statements import STATEMENTS
from tests.kernels.harness import KERNELS as FOLDER
from tests.kernels.harness import compile_c, width

TEXTS = {p.name: p.read_text() for p in sorted((FOLDER / "compute").glob("*.h"))}
TEXTS[headers.END] = headers.template_end()
PLAIN = [name for name, text in TEXTS.items() if "#ifndef GT_" + name.upper().replace(".", "_")
         in text and name.removesuffix(".h") not in KERNELS]
# what several templates include in their midst, at each use
PARTS = [name for name in TEXTS if name not in PLAIN and name.removesuffix(".h") not in KERNELS]
OF_TARGET = {"LANES"}  # what prelude.h defines
OWN = {"BLAS", "CHUNK", "JOIN"}  # what some headers define themselves, and explain
IN_C = sorted(k.name for k in KERNELS.values() if HOME in k.contract.languages)
COMMON = ("NAME", "PARAMS", "ARGS")  # what the printer defines for every template


def text(name: str) -> tuple[str, str]:
    """The comment that opens a kernel's header, and the rest, with the parts that it includes."""
    contract, _, body = TEXTS.get(f"{name}.h", "").partition("*/")
    return contract, joined(body)


def joined(body: str) -> str:
    """A text in which each include of a part is the part."""
    return re.sub(r'#include "(\w+\.h)"\n',
                  lambda m: joined(TEXTS[m[1]]) if m[1] in PARTS else m[0], body)


def code(text: str) -> str:
    """A text without comments and without the lines that undefine."""
    return re.sub(r"/\*.*?\*/|^#undef [^\n]*", "", text, flags=re.M | re.S)


def without(text: str, opening: str) -> str:
    """A text without the conditional parts whose first line is this one."""
    lines, depth = [], 0
    for line in text.splitlines(keepends=True):
        if depth or re.fullmatch(opening, line.strip()):
            depth += line.startswith("#if") - line.startswith("#endif")
        else:
            lines.append(line)
    return "".join(lines)


def elsewhere(name: str) -> str:
    """The code of a kernel's texts in other languages than C, with the parts that they include."""
    contract = KERNELS[name].contract
    texts = [headers.text(contract.text(x)) or "" for x in contract.languages if x != HOME]
    return code("".join((*texts, *used_headers(texts).values())))


def defined(text: str) -> set[str]:
    """The macros that a text defines."""
    return set(re.findall(r"^ *#define GT_(\w+)", text, re.M))


def given(name: str) -> set[str]:
    """Everything that is defined before a kernel's header is included."""
    c = KERNELS[name].contract
    own = {m.name for m in c.macros} | {p.name for p in c.pointers}
    return (own | {*COMMON} | ({"EPILOGUE"} if c.hook else set())
            | ({"PIECES"} if c.grain == "shares" else set())
            | ({"WAIT", "PHASE", "COMMON"} if c.phases else set()))


def comments(name: str) -> str:
    """What the texts of a kernel in all languages say at their beginning."""
    contract = KERNELS[name].contract
    texts = [headers.text(contract.text(language)) or "" for language in contract.languages]
    return "".join(t.partition("*/")[0] for t in texts)


def shared() -> set[str]:
    """What the comment of template_begin.h explains."""
    return {*headers.COMMON} - {"EPILOGUE"}


@pytest.mark.part(6)
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@width
def test_plain_headers_compile_alone(tmp_path: Path, flags: list[str], cc: str) -> None:
    for header in PLAIN:
        compile_c(f'#include "{header}"\n#include "{header}"\n', tmp_path, flags, cc)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_comment_names_what_the_table_has(name: str) -> None:
    words = set(re.findall(r"\bGT_([A-Z0-9_]+)\b", comments(name)))
    assert words - OF_TARGET - (OWN - given(name)) - shared() == given(name) - shared()


def test_what_all_templates_have_is_explained_once() -> None:
    entries = re.findall(r"^   GT_([A-Z]+)(?:\(\w\))?  ", TEXTS["template_begin.h"], re.M)
    assert {*entries, "ARGS"} == shared()


@pytest.mark.parametrize("name", IN_C)
def test_everything_given_is_undefined_at_the_end(name: str) -> None:
    assert not given(name) - set(re.findall(r"^#undef GT_(\w+)$", text(name)[1], re.M))


@pytest.mark.parametrize("name", IN_C)
def test_a_template_leaves_no_macro_of_its_own(name: str) -> None:
    body = joined(without(TEXTS[f"{name}.h"], r"#ifndef GT_\w+_H"))
    assert not defined(body) - set(re.findall(r"^ *#undef GT_(\w+)$", body, re.M))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_reads_only_what_each_of_its_templates_has(part: str) -> None:
    users = [name for name in KERNELS if joined(f'#include "{part}"\n') in text(name)[1]]
    plain = set[str]().union(*(defined(TEXTS[p]) for p in PLAIN))
    assert len(users) > 1 or part.startswith(f"{users[0]}_")  # a long template in two files
    for name in users:
        has = given(name) | defined(text(name)[1])
        absent = "|".join(set(re.findall(r"#ifdef GT_(\w+)", TEXTS[part])) - has)
        read = re.findall(r"\bGT_(\w+)\b", code(without(TEXTS[part], rf"#ifdef GT_({absent})")))
        assert not set(read) - plain - has, name


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_header_reads_every_macro_and_has_the_default_of_the_table(name: str) -> None:
    c, body = KERNELS[name].contract, code(text(name)[1])
    read = set(re.findall(r"\bGT_(\w+)\b", body + elsewhere(name)))
    assert not given(name) - {"ARGS"} - read
    defaults = dict(re.findall(r"#ifndef GT_(\w+)\n#define GT_\w+ (\d+)\n", body))
    for m in c.macros:
        assert m.name not in defaults or m.default in (None, int(defaults[m.name]))
        assert (m.name in defaults) <= (m.default is not REQUIRED)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_arguments_are_those_of_the_comment(name: str) -> None:
    c = KERNELS[name].contract
    for row in (*c.macros, *c.pointers):
        if row.arguments:
            assert f"GT_{row.name}({', '.join(row.arguments)})" in comments(name)


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


def test_no_template_undefines_a_macro_of_a_plain_header() -> None:
    """Such a macro would be gone for the next template of the file."""
    team = (FOLDER / "host" / "team.h").read_text()
    plain = {m for text in (*(TEXTS[n] for n in PLAIN), team)
             for m in re.findall(r"^ *# *define (GT_\w+)", text, re.M)
             if f"#undef {m}" not in text}
    for name in (*(f"{k}.h" for k in KERNELS if f"{k}.h" in TEXTS), *PARTS):
        assert not plain & set(re.findall(r"^#undef (GT_\w+)", TEXTS[name], re.M)), name
