"""schemas/ is what the code makes (`--update-golden` rewrites it), and fits the real outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from graphtool.compile.as_is import build
from graphtool.importers import import_source
from graphtool.ir import serial
from graphtool.loops import serial as loops
from graphtool.verify.schemas import schemas
from tests.cli.conftest import DIGITS, Cli

ROOT = Path(__file__).parents[2] / "schemas"
SCHEMAS = schemas()


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_are_up_to_date(name: str, request: pytest.FixtureRequest) -> None:
    path = ROOT / f"{name}.schema.json"
    if request.config.getoption("--update-golden"):
        path.write_text(SCHEMAS[name])
    assert path.read_text() == SCHEMAS[name]


def test_no_file_is_left_over() -> None:
    assert {p.name for p in ROOT.iterdir()} == {f"{n}.schema.json" for n in SCHEMAS}


@pytest.mark.parametrize("name", SCHEMAS)
def test_descriptions_have_no_line_breaks_of_the_source(name: str) -> None:
    parts = json.loads(SCHEMAS[name]).get("$defs", {}).values()
    texts = [part.get("description", "") for part in parts]
    assert not [t for t in texts if "\n" in t.replace("\n\n", "") or "  " in t]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph, an optimised graph, a program and a build of the digits model."""
    from graphtool import optimize
    folder = tmp_path_factory.mktemp("made")
    module = import_source(DIGITS)
    serial.save(module, folder / "m.graph.json")
    optimised = optimize(module)
    serial.save(optimised, folder / "o.graph.json")
    build(optimised, folder / "b", name="digits")
    return folder


def validate(name: str, data: Any) -> None:
    jsonschema.Draft202012Validator(json.loads(SCHEMAS[name])).validate(data)


def test_artifacts(made: Path, gt: Cli) -> None:
    for graph in ("m", "o"):
        validate("graph", json.loads((made / f"{graph}.graph.json").read_text()))
    validate("build", json.loads((made / "b" / "build.json").read_text()))
    assert gt("lower", made / "o.graph.json", "-o", made / "o.program.json").code == 0
    validate("program", json.loads((made / "o.program.json").read_text()))
    assert loops.load(made / "o.program.json")


@pytest.mark.parametrize(("name", "line"), [
    ("stats", "show {}/m.graph.json --stats"),
    ("stats", "show {}/o.graph.json"),
    ("listing", "show {}/m.graph.json --tabular"),
    ("modules", "show {}/m.graph.json --modules"),
    ("diff", "diff {0}/m.graph.json {0}/o.graph.json"),
    ("diff", "diff {0}/m.graph.json {0}/m.graph.json"),
    ("opt", "opt {}/m.graph.json --check"),
    ("bisect", "opt {}/m.graph.json --bisect"),
    ("bisect", "opt {}/m.graph.json --bisect --atol 0 --rtol 0"),
    ("check", "check {0}/m.graph.json {0}/o.graph.json --divergence"),
    ("check", "check {0}/m.graph.json {0}/b"),
    ("bench", "bench {}/b --seconds 0"),
    ("profile", "profile {}/b --runs 1"),
    ("ops", "ops"),
    ("passes", "passes"),
    ("support", f"support {DIGITS}"),
    ("lint", f"lint {DIGITS}"),
    ("doctor", "doctor")])
def test_reports(name: str, line: str, made: Path, gt: Cli) -> None:
    result = gt(*line.format(made).split(), "--json")
    assert result.code in (0, 1)
    validate(name, json.loads(result.out))
