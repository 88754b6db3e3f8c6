"""A model's names act nowhere: on no terminal, in no log, page, picture or C, by whatever verb."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.main import get_command

from graphtool import escaping
from graphtool.cli.app import app
from graphtool.cli.terminal import Escaped
from graphtool.errors import GraphtoolError
from graphtool.io import npz
from graphtool.ir import serial
from graphtool.report.findings import FORMATS
from tests.cli.conftest import Cli, Result

NAME = '\x1b]0;P\x07\n::error::PWN\u202e\x9b\u200b<script>x</script>"`|*/##[error]]]>\\'
FILE = NAME.replace("/", "|").replace(":", ";").replace("\\", "")
G, H = f"g{FILE}.graph.json", f"h{FILE}.graph.json"
TEXTS = (".md", ".html", ".svg", ".dot", ".mmd", ".sarif", ".xml", ".txt", ".c", ".h", ".json",
         ".jsonl", ".mlir", ".gt", ".py", ".hpp", ".rs", ".go", ".ts", ".js", ".f90", ".m",
         ".toml", ".mod", ".cmake", ".pc", ".csv")
JUDGED = [f"{verb} --format {form}" for verb in ("diff {g} {h}", "check {g} {h}", "support {c}",
                                                 "lint {o}", "git review HEAD", "git check {g} {h}")
          for form in FORMATS]
LINES: dict[str, tuple[str, ...]] = {  # by verb, in the order in which they are run
    "help": ("help", "help import"), "version": ("version",),
    "import": ("import {o} --no-check -o {g}", "import {p} -o {h}", "import {c} -o c.graph.json",
               "import fixed.onnx --no-check -o fixed.graph.json"),
    "show": ("show {g}", "show {g} --stats", "show {g} --tabular", "show {g} --json",
             "show {g} --as functional", "show {g} --as stablehlo", "show {g} --where",
             "show {g} --modules", "show {g} --as loops", "show {g} --as c",
             "show {g} --why-not-fused {y}"),
    "eval": ("eval {g} --random", "eval {g} --input {y}=1"),
    "bound": ("bound {g}", "bound {g} --range {y}=0:1 --samples 1", "bound {g} --json"),
    "opt": ("opt {g} -o q.graph.json --stats --time --check --print-after changed "
            "--journal journal.jsonl", "opt {g}", "opt {g} --bisect"),
    "quantise": ("quantise {g} -o q8.graph.json",),
    "grad": ("grad {g} --loss mse --optimizer sgd -o train.graph.json",
             "grad {g} --loss mse --group {y} -o t.graph.json"),
    "jvp": ("jvp {g} -o jvp.graph.json",),
    "vjp": ("vjp {g} -o vjp.graph.json", "vjp {g} --of {y}x"),
    "jacobian": ("jacobian {g} -o jacobian.graph.json", "jacobian {g} --of {y}x",
                 "jacobian fixed.graph.json -o jacobian.graph.json"),
    "vmap": ("vmap {g} -o vmap.graph.json",),
    "lower": ("lower q.graph.json -o q.program.json", "lower q.graph.json -o -"),
    "emit": ("emit q.program.json -o c", "emit {g} -o traced --debug-lines"),
    "build": ("build {g} -o build --name hostile --keep", "build train.graph.json -o trainer",
              "build {g} -o build --name {y}", "build {g} -o small --max-flash 1",
              "build fixed.graph.json -o fixed --name fixed"),
    "package": ("package build --as wheel -o packages", "package build --as go -o packages",
                "package build --as casadi -o packages", "package fixed --as casadi -o packages",
                "package build --as cmake -o packages", "package build --as deb -o packages",
                "package build --as single -o packages",
                "package build --as cargo -o packages --json", "package build --as {y}",
                "package build --as deb --version {y}"),
    "size": ("size {g}", "size {o} --max-ram 1", "size build --json", "size {y}"),
    "run": ("run build --random", "run build --input {y}=1"),
    "generate": ("generate build",),
    "tokenizer train": ("tokenizer train {t} -o tokens.json --size 300",),
    "tokenizer encode": ("tokenizer encode tokens.json {y}",),
    "tokenizer decode": ("tokenizer decode tokens.json " + " ".join(map(str, NAME.encode())),),
    "train": ("train trainer --data data.npz --epochs 1 --checkpoint run --batch 8",
              "train trainer --data {g}"),
    "weights": ("weights {g} --from run/model.safetensors -o -",),
    "bench": ("bench build --seconds 0 --save base.json",),
    "profile": ("profile build --runs 1 --trace trace.json", "profile build --runs 1 --json"),
    "tune": ("tune {g} -o {g}.tuning --march x86-64-v3 --budget 0.1s --seconds 0.01",),
    "machine": ("machine --list",),
    "check": ("check {g} build", "check {g} {h} --divergence"),
    "debug": ("debug {g} --commands 'run; where; list; values; help'",
              "debug {g} --commands 'break {n}'"),
    "diff": ("diff {g} {h}", "diff {g} {h} --json", "diff build trainer", *JUDGED),
    "why": ("why {g} {n}", "why build {n}", "why build k0", "why {g} {y}x"),
    "reduce": ("reduce {g} -o r.graph.json",),
    "repro": ("repro {g} -o repro",),
    "compare-captures": ("compare-captures {g}.py:{y}",),
    "draw": ("draw {g} -o d.svg", "draw {g} -o d.dot", "draw {g} -o d.mmd", "draw {g} -o d.md",
             "draw q.graph.json --groups -o -"),
    "view": ("view {g} {h} q.program.json build -o page.html",),
    "report": ("report build --model {o} --no-times -o report",),
    "export": ("export {g} -o e.onnx", "export {g} --format stablehlo -o e.mlir",
               "import e.mlir --no-check -o e.graph.json"),
    "simplify": ("simplify {o} e.simple.onnx",),
    "ops": ("ops {y}",), "passes": ("passes",), "schema": ("schema {y}",),
    "support": ("support {c}",), "lint": ("lint {o}", "lint {c} --profile {y}"),
    "doctor": ("doctor {y}",), "explain": ("explain {y}",),
    "completion": ("completion bash",),
    "demo": ("demo --seconds {y}", "demo --target {y}"),  # it has no model but its own
    "cache dir": ("cache dir",), "cache prune": ("cache prune --limit {y}",),
    "cache clear": ("cache clear {y}",),
    "git install": ("git install",), "git uninstall": ("git uninstall",),
    "git status": ("git status",), "git textconv": ("git textconv {g}",),
    "git check": ("git check {g} {h} {c}",), "git review": ("git review HEAD --comment review.md",),
    "git merge": ("git merge {g} {g} {h}", "git merge {g} {h} {c}"),
    "git merge-weights": ("git merge-weights {g} {g} {h}",),
}


def leaves(command: Any, name: str = "") -> Iterator[str]:
    """The names of all verbs of the parser, those in groups with their group's."""
    for word, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, f"{name} {word}".strip())
    if not getattr(command, "commands", {}):
        yield name


