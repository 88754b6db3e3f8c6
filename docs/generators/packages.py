"""The page of packages: layers and dependencies, read off the imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.generators.markdown import code, prose, table, whole

ROOT = Path(__file__).parents[2] / "graphtool"


def page() -> str:
    """The picture of the layers, and a row for each package."""
    uses = dependencies()
    levels = layers(uses)
    picture = "\n".join(f"{i:2}  {'  '.join(sorted(n for n in uses if levels[n] == i))}"
                        for i in sorted(set(levels.values()), reverse=True))
    rows = [(code(n), prose(_said(n)), ", ".join(sorted(uses[n])))
            for n in sorted(uses, key=lambda n: (levels[n], n))]
    return whole("Packages", (
        "What each package is for, and which others it imports directly. The picture is made from "
        "all import statements, late ones included: a name stands one layer above the highest that "
        "it imports."),
        f"```text\n{picture}\n```\n", table(("package", "what it is", "imports"), rows))


def dependencies() -> dict[str, set[str]]:
    """For each package or module at the top: the others that its files import."""
    names = {p.name.removesuffix(".py") for p in ROOT.iterdir()
             if (p.suffix == ".py" or (p / "__init__.py").exists()) and p.name[0] != "_"}
    return {n: {m for f in _files(n) for m in _imports(f) if m in names and m != n} for n in names}


def layers(uses: dict[str, set[str]]) -> dict[str, int]:
    """The length of the longest chain of imports below each name. Raises RecursionError for a
    circle, which the test of layering reports better."""
    found: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in found:
            found[name] = max((level(m) + 1 for m in uses[name]), default=0)
        return found[name]
    for name in uses:
        level(name)
    return found


def _files(name: str) -> Iterator[Path]:
    path = ROOT / name
    yield from path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                dotted = [a.name for a in names]
            case ast.ImportFrom(module=str(module), names=names):
                dotted = [f"{module}.{a.name}" for a in names]
            case _:
                continue
        yield from (d.split(".")[1] for d in dotted if d.startswith("graphtool."))


def _said(name: str) -> str:
    """The first sentence of the package's docstring."""
    path = ROOT / name / "__init__.py"
    tree = ast.parse((path if path.exists() else ROOT / f"{name}.py").read_text())
    paragraph = " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."
