"""Package and benchmarks are clean under ruff and mypy --strict; every module says what it is; ops
are compared by identity, and no decision reads the words of an error."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = {  # where names of ops are compared, because they come from outside or are the question
    "importers": "names of a file's operators", "exporters": "names of a file's operators",
    "io": "names in files", "ir": "the registry, files and listings",
    "extend.py": "a plug-in's op needs a name that is free",
    "passes/decompose.py": "`keep` has names that the caller gave",
    "report/catalog.py": "a scalar function and its op have one name",
}


@pytest.mark.parametrize("command", [["ruff", "check", "graphtool", "benchmarks", "docs", "tests"],
                                     ["mypy", "--strict", "graphtool", "benchmarks", "docs",
                                      "tests/lab"]],
                         ids=lambda c: str(c[0]))
def test_clean(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_every_module_says_what_it_is() -> None:
    for path in sorted((ROOT / "graphtool").rglob("*.py")):
        first = path.read_text().lstrip()
        assert first.startswith('"""') and not first.startswith('""""""'), path


def op_name(x: ast.AST) -> bool:
    """Whether an expression is `op.name` or `….op.name`, alone or in a tuple."""
    if isinstance(x, ast.Tuple):
        return any(map(op_name, x.elts))
    return isinstance(x, ast.Attribute) and x.attr == "name" and (
        getattr(x.value, "attr", getattr(x.value, "id", "")) == "op")


def comparisons(tree: ast.AST) -> Iterator[int]:
    """Lines that compare an op's name, or get a built-in op by its name."""
    for x in ast.walk(tree):
        match x:
            case ast.Compare(left, _, others) if any(map(op_name, (left, *others))):
                yield x.lineno
            case ast.Match(subject) if op_name(subject):
                yield subject.lineno
            case ast.Attribute(name, "startswith" | "endswith") if op_name(name):
                yield x.lineno
            case ast.Subscript(ast.Name("OPS"), ast.Constant(str())):
                yield x.lineno


@pytest.mark.long
def test_ops_are_compared_by_identity() -> None:
    """`node.op is o.cast` is an error for mypy if it is misspelt; a name is not."""
    found: dict[str, list[int]] = {}
    for path in sorted((ROOT / "graphtool").rglob("*.py")):
        if lines := list(comparisons(ast.parse(path.read_text()))):
            where = path.relative_to(ROOT / "graphtool")
            found[where.parts[0] if where.parts[0] in NAMES else str(where)] = lines
    assert not {k: v for k, v in found.items() if k not in NAMES}
    assert {k for k in NAMES if k.endswith(".py")} <= set(found), "an exception without need"


def test_the_search_finds_each_form() -> None:
    forms = ("n.op.name == 'a'", "'a' != op.name", "op.name in x", "(n.op.name, 1) == y",
             "n.op.name.startswith('a')", "OPS['a']", "match n.op.name:\n case 'a': 0",
             "match n.op.name, 1:\n case _: 0")
    assert [len(list(comparisons(ast.parse(f)))) for f in forms] == [1] * len(forms)
    assert not list(comparisons(ast.parse("n.op is o.a; x[op.name]; OPS[name]; f(op.name)")))


ASKS = {"startswith", "endswith", "find", "index", "count", "match", "search", "fullmatch"}


def reads_a_message(x: ast.AST, caught: set[str]) -> bool:
    """Whether an expression is the text of an error: `….message`, `error.args`, `str(error)`, or
    something made of one of them."""
    match x:
        case ast.Attribute(attr="message"):
            return True
        case ast.Attribute(value=ast.Name(id=name), attr="args") if name in caught:
            return True
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in caught
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
            return reads_a_message(inner, caught)
    return False


def decided_by_messages(source: str) -> list[str]:
    """The comparisons and searches that read the text of an error."""
    tree = ast.parse(source)
    caught = {h.name for h in ast.walk(tree) if isinstance(h, ast.ExceptHandler) and h.name}
    found = []
    for x in ast.walk(tree):
        match x:
            case ast.Compare(left=left, comparators=others):
                asked: list[ast.expr] = [left, *others]
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args) if name in ASKS:
                asked = [inner, *args]
            case _:
                continue
        if any(reads_a_message(one, caught) for one in asked):
            found.append(f"{x.lineno}: {ast.unparse(x)}")
    return found


@pytest.mark.long
def test_no_decision_reads_a_message() -> None:
    """The words of an error are for people, and change; its type, code and fields are for code."""
    for path in sorted((ROOT / "graphtool").rglob("*.py")):
        assert not decided_by_messages(path.read_text()), path


@pytest.mark.parametrize("line", [
    "if 'cannot' in error.message: pass", "if error.message == 'x': pass",
    "if 'x' in str(error): pass", "if str(error).startswith('x'): pass",
    "y = error.args[0] != 'x'", "if re.search('x', error.message): pass",
    "y = [f for f in fs if f.message.lower() == 'x']"])
def test_the_search_finds_messages(line: str) -> None:
    assert decided_by_messages(f"try: f()\nexcept E as error:\n    {line}")
    assert not decided_by_messages("try: f()\nexcept E as error:\n    if error.code == 'GT1': pass")
