"""Plug-ins that are missing, fail, or take a name: one clear error, and nothing stays behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import graphtool
from graphtool import plugins
from graphtool.ir.op import OPS
from tests.cli.conftest import DIGITS, Cli
from tests.plugins.conftest import EXAMPLES, example

BAD = {  # file: its text, the error's code, a word of the message, the exit code
    "raises": ("x = 1\n1 / 0", "GT3102", "ZeroDivisionError", 3),
    "leaves": ("import sys\nsys.exit(0)", "GT3102", "SystemExit", 3),
    "syntax": ("def", "GT3102", "SyntaxError", 3),
    "taken": ("from graphtool.extend import *\nadd_op(Op('relu', lambda x: x))", "GT3103",
              "the op 'relu' already exists", 2),
    "promise": ("from graphtool.extend import *\n"
                "add_op(Op('same', lambda x: x, lambda x: x, axes=ALONG, doc='x'))", "GT3102",
                "has no attribute 'axis'", 3),
    "place": ("from graphtool.extend import *\n"
              "add_pass(Pass('mine', lambda graph: graph, 'why'), before='nothing')", "GT3102",
              "no pass 'nothing'", 3),
    "half": ("from graphtool.extend import *\n"
             "add_op(Op('half_done', lambda x: x, decompose=lambda x: x, doc='x'))\n"
             "add_code('HALF1', 'a', 'b.')\nraise OSError('late')", "GT3102", "late", 3),
    "rule": ("from graphtool.extend import *\n@rule(lambda x: ops.abs(x))\ndef f(y): pass",
             "GT3102", "differ in their parameters", 3),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_plug_in(name: str, gt: Cli, tmp_path: Path) -> None:
    text, code, word, exit_code = BAD[name]
    (tmp_path / f"{name}.py").write_text(text)
    done = gt("ops", "--plugin", tmp_path / f"{name}.py")
    assert (done.code, done.out) == (exit_code, "")
    assert f"error[{code}]: the plug-in {name} cannot be loaded" in done.err and word in done.err
    assert f"{name}.py" in done.err and "half_done" not in OPS


def test_a_plug_in_that_is_not_there(gt: Cli, tmp_path: Path) -> None:
    assert "GT3101" in gt("ops", "--plugin", tmp_path / "none.py").err
    assert "GT3101" in gt("ops", "--plugin").err


def test_two_of_one_name(gt: Cli, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "p.py").write_text("")
    one, two = (f"--plugin={tmp_path / f / 'p.py'}" for f in ("a", "b"))
    assert "GT3104" in gt("ops", one, two).err
    assert gt("ops", one, one).code == 0


def test_one_that_fails_while_it_works(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "from graphtool.extend import *\ndef broken(graph: Graph) -> Graph:\n    return 1 / 0\n"
        "add_pass(Pass('broken', broken, 'why', default=False))")
    done = gt("opt", DIGITS, "--passes", "broken", "-o", "-", f"--plugin={tmp_path / 'late.py'}")
    assert done.code == 3
    assert "error[GT3105]: the plug-in late failed: ZeroDivisionError" in done.err
    assert "late.py:3 broken" in done.err


def test_the_order_of_passes_is_kept(gt: Cli) -> None:
    done = gt("opt", DIGITS, "--passes", "cse,sort_operands", "-o", "-", example("sort_operands"))
    assert done.code == 2 and "cse compares operands in their order" in done.err


def test_codes_of_a_plug_in(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "codes.py").write_text(
        "from graphtool.extend import add_code\nadd_code('AUDIO01', 'too loud', 'Turn it down.')")
    assert "Turn it down." in gt("explain", "audio01", f"--plugin={tmp_path / 'codes.py'}").out
    assert gt("explain", "AUDIO01").code == 2


def test_a_graph_that_needs_a_plug_in_names_it(gt: Cli, tmp_path: Path) -> None:
    """Every op of every missing plug-in, and nothing is loaded because the file says so."""
    path = tmp_path / "m.graph.json"
    gt("import", DIGITS, "-o", path, "--no-check")
    text = path.read_text()
    entry = {"snake": {"version": "1.0", "ops": ["snake"]}, "os": {"version": "", "ops": ["os_op"]}}
    path.write_text(text.replace('"meta": {', f'"meta": {{"plugins": {json.dumps(entry)}, ', 1))
    done = gt("show", path)
    assert done.code == 4 and "error[GT0358]: the graph needs the plug-in snake, os" in done.err
    assert "snake: the op is of the plug-in snake 1.0" in done.err and "os_op" in done.err
    path.write_text(text.replace('"meta": {', '"meta": {"plugins": [1], ', 1))
    assert "GT0342" in gt("show", path).err


def test_from_python() -> None:
    before = set(OPS)
    assert repr(graphtool.load_plugin(EXAMPLES / "snake.py")) == (
        f"PlugIn(name='snake', version='1.0', source='{EXAMPLES / 'snake.py'}')")
    assert "snake" in OPS
    plugins.unload("snake")
    assert set(OPS) == before


def test_installed_plug_ins(tmp_path: Path) -> None:
    """A package that names the entry point group is loaded without an option."""
    (tmp_path / "audio_ops.py").write_text((EXAMPLES / "snake.py").read_text())
    info = tmp_path / "audio_ops-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: audio-ops\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[graphtool.plugins]\naudio = audio_ops\n")
    code = ("import sys\nsys.path.insert(0, sys.argv[1])\nfrom graphtool.cli.faults import run\n"
            "run(['ops', 'snake'])")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True,
                          text=True, check=True)
    assert "plug-in   audio 1.0" in done.stdout