VERBS = list(leaves(get_command(app)))


def test_every_verb_is_run_on_the_hostile_model() -> None:
    assert set(VERBS) == set(LINES), "a new verb: say here how it is run"


def model(path: str, op: str, batch: str | int = f"B{NAME}") -> None:
    """A layer of hostile names: of values, nodes, the operator, sizes, the licence."""
    value = helper.make_tensor_value_info
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
    nodes = [helper.make_node("MatMul", [f"x{NAME}", f"w{NAME}"], [f"r{NAME}"], f"n{NAME}"),
             helper.make_node(op, [f"r{NAME}"], [f"s{NAME}"], f"m{NAME}"),
             helper.make_node("Neg", [f"s{NAME}"], [f"y{NAME}"])]
    graph = helper.make_graph(
        nodes, f"graph{NAME}", [value(f"x{NAME}", TensorProto.FLOAT, [batch, 4])],
        [value(f"y{NAME}", TensorProto.FLOAT, [batch, 4])],
        [onnx.numpy_helper.from_array(w, f"w{NAME}")], doc_string=NAME)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9,
                             producer_name=NAME)
    helper.set_model_props(made, {"license": NAME})
    Path(path).write_bytes(made.SerializeToString())


def words(line: str, **more: str) -> list[str]:
    """A line of the table as words; `{y}` and the like are one word, or a part of one."""
    names = {"g": G, "h": H, "o": f"o{FILE}.onnx", "p": f"p{FILE}.onnx", "c": f"c{FILE}.onnx",
             "t": f"t{FILE}.txt", "y": f"y{NAME}", "n": f"s{NAME}", **more}
    return [re.sub(r"\{(\w)\}", lambda m: names[m[1]], w) for w in shlex.split(line)]


