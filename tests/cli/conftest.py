"""A command line in this process, and a few files for it to work on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from graphtool.cli.faults import run
from graphtool.importers import import_source
from graphtool.io import npz
from graphtool.ir import serial

SAMPLES = Path(__file__).parents[2] / "samples"
DIGITS = str(SAMPLES / "digits.onnx")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Cli = Callable[..., Result]


@pytest.fixture
def gt(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`gt("show", path)` runs the verb and returns its exit code and what it printed."""
    def call(*args: object) -> Result:
        capsys.readouterr()
        code = run([str(a) for a in args])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Result(code, out, err)
    return call


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`digits.graph.json`, `in.npz`, and files that are not what they seem."""
    path = tmp_path_factory.mktemp("files")
    serial.save(import_source(DIGITS), path / "digits.graph.json")
    image = npz.load(SAMPLES / "digits_test.npz")["image"][:3]
    npz.save({"image": image}, path / "in.npz")
    npz.save({}, path / "hollow.npz")
    npz.save({"picture": image}, path / "misnamed.npz")
    npz.save({"image": image, "extra": image}, path / "extra.npz")
    npz.save({"image": image.astype(np.float64)}, path / "double.npz")
    npz.save({"image": image[:, :, :4]}, path / "shape.npz")
    text = (path / "digits.graph.json").read_text()
    (path / "cut.graph.json").write_text(text[:len(text) // 2])
    (path / "alien.json").write_text('{"format": "other/thing"}')
    (path / "old.graph.json").write_text(re.sub('"version": [0-9]+', '"version": 99', text))
    (path / "unknown.graph.json").write_text(text.replace('"op": "relu"', '"op": "relux"'))
    (path / "cycle.graph.json").write_text(text.replace('"in": ["image"', '"in": ["logits"'))
    (path / "lost.graph.json").write_text(text.replace("digits.safetensors", "gone.safetensors"))
    for name, old, new in (  # one thing wrong in each
            ("type", '"type": "f32[batch,16,8,8]"', '"type": "f32[batch,17,8,8]"'),
            ("negative", '"type": "f32[batch,1,8,8]"', '"type": "f32[batch,-1,8,8]"'),
            ("dim", '"type": "f32[batch,1,8,8]"', '"type": "f32[batch//0,1,8,8]"'),
            ("stride", '"strides": [1, 1]', '"strides": [0, 1]'),
            ("attribute", '"strides": [1, 1]', '"strides": ["a", 1]'),
            ("operands", '"in": ["image", "@block1.conv.weight"]', '"in": []'),
            ("range", '"min": 0, "max": null', '"min": 5, "max": 1')):
        assert old in text
        (path / f"{name}.graph.json").write_text(text.replace(old, new, 1))
    (path / "bad.npz").write_bytes(b"PK\3\4 no archive")
    (path / "bad.onnx").write_bytes(b"\0\1\2\3 no model")
    (path / "bad.program.json").write_text(text)
    (path / "empty").mkdir()
    (path / "empty.pt2").mkdir()
    return path
