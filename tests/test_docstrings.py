"""Every public function, class and method of the packages below says what it returns or does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "graphtool"
# A package joins the list once none of its docstrings is missing, and stays in it.
COMPLETE = (
    "analysis",
    "api",
    "cli",
    "dtypes.py",
    "emit",
    "errors.py",
    "explain",
    "exporters",
    "extend.py",
    "importers/__init__.py",
    "importers/onnx",
    "importers/stablehlo",
    "importers/torch",
    "integrations",
    "interp.py",
    "io",
    "ir",
    "kernels",
    "loops",
    "lower",
    "native",
    "ops",
    "passes",
    "plugins.py",
    "report",
    "rewrite",
    "scalars",
    "symbolic",
    "target",
    "train",
    "transforms",
    "tune",
    "verify",
)
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def undocumented(body: list[ast.stmt], owner: str = "") -> Iterator[str]:
    """The names of public functions, classes and methods without a docstring."""
    for node in body:
        if isinstance(node, Documented) and not node.name.startswith("_"):
            overloaded = [ast.unparse(d) for d in node.decorator_list] == ["overload"]
            if not ast.get_docstring(node) and not overloaded:  # its last form has the text
                yield owner + node.name
            if isinstance(node, ast.ClassDef):
                yield from undocumented(node.body, f"{owner}{node.name}.")


@pytest.mark.parametrize("where", COMPLETE)
def test_every_public_name_is_documented(where: str) -> None:
    root = PACKAGE / where
    files = [root] if root.is_file() else sorted(root.rglob("*.py"))
    assert files, f"{where} is not part of graphtool"
    missing = [f"{file.relative_to(PACKAGE)}: {name}" for file in files
               for name in undocumented(ast.parse(file.read_text()).body)]
    assert not missing


def test_undocumented_names_are_found() -> None:
    text = ('def a():\n    """A."""\ndef b(): ...\n'
            "class C:\n    def d(self): ...\n    def _e(self): ...")
    assert list(undocumented(ast.parse(text).body)) == ["b", "C", "C.d"]