def faults(text: str, form: str = "") -> list[str]:
    """What a hostile name does in a text."""
    found = [f"raw {m!r}" for m in set(re.findall(escaping.HIDDEN, text)) - {"\n", "\t"}]
    if form != ".txt":
        lines = re.findall(r"^.{0,20}?(?:::|\\u003a:)error::PWN.*", text, re.M)
        found += [f"a line of its own: {x[:60]!r}" for x in lines if not re.search(
            r"(\\n|\?|_)(::|\\u003a:)error::PWN", x)]
    if commands := re.findall(r"^\s*::(?!(?:error|warning|notice) (?:file|title)=).*", text, re.M):
        found.append(f"commands {commands}")
    if not form and "##[error]" in text:
        found.append("a command ##[error]")
    return found


class Tags(HTMLParser):
    """Counts the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.scripts += tag == "script"


def broken(path: Path, text: str) -> list[str]:
    """Where a file is not of its language any more."""
    match path.suffix:
        case ".svg" | ".xml":
            ET.fromstring(text)
        case ".html":
            return ["a script"] * (Tags(text).scripts != (2 if path.name == "page.html" else 0))
        case ".md" | ".markdown":
            return markdown_faults(text)
        case ".dot" if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)
        case ".json":
            json.loads(text)
    return []


def markdown_faults(text: str) -> list[str]:
    """HTML that is none of ours, and rows whose number of cells is not the head's."""
    plain = re.sub(r"^```.*?^```|\\.|(`+)(?!`).*?(?<!`)\1(?!`)", "", text, flags=re.M | re.S)
    found = ["a script"] if "<script" in plain else []
    width = 0
    for line in text.splitlines():
        bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0
        found += [f"a row of {bars} bars: {line[:80]}"] if width and bars not in (0, width) else []
        width = bars
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the models, and data to train on."""
    monkeypatch.chdir(tmp_path)
    for letter, op in zip("opc", ("Relu", "Tanh", f"Nonsense{NAME}"), strict=True):
        model(f"{letter}{FILE}.onnx", op)
    model("fixed.onnx", "Relu", 2)
    Path(f"t{FILE}.txt").write_text(NAME * 9)
    rng = np.random.default_rng(0)
    npz.save({f"x{NAME}": rng.random((64, 4), np.float32),
              "y": rng.random((64, 4), np.float32)}, Path("data.npz"))
    return tmp_path


def unpack(folder: Path) -> None:
    """The files of the packages, each package's in a folder of its own."""
    for path in folder.iterdir() if folder.exists() else ():
        into = path.with_name(f"files of {path.name}")
        if path.is_dir() or into.exists():
            continue
        if path.suffix != ".deb":
            form = "zip" if path.suffix == ".whl" else "gztar"
            shutil.unpack_archive(path, into, form)
        elif shutil.which("dpkg-deb"):
            subprocess.run(["dpkg-deb", "-R", path, into], check=True)


def git(*args: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *args], check=True,
                   capture_output=True)


def after_import(gt: Cli) -> None:
    """Commit one graph under the name of another, so that a review finds a difference."""
    git("init", "-q")
    shutil.copy(H, "reviewed.graph.json")
    Path("reviewed.graph.json").write_text(Path(G).read_text())
    git("add", "reviewed.graph.json", G, H)
    git("commit", "-qm", "x")
    Path("reviewed.graph.json").write_text(Path(H).read_text())


def test_names_act_nowhere(here: Path, gt: Cli) -> None:
    wrong, seen, codes = list[str](), set[Path](), dict[str, int]()
    for verb, lines in LINES.items():
        for line in lines:
            done: Result = gt(*words(line))
            codes[line] = done.code
            prose = ".txt" if verb == "tokenizer decode" else ""
            found = faults(done.out, prose) + faults(done.err)
            if "--format markdown" in line:
                found += markdown_faults(done.out)
            if "--format junit" in line:
                ET.fromstring(done.out)
            unpack(here / "packages")
            for path in set(here.rglob("*")) - seen:
                seen.add(path)
                if path.is_file() and path.suffix in TEXTS and not path.name.startswith("t\x1b"):
                    text = path.read_text()
                    found += [f"{path.name!r}: {f}" for f in (
                        *faults(text, path.suffix), *broken(path, text))]
            wrong += [f"{line}: {f}" for f in found]
        if verb == "import":
            after_import(gt)
    assert not wrong, "\n".join(wrong)
    assert 70 not in codes.values()
    refused = {line for line, code in codes.items() if code > 1}
    meant = {line for line in codes if REFUSED.search(line)}
    assert refused == meant, sorted(refused ^ meant)


