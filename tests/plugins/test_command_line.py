"""Verbs, forms of import and reports of a plug-in, as docs/how-to shows them; unfit rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphtool
from tests.cli.conftest import Cli
from tests.passes.pass_samples import SAMPLES
from tests.plugins.conftest import example

CHAINS = example("chains")


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    (tmp_path / "m.chain").write_text("abs\nsqrt\nexp\n")
    return tmp_path / "m.chain"


def test_every_verb_knows_the_form(chain: Path, gt: Cli) -> None:
    done = gt("import", chain, "-o", chain.parent / "m.graph.json", CHAINS)
    assert done.code == 0 and "agrees with chain on 2 inputs" in done.err
    built = gt("build", chain, "-o", chain.parent / "b", CHAINS)
    assert built.code == 0 and gt("check", chain, chain.parent / "b", CHAINS).code == 0
    assert "exp" in gt("show", chain, CHAINS).out
    assert gt("import", chain).code == 2  # without it


def test_what_it_does_not_take_is_refused(chain: Path, gt: Cli) -> None:
    assert "GT3024" in gt("import", chain, "--dynamic", "n=1..4", CHAINS).err


def test_a_report_has_a_schema(chain: Path, gt: Cli) -> None:
    assert gt("show", chain, "--report", "depth", CHAINS).out == "3 ops\n"
    assert '"ops"' in gt("schema", "depth", CHAINS).out
    assert "GT3017" in gt("show", chain, "--report", "depths", CHAINS).err


def test_a_verb_is_listed_helped_and_completed(chain: Path, gt: Cli) -> None:
    assert gt("ops-of", chain, CHAINS).out == "abs sqrt exp\n"
    assert "Print the ops of a chain" in gt("--help", CHAINS).out
    assert "Usage: graphtool ops-of" in gt("ops-of", "--help", CHAINS).out
    assert "ops-of" in gt("completion", "bash", CHAINS).out
    assert "ops-of" not in gt("--help").out


def test_a_form_of_packages(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "from graphtool.extend import *\n"
        "add_package_form(PackageForm('note', 'a note', "
        "lambda s: {'a/n': s.name.encode()}))\n")
    graphtool.build(SAMPLES["convnet"], tmp_path / "b", name="m")
    done = gt("package", tmp_path / "b", "--as", "note", "-o", tmp_path, "--plugin",
              tmp_path / "p.py")
    assert done.code == 0 and (tmp_path / "m-note" / "a" / "n").read_text() == "m"
    assert "GT2240" in gt("package", tmp_path / "b", "--as", "note").err


WRONG = {  # what a plug-in adds, and a word of the message
    "name": ("add_verb(Verb('Ops', f, 'look'))", "cannot name a verb"),
    "family": ("add_verb(Verb('no such', f, 'look'))", "cannot name a verb"),
    "group": ("add_verb(Verb('mine', f, 'lok'))", "no group of verbs"),
    "help": ("add_verb(Verb('mine', lambda: 1, 'look'))", "has no help"),
    "taken": ("add_verb(Verb('show', f, 'look'))", "the verb 'show' already exists"),
    "unread": ("add_importer(Importer('mine', 'a thing', ('.mine',)))", "has no `read`"),
    "suffix": ("add_importer(Importer('mine', 'a thing', ('.npz',), read=f))",
               ".npz is the suffix of a file of arrays"),
    "onnx": ("add_importer(Importer('onnx', 'a thing', ('.x',), read=f))", "already exists"),
    "form": ("add_package_form(PackageForm('go', 'x', f))", "already exists"),
    "report": ("add_report(Report('stats', int, f, f))", "the report 'stats' already exists")}


@pytest.mark.parametrize("name", WRONG)
def test_a_row_that_does_not_fit(name: str, gt: Cli, tmp_path: Path) -> None:
    line, said = WRONG[name]
    (tmp_path / "p.py").write_text(
        f"from graphtool.extend import *\ndef f(x):\n    'Do.'\n{line}\n")
    done = gt("passes", "--plugin", tmp_path / "p.py")
    assert done.code in (2, 3) and said in done.err and done.out == ""
