"""The layers of DESIGN.md, read off the imports: nobody imports what stands above them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "graphtool"
LAYERS = (  # a name may import its own layer and those before it
    ("escaping",), ("errors",), ("plugins", "assume"),
    ("dtypes", "symbolic"), ("scalars", "io", "explain", "machines", "target"), ("language",),
    ("ir", "loops"), ("ops",), ("front",), ("interp",), ("analysis", "rewrite", "kernels"),
    ("passes", "transforms", "importers", "exporters"),
    ("lower",), ("emit",), ("native",), ("compile",), ("package",),
    ("train", "tune", "report"), ("verify",),
    ("api", "extend", "verbs"), ("integrations",), ("cli",), ("__init__", "__main__"),
)
LEVEL = {name: i for i, layer in enumerate(LAYERS) for name in layer}
ONLY = {  # who alone may import a package
    "onnx": ("importers/onnx", "exporters/onnx", "integrations/onnx_backend.py"),
    "torch": ("importers/torch", "integrations/torch_compile.py",
              "integrations/torch_backend.py"),
    "jax": ("importers/stablehlo/capture.py",),
    "fcntl": ("io/host.py",),  # what not every system has
    "resource": ("io/host.py",),
    "mmap": ("io/host.py", "native/memory_map.py"),
    "typer": ("cli",),
    "rich": ("cli",),
}
FILES = sorted(p for p in ROOT.rglob("*.py"))


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def imports(path: Path) -> list[str]:
    """Dotted names of all imports: at the top, inside functions, and for the type checker."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{a.name}" for a in node.names]
    return names


def all_imports() -> Iterator[tuple[Path, str]]:
    """Each file of the package with each of its imports."""
    return ((path, name) for path in FILES for name in imports(path))


def test_imports_go_downwards() -> None:
    assert not {p for p in map(part, FILES) if p not in LEVEL}, "a new part: give it a layer"
    above = []
    for path, name in all_imports():
        head, *rest = name.split(".")
        if head == "graphtool" and rest:
            target = rest[0] if rest[0] in LEVEL else "__init__"
            if LEVEL[target] > LEVEL[part(path)]:
                above.append(f"{path.relative_to(ROOT)}: {name} stands above")
    assert not above


def test_ir_and_loops_do_not_know_each_other() -> None:
    for mine, other in (("ir", "loops"), ("loops", "ir")):
        for path in (ROOT / mine).rglob("*.py"):
            assert not [n for n in imports(path) if n.startswith(f"graphtool.{other}")]


def test_emit_knows_loops_and_scalars_only() -> None:
    known = {"errors", "escaping", "dtypes", "symbolic", "scalars", "loops", "emit", "kernels",
             "weights"}
    for path in (ROOT / "emit").rglob("*.py"):
        assert {n.split(".")[1] for n in imports(path) if n.startswith("graphtool.")} <= known


def test_packages_stay_where_they_belong() -> None:
    assert not [f"{where} imports {name}" for path, name in all_imports()
                if (allowed := ONLY.get(name.split(".")[0])) is not None
                and not (where := str(path.relative_to(ROOT))).startswith(allowed)]


def test_no_family_needs_the_wing() -> None:
    """What few models need may use what all need, not the other way round."""
    for place in ("driver", "families", "validate"):
        for path in (ROOT / "importers" / "onnx" / place).rglob("*.py"):
            assert not [n for n in imports(path) if ".onnx.wing" in n], path


def test_no_cycles() -> None:
    """Between modules, by all their imports: late ones and those for the type checker too."""
    names = {".".join(("graphtool", *p.relative_to(ROOT).with_suffix("").parts)
                      ).removesuffix(".__init__"): p for p in FILES}
    edges = {n: {m for i in imports(p) for m in (i, i.rpartition(".")[0])
                 if m in names and m != n and not n.startswith(f"{m}.")}
             for n, p in names.items()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join((*path, name))
        if name not in done:
            for other in sorted(edges[name]):
                visit(other, (*path, name))
            done.add(name)
    for name in names:
        visit(name, ())


def test_benchmarks_import_no_tests() -> None:
    """They run where the tests are not."""
    for path in (ROOT.parent / "benchmarks").rglob("*.py"):
        assert not [n for n in imports(path) if n.split(".")[0] == "tests"], path