REFUSED = re.compile(r"^(?!git|tokenizer).*\{[yc]\}(?!\.)|^generate|^tune|data \{g\}|break \{n\}"
                     r"|^jacobian (?!fixed)|build --as casadi|max-flash")
"""Lines with a word that is none, with the operator that is none, with the wrong file, with open
sizes where these must be fixed, or with a limit that is too low."""


@pytest.mark.compiled
@pytest.mark.parametrize("given", [(NAME,), (f"--no{NAME}",)], ids=["argument", "option"])
def test_words_of_the_command_line_act_nowhere(given: tuple[str, ...], gt: Cli, here: Path
                                               ) -> None:
    for verb in VERBS:
        done = gt(*verb.split(), *given)
        assert not faults(done.out) + faults(done.err), verb
        assert done.code != 70, (verb, done.err)


def test_json_keeps_names_exact(gt: Cli, here: Path) -> None:
    assert gt("import", *words("{o} --no-check -o {g}")).code == 0
    rows = json.loads(gt("show", G, "--tabular", "--json").out)["rows"]
    assert f"s{NAME}" in [row["name"] for row in rows]
    graph = gt("opt", G, "--passes", "dce").out  # to stdout, through the escaping stream
    assert f"s{NAME}" in [row["id"] for row in json.loads(graph)["nodes"]]
    Path("again.gt").write_text(gt("show", G).out)  # the listing is read back
    rows = json.loads(gt("show", "again.gt", "--tabular", "--json").out)["rows"]
    assert f"s{NAME}" in [row["name"] for row in rows]


@pytest.mark.parametrize("parts", [
    ("::error::x",), (":", ":error::x"), (" ", ":", ":", "error"), ("a\n", "::x"),
    ("#", "#[error]x"), ("x ##vso", "[task]"), ("\x1b", "[31m")])
def test_a_stream_of_parts(parts: tuple[str, ...]) -> None:
    out = io.StringIO()
    stream = Escaped(out)
    for part in parts:
        stream.put(part, escaping.prose)
    stream.flush()
    assert not faults(out.getvalue()) and "".join(parts) != out.getvalue()


@pytest.mark.parametrize("row", [
    {"id": NAME, "op": "nag", "in": ["x"], "type": "f32[4]"},  # no op
    {"id": NAME, "op": "relu", "in": [NAME], "type": "f32[4]"}])  # a cycle
def test_a_place_is_one_line_each(row: dict[str, Any]) -> None:
    """Whatever the name of the node is, `error.where` has a line for each place."""
    text = json.dumps({"format": "graphtool/graph", "version": 1, "meta": {}, "weights": "",
                       "symbols": {}, "inputs": [{"id": "x", "type": "f32[4]"}], "params": [],
                       "nodes": [row], "outputs": []})
    with pytest.raises(GraphtoolError) as caught:
        serial.loads(text, "m.graph.json")
    assert caught.value.where.split("\n") == ["m.graph.json", escaping.line(f"node {NAME}")]


def test_prose_keeps_what_scripts_need() -> None:
    text = "👩\u200d🔬 می\u200cخواهم ❤\ufe0f\r\n\tcolons :: and # and ## Title"
    assert escaping.prose(text) == text and escaping.line(text) != text


def test_who_prints() -> None:
    """Nobody but terminal.py, whose stream escapes, and what hands on bytes."""
    root = Path(__file__).parents[2] / "graphtool"
    found = {f"{path.relative_to(root)}: {line.strip()}" for path in root.rglob("*.py")
             for line in path.read_text().splitlines() if re.search(
                 r"(?<![\w.])print\(|typer\.echo|click\.echo|sys\.std(out|err)\.write", line)
             and "samples" not in path.parts}
    assert {x for x in found if not x.startswith("cli/terminal.py")} == {
        "importers/torch/driver/capture.py: sys.stderr.write(said.getvalue())  "
        "# what the model itself printed, if all went well"}
