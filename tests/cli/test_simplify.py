"""simplify: one verb from ONNX to ONNX; and diff of models, also out of commits."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import DIGITS, Cli


def ops(path: Path) -> list[str]:
    return [n.op_type for n in onnx.load(path).graph.node]


@pytest.mark.process
def test_batch_norms_are_merged_and_dims_stay_open(gt: Cli, tmp_path: Path) -> None:
    """The bias that a norm becomes is that of the convolution, and both models are compared."""
    done = gt("simplify", DIGITS, out := tmp_path / "out.onnx")
    assert done.code == 0 and done.out.split() == [
        "op", "before", "after", "BatchNormalization", "3", "0", "all", "13", "10"]
    assert "digits.onnx and out.onnx match: " in done.err
    assert not {"BatchNormalization", "Add"} & set(ops(out)) and ops(out).count("Conv") == 3
    (image,) = onnx.load(out).graph.input
    assert (image.name, image.type.tensor_type.shape.dim[0].dim_param) == ("image", "batch")


@pytest.mark.process
def test_a_model_that_differs_is_told(gt: Cli, tmp_path: Path) -> None:
    done = gt("simplify", DIGITS, tmp_path / "out.onnx", "--atol", "0", "--rtol", "0")
    assert done.code == 1 and "out of tolerance" in done.err


def test_weights_beside_the_model(gt: Cli, tmp_path: Path) -> None:
    assert gt("simplify", DIGITS, tmp_path / "m.onnx", "--external-data", "--no-check").code == 0
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", "m.onnx.data"}


@pytest.mark.parametrize("out", ["out.txt", "-", "in.onnx"])
def test_where_it_may_go(out: str, gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                         ) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DIGITS, "in.onnx")
    done = gt("simplify", "in.onnx", out)
    assert done.code == 2 and "GT3017" in done.err
    assert Path("in.onnx").read_bytes() == Path(DIGITS).read_bytes()


def test_models_are_compared_without_an_import(gt: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert gt("simplify", DIGITS, out, "--no-check").code == 0
    assert gt("diff", DIGITS, DIGITS).code == 0
    done = gt("diff", DIGITS, out)
    assert done.code == 1 and "batch_norm" in done.out


@pytest.mark.process
def test_a_model_of_a_commit(gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DIGITS, "m.onnx")
    for words in (["init", "-q"], ["add", "m.onnx"],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], check=True)
    assert gt("simplify", DIGITS, "m.onnx", "--no-check").code == 0
    assert gt("diff", "HEAD:m.onnx", DIGITS).code == 0
    done = gt("diff", "HEAD:m.onnx", "m.onnx")
    assert done.code == 1 and "batch_norm" in done.out
    assert gt("diff", "HEAD:none.onnx", "m.onnx").code in (2, 3)
    assert {p.name for p in tmp_path.iterdir()} == {".git", "m.onnx"}


def _model(path: Path, body: str) -> Path:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{body}'), path)
    return path


@pytest.mark.process
def test_a_model_that_would_grow_stays(gt: Cli, tmp_path: Path) -> None:
    """In ONNX a constant output takes a node that copies it."""
    model = _model(tmp_path / "in.onnx", "g (float[2] x) => (float[2] y, bool[2] m) "
                   "{ y, m = Dropout (x) }")
    done = gt("simplify", model, out := tmp_path / "out.onnx")
    assert done.code == 0 and "in.onnx stays as it is: simplified it would have 2 nodes" in done.err
    assert ops(out) == ["Dropout"] and done.out.split() == ["op", "before", "after", "all", "1",
                                                            "1"]


def test_a_sequence_stays_one(gt: Cli, tmp_path: Path) -> None:
    model = _model(tmp_path / "in.onnx", "g (float[4] x) => (seq(float[2]) y) "
                   "{ z = Identity (x) y = SplitToSequence (z) }")
    done = gt("simplify", model, out := tmp_path / "out.onnx", "--no-check")
    assert done.code == 0 and "it would have other inputs or outputs" in done.err
    assert ops(out) == ["Identity", "SplitToSequence"]


def test_random_numbers_stay_the_runtimes(gt: Cli, tmp_path: Path) -> None:
    model = _model(tmp_path / "in.onnx", "g (float[2] x) => (float[2] y) "
                   "{ r = RandomNormalLike (x) z = Identity (r) y = Add (x, z) }")
    done = gt("simplify", model, out := tmp_path / "out.onnx")
    assert done.code == 0 and "random numbers: values are not compared" in done.err
    graph = onnx.load(out).graph
    assert ops(out) == ["RandomNormalLike", "Add"] and len(graph.input) == len(graph.output) == 1
