"""Plug-ins that are missing, fail, or take a name: one clear error, and nothing stays behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import graphtool
from graphtool import plugins
from graphtool.ir.op import OPS
from graphtool.ir.promises import KINDS
from graphtool.report.schemas import _PLAIN
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
    "unread": ("from __future__ import annotations\nfrom graphtool.extend import Pass, add_pass\n"
               "def f(graph: Graph) -> Graph:\n    return graph\n"
               "add_pass(Pass('mine', f, 'why'))", "GT3102",
               "the pass mine has annotations that cannot be read: name 'Graph'", 3),
    "no graph": ("from graphtool.extend import *\nadd_pass(Pass('mine', lambda: None, 'why'))",
                 "GT3102", "the pass mine has no parameter for the graph", 3),
    "no pass": ("from graphtool.extend import *\nadd_pass(Pass('mine', 3, 'why'))", "GT3102",
                "the pass mine is no function: 3", 3),
    "unread op": ("from __future__ import annotations\nfrom graphtool.extend import composite\n"
                  "@composite\ndef half_done(x, *, alpha: Number = 1):\n    'x'\n    return x",
                  "GT3102", "whose annotations cannot be read: name 'Number'", 3),
    "unheld": ("from graphtool.extend import *\ndef f(x, *, table: tuple[dict, ...] = ()):\n"
               "    return x\nadd_op(Op('half_done', f, f, lower=f, doc='x'))", "GT3102",
               "has an attribute 'table' that a file cannot hold: tuple[dict, ...]", 3),
    "unknown": ("from graphtool.extend import *\n@rule(lambda x: ops.maximum(x, 0.5))\n"
                "def f(x): pass", "GT3102", "there is no op 'maximum'", 3),
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


def test_a_pass_without_annotations_takes_a_graph(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "from graphtool.extend import *\nadd_pass(Pass('mine', lambda graph: graph, 'why'))")
    done = gt("opt", DIGITS, "--passes", "mine", "-o", "-", f"--plugin={tmp_path / 'p.py'}")
    assert done.code == 0 and '"op": "conv"' in done.out


def test_what_an_attribute_may_be_has_a_schema() -> None:
    assert set(_PLAIN) == KINDS


LATE = {  # what a plug-in does while a verb works, and what the error says of it
    "pass": ("def late(graph: Graph) -> Graph:\n    return 1 / 0\n"
             "add_pass(Pass('late_pass', late, 'why', default=False))",
             "the pass late_pass, of the plug-in p, failed: ZeroDivisionError", "p.py:3 late"),
    "no graph": ("def late(graph: Graph) -> Graph:\n    return None\n"
                 "add_pass(Pass('late_pass', late, 'why', default=False))",
                 "the pass late_pass, of the plug-in p, gave None, which is no graph",
                 "p.py:2 late"),
    "broken graph": ("def late(graph: Graph) -> Graph:\n"
                     "    return Graph(graph.inputs, graph.nodes[1:], graph.outputs)\n"
                     "add_pass(Pass('late_pass', late, 'why', default=False))",
                     "the pass late_pass, of the plug-in p, left a graph that is not valid",
                     "p.py"),
    "leaves": ("import sys\ndef late(graph: Graph) -> Graph:\n    sys.exit(0)\n"
               "add_pass(Pass('late_pass', late, 'why', default=False))",
               "the pass late_pass, of the plug-in p, failed: SystemExit", "p.py:4 late"),
    "deep": ("def late(graph: Graph) -> Graph:\n    return late(graph)\n"
             "add_pass(Pass('late_pass', late, 'why', default=False))",
             "the pass late_pass, of the plug-in p, failed: RecursionError", "p.py:3 late"),
    "rule": ("@rule(lambda x, s: ops.reshape(x, shape=s))\ndef late(x, s):\n    return {}[1]\n"
             "add_rule(late)",
             "the rule late, of the plug-in p, failed: KeyError", "p.py:4 late"),
    "type": ("@rule(lambda x, s: ops.reshape(x, shape=s))\ndef late(x, s):\n    return ops.exp(x)\n"
             "add_rule(late)",
             "the rule late, of the plug-in p, left a graph that is not valid", "p.py"),
}


@pytest.mark.parametrize("name", LATE)
def test_one_that_fails_while_it_works(name: str, gt: Cli, tmp_path: Path) -> None:
    text, message, place = LATE[name]
    (tmp_path / "p.py").write_text("from graphtool.extend import *\n" + text)
    passes = "late_pass" if "late_pass" in text else "simplify"
    done = gt("opt", DIGITS, "--passes", passes, "-o", "-", f"--plugin={tmp_path / 'p.py'}")
    assert (done.code, done.out) == (3, "")
    assert f"error[GT3105]: {message}" in done.err and place in done.err


OP = """from graphtool.extend import *
def infer(x):
    return {infer}
def evaluate(x):
    return {eval}
def vjp(g, y, x):
    return {vjp}
def lower(*xs):
    return {lower}
add_op(Op("mine", infer, evaluate, vjp, lower, doc="x"))
@onnx_op("Mine", domain="own")
def mine(x):
    return {handler}
"""
PARTS = {"infer": "x", "eval": "x", "vjp": "(g,)", "lower": "xs[1]", "handler": "ops.mine(x)"}
FAULTS = [("infer", "1 / 0", "infer of the op mine, of the plug-in p, failed: ZeroDivisionError"),
          ("infer", "3", "infer of the op mine, of the plug-in p, gave 3, which is no type"),
          ("eval", "x.nothing", "eval of the op mine, of the plug-in p, failed: AttributeError"),
          ("vjp", "[][0]", "vjp of the op mine, of the plug-in p, failed: IndexError"),
          ("vjp", "(g, g)", "vjp of the op mine, of the plug-in p, gave 2 of gradients for 1"),
          ("vjp", "g", "vjp of the op mine, of the plug-in p, gave no tuple of gradients"),
          ("lower", "1 / 0", "lower of the op mine, of the plug-in p, failed: ZeroDivisionError"),
          ("handler", "1 / 0", "the handler of own.Mine, of the plug-in p, failed: ZeroDivision")]


@pytest.mark.parametrize(("part", "text", "message"), FAULTS)
def test_an_op_that_fails(part: str, text: str, message: str, gt: Cli, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[3] x) => (float[3] y) { a = own.Mine(x) y = Exp(a) }"""), tmp_path / "m.onnx")
    (tmp_path / "p.py").write_text(OP.format(**PARTS | {part: text}))
    option, graph = f"--plugin={tmp_path / 'p.py'}", tmp_path / "m.graph.json"
    done = gt("import", tmp_path / "m.onnx", "--no-check", "-o", graph, option)
    for verb in (("eval", "--random"), ("grad", "--loss", "mse", "--wrt", "x", "-o", "-"),
                 ("lower", "-o", "-")):
        if done.code == 0:
            done = gt(verb[0], graph, *verb[1:], option)
    assert done.code == 3 and f"error[GT3105]: {message}" in done.err
    assert f"{tmp_path / 'p.py'}:" in done.err


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
