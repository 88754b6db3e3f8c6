"""What a newcomer types that is not so here: the answer names what is, and a line that works."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphtool.cli import guesses, outputs, terminal
from graphtool.errors import UsageError
from graphtool.package.forms import package
from graphtool.package.record import Packaged, used
from graphtool.verbs import VERBS, families
from tests.cli.conftest import DIGITS, Cli

CASES = [  # what was typed, and what the error says
    ("compile m.onnx", "`graphtool build` does that"),
    ("optimise m.onnx", "`graphtool opt` does that"),
    (DIGITS, f"`graphtool show {DIGITS}` prints it"),
    (f"build {DIGITS}", "as in graphtool build samples/digits.onnx -o build"),
    ("package build", "--as FORM: wheel (pip), npm"),
    ("why m.graph.json", "NAME: A value, as `graphtool show` names it."),
    ("generate writer The", "as in graphtool generate writer --prompt The"),
    (f"build {DIGITS} --batch 3", "--dim batch=2 sets an open dim"),
    (f"build {DIGITS} --rust", "`graphtool package BUILD --as cargo`"),
    ("opt m.graph.json -O3", "run the default passes"),
    ("git", "one of install, status, check"), ("cache size", "one of dir, prune, clear"),
    ("opt F/digits.graph.json -o T/m.onnx", "-o T/m.graph.json"),
    ("opt F/digits.graph.json -o T/m.onnx", "`graphtool export GRAPH -o T/m.onnx`"),
    (f"import {DIGITS} -o T/m.safetensors", "weights are written beside their graph"),
    ("export F/digits.graph.json -o T/m.tflite", "`graphtool export` writes ONNX and StableHLO"),
    (f"build {DIGITS} -o T/m.so", "the library is DIR/libNAME.so"),
    ("lower F/digits.graph.json -o T/none/x.program.json", "help: mkdir -p T/none"),
    ("eval F/digits.graph.json --random -o T/x.csv", "-o T/x.npz"),
    ("show F/digits.graph.jsn", "did you mean F/digits.graph.json?"),
    ("run F/empty", "this one has no build.json"),
    (f"eval {DIGITS} --inputs {DIGITS}", "it is an ONNX model"),
    (f"eval {DIGITS} --input image={DIGITS}", f"a file is read with @: image=@{DIGITS}"),
    (f"eval {DIGITS} --random --dim 2", "as in --dim batch=8"),
    (f"weights {DIGITS} --from F/digits.safetensors", "name the graph, GRAPH.graph.json"),
    (f"weights {DIGITS} --from F", "it is a directory, with F/"),
    (f"compare-captures {__file__}", f"name what is in it: {__file__}:NAME"),
    (f"build {DIGITS} -o T/b --march arm64", "did you mean 'armv8-a'?"),
    (f"build {DIGITS} -o T/b --target sm_86", "did you mean 'sm_80'?"),
    (f"reduce {DIGITS} -o T/s.graph.json --command false", "--command has no {graph}"),
    (f"opt {DIGITS} --passes specialize", "specialize{batch=1}"),
    (f"draw {DIGITS} -o T/x.png", "dot -Tpng -o T/x.png"),
    ("tune", "as in graphtool tune build -o m.tuning"),
    ("cache prune --limit many", "as in 64K")]


@pytest.mark.parametrize(("line", "said"), CASES, ids=[c[0].rpartition("/")[2] for c in CASES])
def test_a_guess_is_answered(line: str, said: str, gt: Cli, folder: Path, tmp_path: Path) -> None:
    def placed(text: str) -> str:
        return re.sub(r"\bF\b", str(folder), text.replace("T/", f"{tmp_path}/"))
    done = gt(*placed(line).split())
    assert done.code in (2, 3) and done.err.count("error[") == 1
    assert placed(said) in done.err and not list(tmp_path.iterdir())


def test_the_ending_of_an_export_decides(gt: Cli, folder: Path, tmp_path: Path) -> None:
    graph = folder / "digits.graph.json"
    assert gt("export", graph, "-o", tmp_path / "m.mlir").code == 0
    assert (tmp_path / "m.mlir").read_text().startswith("module @")
    assert gt("export", graph, "-o", tmp_path / "m.onnx").code == 0
    assert gt("diff", graph, tmp_path / "m.onnx").code == 0


def test_the_tables_name_verbs_that_exist() -> None:
    assert set(guesses.WORDS.values()) <= set(families())
    assert not set(guesses.WORDS) & set(families())
    assert {*outputs.WRITES, *outputs.FOLDERS} <= set(VERBS)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_lacks_a_character(encoding: str) -> None:
    """A pipe of Windows, or of a program that asks for ASCII: another word, no internal error."""
    raw = io.BytesIO()
    stream = terminal._lenient(io.TextIOWrapper(raw, encoding))
    stream.write("0..∞ → ≥ \U0001f600")
    stream.flush()
    assert raw.getvalue().decode(encoding) == "0..inf -> >= \\ud83d\\ude00"


@pytest.mark.process
def test_a_report_and_a_graph_in_ascii() -> None:
    def said(*words: str) -> bytes:
        return subprocess.run([sys.executable, "-m", "graphtool", *words], capture_output=True,
                              check=True, env={"PYTHONIOENCODING": "ascii"}).stdout
    assert b"batch in 0..inf" in said("show", DIGITS, "--stats")
    assert said("passes", "--json").decode()  # a document is UTF-8


def test_weights_of_a_graph_or_a_model(gt: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.graph.json"
    done = gt("weights", folder / "digits.graph.json", "--from", DIGITS, "-o", out)
    assert done.code == 0 and "17 parameters from" in done.err
    assert "left as they are" not in done.err
    assert gt("diff", folder / "digits.graph.json", out).code == 0


def test_what_is_not_kept_is_said(gt: Cli, folder: Path) -> None:
    done = gt("tune", folder / "digits.graph.json", "--budget", "0s", "--seconds", "0.01")
    assert "nothing is kept: -o FILE.tuning" in done.err


def test_tokens_as_encode_prints_them_or_with_commas(gt: Cli) -> None:
    tokens = Path(DIGITS).with_name("language_tokens.json")
    assert gt("tokenizer", "decode", tokens, "104,105 33").out == "hi!\n"
    assert "'x' is no token" in gt("tokenizer", "decode", tokens, "104", "x").err


@pytest.mark.parametrize(("form", "word"), [
    ("rust", "cargo"), ("c++", "cmake"), ("Python", "wheel")])
def test_a_language_for_a_form(form: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no form") as caught:
        package(tmp_path, form, tmp_path)
    assert f"--as {word} is for {form}" in caught.value.hint
    assert "{path}" not in used(Packaged("a/b", word, "m", "1.0", {}))


@pytest.mark.process
def test_a_file_that_git_does_not_have(gt: Cli) -> None:
    done = gt("diff", "NOREV:m.graph.json", DIGITS)
    assert done.code == 2 and "git has no NOREV:m.graph.json" in done.err
    assert "HEAD:models/m.graph.json" in done.err
