"""`--debug-lines`: the C names the model's lines, its own stay right, the code is the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphtool import passes
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.emit.lines import debug_lines
from graphtool.importers import import_source
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.ir.text import node_texts
from graphtool.loops.program import Program, Run, runs
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named
from tests.cli.conftest import DIGITS
from tests.emit.samples import layer

DIRECTIVE = re.compile(r'#line (\d+) ("(?:[^"\\]|\\.)*")')
TARGET = named("generic", threads=2)


def of(module: Module) -> tuple[Program, dict[str, str]]:
    ready = passes.run(module, supply={"target": TARGET})
    return lower(ready, TARGET), node_texts(module)


@pytest.fixture(scope="module")
def digits() -> Module:
    return import_source(DIGITS)


def test_a_line_of_its_own_file_has_its_own_number(digits: Module) -> None:
    program, nodes = of(digits)
    for file, text in emit(program, nodes=nodes).items():
        lines = text.splitlines()
        for i, line in enumerate(lines, 1):
            match = DIRECTIVE.fullmatch(line)
            assert match or not line.startswith("#line")
            if match and match[2] == f'"{file}"':
                assert int(match[1]) == i + 1


def test_each_call_names_its_line(digits: Module) -> None:
    program, nodes = of(digits)
    files = emit(program, nodes=nodes)
    calls = re.findall(r"#line (\d+) \"(.*)\"\n    GT_STEP", files["model.c"])
    assert len(calls) == len(list(runs(program.steps)))
    assert ("49", "samples/digits.py") in calls and ("52", "samples/digits.py") in calls
    listed = files["model_nodes.txt"].splitlines()
    assert all(" = conv(" in listed[int(n) - 1] for n, file in calls if file == "model_nodes.txt")


def test_only_directives_are_added(digits: Module) -> None:
    program, nodes = of(digits)
    plain, debug = emit(program), emit(program, nodes=nodes)
    assert set(debug) - set(plain) == {"model_nodes.txt"}
    for file, text in plain.items():
        assert text == "".join(line for line in debug[file].splitlines(keepends=True)
                               if not line.startswith("#line "))


@pytest.mark.parametrize("where", ['a"b\\.py:3', "x??/.py:3", "ü.py:7 f", "m.py:0", "fc1",
                                   "m.py:99999999999", "dir/m.py:4 net\nint evil;"])
def test_a_place_from_a_model_stays_inside_its_literal(where: str, tmp_path: Path) -> None:
    program, nodes = of(layer("generic"))
    program = replace(program, steps=tuple(
        replace(s, where=where, label=f"é\n{where}") if isinstance(s, Run) else s
        for s in program.steps))
    built = build(program, tmp_path / "b", target=TARGET, nodes=nodes,
                  store=stored(layer("generic")))
    text = (built / "model.c").read_text()
    assert all(map(DIRECTIVE.fullmatch, (x for x in text.splitlines() if x.startswith("#line"))))
    assert (built / "model_nodes.txt").read_text().isascii() and "\nint evil" not in text


def stored(module: Module) -> dict[str, Weight]:
    return {w.digest: w for w in collect_all(passes.run(module, supply={"target": TARGET}).graph)}


def test_a_program_alone_has_a_listing_of_its_calls(digits: Module) -> None:
    program, _ = of(digits)
    found = debug_lines(program, {})
    first = next(runs(program.steps))
    assert found.place(first) == ("model_nodes.txt", 1) and found.lines[0] == first.label
    assert all(found.place(r)[1] for r in runs(program.steps))


def test_a_debug_build_computes_the_same(digits: Module, tmp_path: Path) -> None:
    program, nodes = of(digits)
    store = stored(digits)
    x = {"image": np.random.default_rng(0).random((2, 1, 8, 8), np.float32)}
    a, b = (runtime.load(build(program, tmp_path / str(i), target=TARGET, store=store, nodes=n)
                         ).run(x)["logits"] for i, n in enumerate((None, nodes)))
    assert np.array_equal(a, b)
